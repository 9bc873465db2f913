#include "ckpt/safetensors_write.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"

namespace redco::ckpt {
namespace {

constexpr i64 kDirect =
    64 << 10;                  // minimum bytes of a piece that is written directly from the caller's memory
constexpr i64 kGathered = 64;  // elements gathered per step from strided memory

i64 bytes_of(const TensorPlan& t) {
  i64 n = size_of(t.type);
  for (i64 d : t.shape) {
    REDCO_CHECK(d >= 0, "{}: shape {}", t.name, to_string(t.shape));
    REDCO_CHECK(!__builtin_mul_overflow(n, d, &n), "{}: shape {} overflows", t.name, to_string(t.shape));
  }
  return n;
}

std::string quoted(const std::string& s) { return nlohmann::json(s).dump(); }

}  // namespace

FilePlan plan_file(std::string file, const std::vector<TensorPlan>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorPlan*> order;
  for (const TensorPlan& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const TensorPlan* a, const TensorPlan* b) {
    return a->type != b->type ? a->type > b->type : a->name < b->name;
  });
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [k, v] : metadata) json += quoted(k) + ":" + quoted(v) + ",";
    json.back() = '}';
    json += ",";
  }
  FilePlan plan;
  plan.file = std::move(file);
  i64 at = 0;
  for (const TensorPlan* t : order) {
    REDCO_CHECK(t->name != "__metadata__");
    i64 bytes = bytes_of(*t);
    json += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},", quoted(t->name),
                        name_of(t->type), fmt::join(t->shape, ","), at, at + bytes);
    plan.entries.push_back({t->name, t->type, t->shape, at, bytes});
    at += bytes;
  }
  if (json.back() == ',') json.pop_back();
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  REDCO_CHECK(static_cast<i64>(json.size()) <= kMaxHeaderBytes, "{} tensors in one file", tensors.size());
  u64 n = json.size();
  plan.head.assign(reinterpret_cast<const char*>(&n), 8);
  plan.head += json;
  plan.bytes = static_cast<i64>(plan.head.size()) + at;
  for (TensorEntry& e : plan.entries) e.offset += static_cast<i64>(plan.head.size());
  std::sort(plan.entries.begin(), plan.entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
  for (size_t i = 1; i < plan.entries.size(); ++i)
    REDCO_CHECK(plan.entries[i - 1].name != plan.entries[i].name, "{} twice", plan.entries[i].name);
  return plan;
}

ModelPlan plan_model(const std::vector<TensorPlan>& tensors, i64 max_file_bytes, const std::string& stem) {
  std::vector<std::vector<TensorPlan>> shards(1);
  i64 in_shard = 0, total = 0, parameters = 0;
  for (const TensorPlan& t : tensors) {
    i64 bytes = bytes_of(t);
    if (!shards.back().empty() && bytes > max_file_bytes - in_shard) {
      shards.emplace_back();
      in_shard = 0;
    }
    shards.back().push_back(t);
    in_shard += bytes;
    total += bytes;
    parameters += bytes / size_of(t.type);
  }
  ModelPlan plan;
  nlohmann::json index;
  for (size_t i = 0; i < shards.size(); ++i) {
    std::string name = shards.size() == 1
                           ? stem + ".safetensors"
                           : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, shards.size());
    plan.files.push_back(plan_file(name, shards[i]));
    plan.bytes += plan.files.back().bytes;
    for (const TensorPlan& t : shards[i]) index["weight_map"][t.name] = name;
  }
  if (shards.size() > 1) {
    index["metadata"] = {{"total_parameters", parameters}, {"total_size", total}};
    plan.index_name = stem + ".safetensors.index.json";
    plan.index_json = index.dump(2) + "\n";
    plan.bytes += static_cast<i64>(plan.index_json.size());
  }
  return plan;
}

i64 ModelPlan::file_of(std::string_view name) const {
  for (size_t i = 0; i < files.size(); ++i)
    if (files[i].find(name)) return static_cast<i64>(i);
  return -1;
}

SafetensorsWriter SafetensorsWriter::create(const std::string& folder, FilePlan plan, WriteQueue& queue) {
  return {folder, std::move(plan), nullptr, queue};
}

SafetensorsWriter SafetensorsWriter::create(const std::string& folder, FilePlan plan) {
  auto own = std::make_unique<WriteQueue>();
  WriteQueue& queue = *own;
  return {folder, std::move(plan), std::move(own), queue};
}

SafetensorsWriter::SafetensorsWriter(const std::string& folder, FilePlan plan,
                                     std::unique_ptr<WriteQueue> own, WriteQueue& queue)
    : plan_(std::move(plan)),
      own_(std::move(own)),
      file_(std::make_unique<ChunkedFile>(join_path(folder, plan_.file), plan_.bytes, queue)),
      written_(plan_.entries.size(), 0) {
  file_->write(0, plan_.head.data(), static_cast<i64>(plan_.head.size()));
}

const TensorEntry* FilePlan::find(std::string_view name) const {
  const auto it = std::lower_bound(entries.begin(), entries.end(), name,
                                   [](const TensorEntry& a, std::string_view n) { return a.name < n; });
  return it == entries.end() || it->name != name ? nullptr : &*it;
}

const TensorEntry& FilePlan::entry(std::string_view name) const {
  const TensorEntry* const e = find(name);
  REDCO_CHECK(e, "{} isn't planned in {}", name, file);
  return *e;
}

