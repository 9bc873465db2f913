#include "ckpt/mxfp4.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace redco::ckpt {

namespace {

constexpr i64 kBlockBytes = kMxfp4Values / 2;
constexpr float kFp4[16] = {0.F,  .5F,  1.F,  1.5F,  2.F,  3.F,  4.F,  6.F,
                            -0.F, -.5F, -1.F, -1.5F, -2.F, -3.F, -4.F, -6.F};

}  // namespace

bool is_mxfp4_blocks(const TensorEntry& e, std::string* name) {
  constexpr std::string_view kEnd = "_blocks";
  if (e.type != StoredType::u8 || e.shape.size() != 4 || e.shape[3] != kBlockBytes || !e.name.ends_with(kEnd))
    return false;
  *name = e.name.substr(0, e.name.size() - kEnd.size());
  return true;
}

TensorEntry mxfp4_entry(const std::string& name, const TensorFile& file, const TensorEntry& blocks,
                        const TensorFile& scales_file, const TensorEntry& scales) {
  const Shape& s = blocks.shape;
  if (scales.type != StoredType::u8 || scales.shape != Shape{s[0], s[1], s[2]})
    throw ContentsError("{}: {} is {} {}, expected U8 {}, the blocks of {}", scales_file.path(), scales.name,
                        name_of(scales.type), to_string(scales.shape), to_string(Shape{s[0], s[1], s[2]}),
                        blocks.name);
  if (!blocks.strides.empty())
    throw ContentsError("{}: {} is stored with gaps, expected a contiguous tensor", file.path(), blocks.name);
  TensorEntry e = blocks;
  e.name = name;
  e.type = StoredType::bf16;  // which has all of its values
  e.shape = {s[0], s[2] * kMxfp4Values, s[1]};
  e.mxfp4 = std::make_shared<const Mxfp4Layout>(Mxfp4Layout{&scales_file, scales, e.shape[1], e.shape[2]});
  return e;
}

void decode_mxfp4(const unsigned char* bytes, const unsigned char* scales, i64 blocks, float* values) {
  for (i64 b = 0; b < blocks; ++b) {
    const double scale = std::ldexp(1.0, int{scales[b]} - 127);
    for (i64 i = 0; i < kBlockBytes; ++i, ++bytes) {
      *values++ = static_cast<float>(static_cast<double>(kFp4[*bytes & 15]) * scale);
      *values++ = static_cast<float>(static_cast<double>(kFp4[*bytes >> 4]) * scale);
    }
  }
}

void read_mxfp4(const ReadFile& file, const TensorEntry& e, const Box& box, const Strides& strides,
                const std::function<void(i64, i64, const float*, i64)>& on_row) {
  const Mxfp4Layout& l = *e.mxfp4;
  if (numel(box) == 0) return;
  REDCO_CHECK(box.size() == 3 || (box.size() == 4 && e.shape[2] * e.shape[3] == l.out), "{}: shape {}",
              e.name, to_string(e.shape));
  const i64 turn = box.size() == 4 ? e.shape[3] : 1;
  const Range each = box.size() == 4 ? box[3] : Range{0, 1};
  const Range columns = box[1];
  const i64 row_blocks = l.in / kMxfp4Values;
  const i64 first_block = columns.begin / kMxfp4Values;
  const i64 blocks = (columns.end + kMxfp4Values - 1) / kMxfp4Values - first_block;
  // Whole rows of the file, several at a time.
  const i64 together = std::max<i64>(1, kBufferBytes / (row_blocks * kBlockBytes * turn));
  std::vector<unsigned char> bytes;
  std::vector<i32> wide;
  std::vector<unsigned char> scales(static_cast<std::size_t>(blocks));
  std::vector<float> values(static_cast<std::size_t>(blocks * kMxfp4Values));
  for (i64 k = box[0].begin; k < box[0].end; ++k)
    for (i64 r = box[2].begin; r < box[2].end; r += together) {
      const i64 n = std::min(together, box[2].end - r), rows = n * turn;
      bytes.resize(static_cast<std::size_t>(rows * row_blocks * kBlockBytes));
      wide.resize(static_cast<std::size_t>(rows * row_blocks));
      const i64 first_row = k * l.out + r * turn;
      file.pread_exact(e.offset + first_row * row_blocks * kBlockBytes, bytes.data(),
                       static_cast<i64>(bytes.size()));
      l.scales_file->read<i32>(l.scales, {{k, k + 1}, {r * turn, r * turn + rows}, {0, row_blocks}},
                               wide.data());
      for (i64 i = 0; i < n; ++i)
        for (i64 t = each.begin; t < each.end; ++t) {
          const i64 block = (i * turn + t) * row_blocks + first_block;
          std::transform(wide.begin() + block, wide.begin() + block + blocks, scales.begin(),
                         [](i32 s) { return static_cast<unsigned char>(s); });
          decode_mxfp4(bytes.data() + block * kBlockBytes, scales.data(), blocks, values.data());
          const i64 memory = (k - box[0].begin) * strides[0] + (r + i - box[2].begin) * strides[2] +
                             (box.size() == 4 ? (t - each.begin) * strides[3] : 0);
          on_row(memory, strides[1], values.data() + columns.begin - first_block * kMxfp4Values,
                 columns.size());
        }
    }
}

}  // namespace redco::ckpt
