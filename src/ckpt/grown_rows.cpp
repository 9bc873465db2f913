#include "ckpt/grown_rows.h"

#include <algorithm>

namespace redco::ckpt {

bool MoreRows::fits(const Shape& file, const Shape& model) const {
  return rows > stored && !model.empty() && file.size() == model.size() && model.size() <= 2 &&
         model[0] == rows && file[0] == stored && std::equal(file.begin() + 1, file.end(), model.begin() + 1);
}

void GrownRows::add(const std::string& tensor, const ModelFiles::Located& l) {
  constexpr i64 kElements = 1 << 20;
  const Shape& shape = l.entry->shape;
  const i64 columns = redco::numel(shape) / shape[0];
  const i64 block = std::max<i64>(1, kElements / std::max<i64>(1, columns));
  std::vector<double> sums(static_cast<std::size_t>(columns));
  std::vector<float> values;
  for (i64 r = 0; r < shape[0]; r += block) {
    Box box = whole(shape);
    box[0] = {r, std::min(shape[0], r + block)};
    values.resize(static_cast<std::size_t>(numel(box)));
    l.file->read(*l.entry, box, values.data());
    for (std::size_t k = 0; k < values.size(); ++k) sums[k % sums.size()] += static_cast<double>(values[k]);
  }
  std::vector<float>& mean = means_[tensor];
  for (const double s : sums) mean.push_back(static_cast<float>(s / static_cast<double>(shape[0])));
}

void GrownRows::read(const Place& p, const ModelFiles::Located& l, float* to,
                     Scratch<unsigned char>& buffer) const {
  const i64 stored = l.entry->shape[0];
  Box box = p.box;
  box[0].end = std::min(box[0].end, stored);
  if (box[0].begin < box[0].end) l.file->read(*l.entry, box, to, p.strides, buffer);
  const std::vector<float>& mean = means_.at(p.tensor);
  const Range columns = p.box.size() > 1 ? p.box[1] : Range{0, 1};
  const i64 step = p.box.size() > 1 ? p.strides[1] : 0;
  for (i64 r = std::max(p.box[0].begin, stored); r < p.box[0].end; ++r)
    for (i64 c = columns.begin; c < columns.end; ++c)
      to[(r - p.box[0].begin) * p.strides[0] + (c - columns.begin) * step] =
          mean[static_cast<std::size_t>(c)];
}

}  // namespace redco::ckpt
