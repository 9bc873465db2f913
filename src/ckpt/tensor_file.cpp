#include "ckpt/tensor_file.h"

#include <algorithm>

#include "base/error.h"
#include "ckpt/gguf_file.h"
#include "ckpt/mxfp4.h"

namespace redco::ckpt {
namespace {

// Pieces with at most this distance in the file are read with one call: a call costs about as much as copying
// the gap.
constexpr i64 kMaxGap = 32 << 10;
constexpr size_t kMaxSegments = 1 << 16;  // limits the list if segments are single elements
constexpr i64 kAcross = 16;               // elements across in a transposing copy: one cache line of floats

}  // namespace

TensorFile::TensorFile(ReadFile file, std::vector<TensorEntry> entries)
    : file_(std::move(file)), entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
}

TensorEntry TensorEntry::viewed(const Shape& view) const {
  REDCO_CHECK((!gguf || gguf->stack) && view.size() == shape.size() + 1, "{}: a view of a tensor of blocks",
              name);
  TensorEntry e = *this;
  e.shape = view;
  if (strides.empty()) return e;
  size_t d = 0;  // the dim that is split
  while (d < shape.size() && view[d] == shape[d]) ++d;
  e.strides.insert(e.strides.begin() + static_cast<std::ptrdiff_t>(d), strides[d] * view[d + 1]);
  return e;
}

const TensorEntry* TensorFile::find(std::string_view name) const {
  auto it = std::lower_bound(entries().begin(), entries().end(), name,
                             [](const TensorEntry& e, std::string_view n) { return e.name < n; });
  return it != entries().end() && it->name == name ? &*it : nullptr;
}

const TensorEntry& TensorFile::at(std::string_view name) const {
  if (const TensorEntry* e = find(name)) return *e;
  throw ContentsError("{}: the tensor {} is missing", path(), name);
}

template <class T>
void TensorFile::read(const TensorEntry& e, const Box& box, T* out, const Strides& strides,
                      Scratch<unsigned char>& buffer) const {
  if (std::is_integral_v<T> && is_float(e.type))
    throw ContentsError("{}: {} is {}, expected integers", path(), e.name, name_of(e.type));
  if (e.gguf) {
    read_gguf_rows(file_, e, box, strides, [&](i64 memory, i64 step, const float* values, i64 n) {
      for (i64 i = 0; i < n; ++i) out[memory + i * step] = static_cast<T>(values[i]);
    });
    return;
  }
  if (e.mxfp4) {
    read_mxfp4(file_, e, box, strides, [&](i64 memory, i64 step, const float* values, i64 n) {
      for (i64 i = 0; i < n; ++i) out[memory + i * step] = static_cast<T>(values[i]);
    });
    return;
  }
  const i64 size = size_of(e.type);
  SegmentWalk walk(e.shape, box, strides, kBufferBytes / size, e.strides);
  const i64 stride = walk.stride();
  const unsigned char* bytes_read = nullptr;

  auto convert = [&](const Segment& s, i64 skip, i64 count, i64 first, T* to) {
    i64 bad = decode<T>(e.type, bytes_read + (s.file - first + skip) * size, count, to);
    if (bad >= 0)
      throw ContentsError("{}: {}: element {} doesn't fit into {} bits", path(), e.name, s.file + skip + bad,
                          8 * sizeof(T));
  };

  std::vector<Segment> pending;
  Segment s{};
  bool more = walk.next(&s);
  while (more) {
    // As many segments as one call can read.
    pending.clear();
    const i64 first = s.file;
    i64 end = first;
    do {
      pending.push_back(s);
      end = std::max(end, s.file + s.count);
      more = walk.next(&s);
    } while (more && pending.size() < kMaxSegments && s.file >= first && (s.file - end) * size <= kMaxGap &&
             (s.file + s.count - first) * size <= kBufferBytes);
    const i64 bytes = (end - first) * size;
    if (pending.size() == 1 && stride == 1 && e.type == kNative<T>) {
      file_.pread_exact(e.offset + first * size, out + pending[0].memory, bytes);
      continue;
    }
    unsigned char* const read_to = buffer.of(more ? kBufferBytes : bytes);
    file_.pread_exact(e.offset + first * size, read_to, bytes);
    bytes_read = read_to;
    if (stride == 1) {
      for (const Segment& p : pending) convert(p, 0, p.count, first, out + p.memory);
      continue;
    }
    // Processes a column of blocks at a time, so that neighbouring destinations are written soon after each
    // other.
    i64 longest = 0;
    for (const Segment& p : pending) longest = std::max(longest, p.count);
    T block[kAcross];
    for (i64 skip = 0; skip < longest; skip += kAcross) {
      for (const Segment& p : pending) {
        i64 count = std::min(kAcross, p.count - skip);
        if (count <= 0) continue;
        convert(p, skip, count, first, block);
        T* to = out + p.memory + skip * stride;
        for (i64 i = 0; i < count; ++i) to[i * stride] = block[i];
      }
    }
  }
}

void TensorFile::read_blocks(const TensorEntry& e, const Box& box, std::byte* out) const {
  read_gguf_blocks(file_, e, box, out);
}

template <class T>
std::vector<T> TensorFile::read(const TensorEntry& e) const {
  std::vector<T> out(static_cast<size_t>(numel(whole(e.shape))));
  read(e, whole(e.shape), out.data());
  return out;
}

template void TensorFile::read(const TensorEntry&, const Box&, float*, const Strides&,
                               Scratch<unsigned char>&) const;
template void TensorFile::read(const TensorEntry&, const Box&, double*, const Strides&,
                               Scratch<unsigned char>&) const;
template void TensorFile::read(const TensorEntry&, const Box&, i32*, const Strides&,
                               Scratch<unsigned char>&) const;
template void TensorFile::read(const TensorEntry&, const Box&, i64*, const Strides&,
                               Scratch<unsigned char>&) const;
template std::vector<float> TensorFile::read(const TensorEntry&) const;
template std::vector<double> TensorFile::read(const TensorEntry&) const;
template std::vector<i32> TensorFile::read(const TensorEntry&) const;
template std::vector<i64> TensorFile::read(const TensorEntry&) const;

}  // namespace redco::ckpt
