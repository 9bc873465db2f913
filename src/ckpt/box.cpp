#include "ckpt/box.h"

#include <algorithm>

#include "base/error.h"

namespace redco::ckpt {

Box whole(const Shape& shape) {
  Box box;
  for (i64 d : shape) box.push_back({0, d});
  return box;
}

i64 numel(const Box& box) {
  i64 n = 1;
  for (const Range& r : box) n *= r.size();
  return n;
}

Strides contiguous(const Box& box) {
  Strides s(box.size());
  i64 step = 1;
  for (size_t d = box.size(); d-- > 0;) {
    s[d] = step;
    step *= box[d].size();
  }
  return s;
}

Strides transposed(const Box& box) {
  REDCO_CHECK(box.size() == 2, "{} dims", box.size());
  return {1, box[0].size()};
}

SegmentWalk::SegmentWalk(const Shape& shape, const Box& box, const Strides& strides, i64 max_count,
                         const Strides& file)
    : max_count_(max_count) {
  REDCO_CHECK(box.size() == shape.size() && strides.size() == shape.size() && max_count > 0);
  bool empty = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    REDCO_CHECK(box[d].begin >= 0 && box[d].begin <= box[d].end && box[d].end <= shape[d],
                "dim {}: [{}, {}) of {}", d, box[d].begin, box[d].end, shape[d]);
    empty = empty || box[d].size() == 0;
  }
  if (empty) return;     // before the product below, because the other dims may be huge
  std::vector<Dim> all;  // from the innermost in the file
  i64 step = 1;
  for (size_t d = shape.size(); d-- > 0; step *= shape[d]) {
    const Dim dim{box[d].size(), file.empty() ? step : file[d], strides[d]};
    file_ += box[d].begin * dim.file;
    if (dim.extent > 1) all.push_back(dim);
  }
  std::stable_sort(all.begin(), all.end(), [](const Dim& a, const Dim& b) { return a.file < b.file; });
  std::vector<Dim> dims;
  for (const Dim& dim : all) {
    if (!dims.empty() && dim.file == dims.back().file * dims.back().extent &&
        dim.memory == dims.back().memory * dims.back().extent) {
      dims.back().extent *= dim.extent;  // dims.back() is the next inner one
    } else {
      dims.push_back(dim);
    }
  }
  if (!dims.empty() && dims.front().file == 1) {
    extent_ = dims.front().extent;
    stride_ = dims.front().memory;
    dims.erase(dims.begin());
  } else {
    extent_ = 1;  // single elements
  }
  std::reverse(dims.begin(), dims.end());
  outer_ = std::move(dims);
  at_.assign(outer_.size(), 0);
  more_ = true;
}

bool SegmentWalk::next(Segment* s) {
  if (!more_) return false;
  i64 count = std::min(max_count_, extent_ - done_);
  *s = {file_ + done_, memory_ + done_ * stride_, count};
  done_ += count;
  if (done_ < extent_) return true;
  done_ = 0;
  for (size_t d = outer_.size();; --d) {
    if (d == 0) {
      more_ = false;
      return true;
    }
    Dim& dim = outer_[d - 1];
    file_ += dim.file;
    memory_ += dim.memory;
    if (++at_[d - 1] < dim.extent) return true;
    at_[d - 1] = 0;
    file_ -= dim.file * dim.extent;
    memory_ -= dim.memory * dim.extent;
  }
}

}  // namespace redco::ckpt
