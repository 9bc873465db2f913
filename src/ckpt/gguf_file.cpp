#include "ckpt/gguf_file.h"

#include <algorithm>

#include "base/error.h"
#include "gguf/header.h"

namespace redco::ckpt {

std::vector<std::unique_ptr<TensorFile>> open_gguf(const std::string& path) {
  gguf::Model m = gguf::open_model(path);
  std::vector<std::vector<TensorEntry>> entries(m.parts.size());
  for (const gguf::FolderTensor& f : gguf::folder_tensors(m.header)) {
    i64 elements = 1;
    for (const i64 n : f.shape) elements *= n;
    const gguf::BlockSize size = gguf::size_of(f.stored->type);
    TensorEntry e{.name = f.name,
                  .type = StoredType::f32,
                  .shape = f.shape,
                  .offset = f.offset,
                  .bytes = elements / size.elements * size.bytes};
    GgufLayout layout{f.stored->type, f.transposed, f.rotary_heads, f.add, f.stack};
    if (f.odd) layout.odd = GgufLayout::Odd{f.odd->type, f.odd->offset};
    e.gguf = std::make_shared<const GgufLayout>(layout);
    entries[static_cast<std::size_t>(f.stored->part)].push_back(std::move(e));
  }
  std::vector<std::unique_ptr<TensorFile>> out;
  for (std::size_t i = 0; i < m.parts.size(); ++i)
    out.push_back(std::make_unique<TensorFile>(std::move(m.parts[i]), std::move(entries[i])));
  return out;
}

namespace {

// (E, in, out), or (E, out) with rows of one number; the last dim may be (out / layers, layers).
void read_stack(const ReadFile& file, const TensorEntry& e, const Box& box, const Strides& strides,
                const std::function<void(i64, i64, const float*, i64)>& on_row) {
  const GgufLayout& l = *e.gguf;
  const i64 layers = l.odd ? 2 : 1;
  const bool viewed = layers == 2 && e.shape.size() > 2 && e.shape.back() == 2;
  const std::size_t out = e.shape.size() - (viewed ? 2 : 1);  // the dim of the file's rows
  const bool matrix = out == 2;
  const i64 in = matrix ? e.shape[1] : 1, rows = e.shape[out] / (viewed ? 1 : layers);
  const Range columns = matrix ? box[1] : Range{0, 1};
  const Range turns = viewed ? box[out + 1] : Range{0, 1};
  std::vector<unsigned char> bytes;
  std::vector<float> values;
  for (i64 k = box[0].begin; k < box[0].end; ++k)
    for (i64 r = box[out].begin; r < box[out].end; ++r)
      for (i64 turn = turns.begin; turn < turns.end; ++turn) {
        const i64 layer = viewed ? turn : r % layers, row = k * rows + (viewed ? r : r / layers);
        const gguf::BlockType type = layer == 1 ? l.odd->type : l.type;
        const gguf::BlockSize size = gguf::size_of(type);
        const i64 first = columns.begin / size.elements,
                  blocks = ceil_div(columns.end, size.elements) - first;
        bytes.resize(static_cast<std::size_t>(blocks * size.bytes));
        values.resize(static_cast<std::size_t>(blocks * size.elements));
        file.pread_exact(
            (layer == 1 ? l.odd->offset : e.offset) + (row * in / size.elements + first) * size.bytes,
            bytes.data(), std::ssize(bytes));
        gguf::dequantize(type, bytes.data(), blocks, values.data());
        const i64 memory = (k - box[0].begin) * strides[0] + (r - box[out].begin) * strides[out] +
                           (viewed ? (turn - turns.begin) * strides[out + 1] : 0);
        on_row(memory, matrix ? strides[1] : 1, values.data() + columns.begin - first * size.elements,
               columns.size());
      }
}

}  // namespace

void read_gguf_rows(const ReadFile& file, const TensorEntry& e, const Box& box, const Strides& strides,
                    const std::function<void(i64, i64, const float*, i64)>& on_row) {
  const GgufLayout& l = *e.gguf;
  const gguf::BlockSize size = gguf::size_of(l.type);
  if (numel(box) == 0) return;
  if (l.stack) return read_stack(file, e, box, strides, on_row);
  // The stored tensor as rows: dims before the last one, in the order of the file.
  Shape shape = e.shape;
  Box part = box;
  Strides steps = strides;
  if (l.transposed) {
    std::swap(shape[0], shape[1]);
    std::swap(part[0], part[1]);
    std::swap(steps[0], steps[1]);
  }
  if (shape.empty()) {
    shape = {1};
    part = {{0, 1}};
    steps = {1};
  }
  const std::size_t last = shape.size() - 1;
  const i64 row_bytes = shape[last] / size.elements * size.bytes;
  const i64 first_block = part[last].begin / size.elements;
  const i64 blocks = (part[last].end + size.elements - 1) / size.elements - first_block;
  i64 rows = 1;
  for (std::size_t d = 0; d < last; ++d) rows *= part[d].size();
  const bool whole_rows = blocks * size.bytes == row_bytes && l.rotary_heads == 0;
  const i64 together =
      whole_rows && last <= 1 ? std::clamp<i64>(kBufferBytes / std::max<i64>(1, row_bytes), 1, rows) : 1;
  std::vector<unsigned char> bytes(static_cast<std::size_t>(together * blocks * size.bytes));
  std::vector<float> values(static_cast<std::size_t>(blocks * size.elements));
  std::vector<i64> at(last);  // of the row, from the box's first one
  for (i64 row = 0; row < rows; ++row) {
    i64 rest = row, memory = 0, index = 0;
    for (std::size_t d = last; d-- > 0;) {
      at[d] = rest % part[d].size();
      rest /= part[d].size();
    }
    for (std::size_t d = 0; d < last; ++d) {
      memory += at[d] * steps[d];
      i64 r = part[d].begin + at[d];
      if (d == 0) r = gguf::rotary_row(l.rotary_heads, shape[0], r);
      index = index * shape[d] + r;
    }
    const i64 in_buffer = row % together;
    if (in_buffer == 0) {
      const i64 n = std::min(together, rows - row);
      file.pread_exact(e.offset + index * row_bytes + first_block * size.bytes, bytes.data(),
                       n * blocks * size.bytes);
    }
    gguf::dequantize(l.type, bytes.data() + in_buffer * blocks * size.bytes, blocks, values.data());
    const float* from = values.data() + part[last].begin - first_block * size.elements;
    if (l.add != 0)
      for (i64 i = 0; i < blocks * size.elements; ++i) values[static_cast<std::size_t>(i)] += l.add;
    on_row(memory, steps[last], from, part[last].size());
  }
}

void read_gguf_blocks(const ReadFile& file, const TensorEntry& e, const Box& box, std::byte* out) {
  const GgufLayout& l = *e.gguf;
  const gguf::BlockSize size = gguf::size_of(l.type);
  REDCO_CHECK(e.shape.size() == 2 && l.add == 0 && !l.stack, "{} is no matrix of blocks", e.name);
  const int first = l.transposed ? 1 : 0;
  const i64 rows = e.shape[first], columns = e.shape[1 - first];
  const Range down = box[first], across = box[1 - first];
  REDCO_CHECK(across.begin % size.elements == 0 && across.end % size.elements == 0,
              "{}: columns [{}, {}) cut blocks of {}", e.name, across.begin, across.end, size.elements);
  const i64 row_bytes = columns / size.elements * size.bytes;
  const i64 skip = across.begin / size.elements * size.bytes;
  const i64 n = across.size() / size.elements * size.bytes;
  if (n == row_bytes && l.rotary_heads == 0)
    return file.pread_exact(e.offset + down.begin * row_bytes, out, down.size() * row_bytes);
  for (i64 r = down.begin; r < down.end; ++r, out += n)
    file.pread_exact(e.offset + gguf::rotary_row(l.rotary_heads, rows, r) * row_bytes + skip, out, n);
}

std::optional<DType> memory_type(gguf::BlockType t) {
  switch (t) {
    case gguf::BlockType::q8_0:
      return DType::q8;
    case gguf::BlockType::q4_1:
      return DType::q4;
    case gguf::BlockType::q4_0:
      return DType::q4_0;
    case gguf::BlockType::q5_0:
      return DType::q5_0;
    case gguf::BlockType::q5_1:
      return DType::q5_1;
    case gguf::BlockType::q4_k:
      return DType::q4_k;
    case gguf::BlockType::q5_k:
      return DType::q5_k;
    case gguf::BlockType::q6_k:
      return DType::q6_k;
    default:
      return std::nullopt;
  }
}

}  // namespace redco::ckpt