size_t SafetensorsWriter::index(std::string_view name) const {
  return static_cast<size_t>(&plan_.entry(name) - plan_.entries.data());
}

void SafetensorsWriter::put(size_t i, i64 begin, const void* from, i64 n) {
  const TensorEntry& e = plan_.entries[i];
  written_[i] += n;
  REDCO_CHECK(written_[i] <= e.bytes, "{}: parts written twice", e.name);
  file_->write(e.offset + begin, from, n);
}

void SafetensorsWriter::write_bytes(std::string_view name, i64 begin, const void* from, i64 n) {
  size_t i = index(name);
  REDCO_CHECK(begin >= 0 && n >= 0 && n <= plan_.entries[i].bytes - begin, "{}: {} + {}", name, begin, n);
  put(i, begin, from, n);
}

// Blocks that stay in the cache, a piece of rows per thread: each line of memory is read once.
template <class T>
void SafetensorsWriter::write_transposed(std::string_view name, const Box& box, const T* from, i64 stride) {
  constexpr i64 kRows = 16, kBlockBytes = 1 << 20;
  const i64 rows = box[0].end - box[0].begin, columns = box[1].end - box[1].begin;
  const i64 row_bytes = columns * static_cast<i64>(sizeof(T));
  const i64 at_once = std::max(kRows, kBlockBytes / row_bytes / kRows * kRows);
  // Aligned for every type, as memory of new is.
  T* const block = reinterpret_cast<T*>(transposed_.of(at_once * row_bytes));
  for (i64 r = 0; r < rows; r += at_once) {
    const i64 n = std::min(at_once, rows - r);
    parallel::for_each(ceil_div(n, kRows), [&](i64 piece) {
      const i64 begin = piece * kRows, height = std::min(kRows, n - begin);
      // A tile at a time: rows may have the same place in the cache, and are written line by line.
      T tile[kRows][kRows];
      for (i64 c = 0; c < columns; c += kRows) {
        const i64 width = std::min(kRows, columns - c);
        for (i64 j = 0; j < width; ++j) std::copy_n(from + (c + j) * stride + r + begin, height, tile[j]);
        for (i64 k = 0; k < height; ++k)
          for (i64 j = 0; j < width; ++j) block[(begin + k) * columns + c + j] = tile[j][k];
      }
    });
    write(name, {{box[0].begin + r, box[0].begin + r + n}, box[1]}, block);
  }
}

template <class T>
void SafetensorsWriter::write(std::string_view name, const Box& box, const T* from, const Strides& strides,
                              const Shape& view) {
  if (box.size() == 2 && strides[0] == 1 && strides[1] != 1 && box[0].end - box[0].begin > 1)
    return write_transposed(name, box, from, strides[1]);
  const size_t index_of = index(name);
  const TensorEntry& e = plan_.entries[index_of];
  const i64 size = size_of(e.type);
  const i64 capacity = kBufferBytes / size;
  SegmentWalk walk(view.empty() ? e.shape : view, box, strides, capacity);
  const i64 stride = walk.stride();
  unsigned char* buffer = nullptr;
  i64 first = 0, filled = 0;  // the buffer has elements [first, first + filled) of the tensor
  auto flush = [&] {
    if (filled) put(index_of, first * size, buffer, filled * size);
    filled = 0;
  };
  auto convert = [&](const T* p, i64 count, i64 at) {
    i64 bad = encode(e.type, p, count, buffer + filled * size);
    if (bad >= 0)
      throw UsageError(
          "{}: {}: {} (element {}) can't be stored as {}; choose a wider type (checkpoint.dtype: fp32)",
          plan_.file, e.name, p[bad], at + bad, name_of(e.type));
    filled += count;
  };
  for (Segment s; walk.next(&s);) {
    if (e.type == kNative<T> && stride == 1 && s.count * size >= kDirect) {
      flush();
      put(index_of, s.file * size, from + s.memory, s.count * size);
      continue;
    }
    if (s.file != first + filled || filled + s.count > capacity) flush();
    if (!buffer) buffer = encoded_.of(std::min(numel(box), capacity) * size);
    if (filled == 0) first = s.file;
    if (stride == 1) {
      convert(from + s.memory, s.count, s.file);
      continue;
    }
    T block[kGathered];
    for (i64 k = 0; k < s.count; k += kGathered) {
      i64 count = std::min(kGathered, s.count - k);
      const T* p = from + s.memory + k * stride;
      for (i64 i = 0; i < count; ++i) block[i] = p[i * stride];
      convert(block, count, s.file + k);
    }
  }
  flush();
}

FileRecord SafetensorsWriter::commit() {
  for (size_t i = 0; i < written_.size(); ++i)
    REDCO_CHECK(written_[i] == plan_.entries[i].bytes, "{}: {} bytes written of {}", plan_.entries[i].name,
                written_[i], plan_.entries[i].bytes);
  return {plan_.file, plan_.bytes, file_->commit()};
}

template void SafetensorsWriter::write(std::string_view, const Box&, const float*, const Strides&,
                                       const Shape&);
template void SafetensorsWriter::write(std::string_view, const Box&, const double*, const Strides&,
                                       const Shape&);
template void SafetensorsWriter::write(std::string_view, const Box&, const i32*, const Strides&,
                                       const Shape&);
template void SafetensorsWriter::write(std::string_view, const Box&, const i64*, const Strides&,
                                       const Shape&);

}  // namespace redco::ckpt
