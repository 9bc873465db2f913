#include "kernels/view.h"

namespace redco {

Strides row_major(const Shape& s) {
  Strides out(s.size());
  i64 n = 1;
  for (int d = static_cast<int>(s.size()) - 1; d >= 0; --d) {
    out[d] = n;
    n *= s[d];
  }
  return out;
}

View View::narrowed(int d, i64 start, i64 size) const {
  View v = *this;
  v.strides = steps();
  v.data = data.plus(start * v.strides[d] * size_of(dtype));
  v.shape[d] = size;
  return v;
}

}  // namespace redco
