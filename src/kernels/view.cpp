#include "kernels/view.h"

namespace redco {

Strides row_major(const Shape& s, i64 group) {
  Strides out(s.size());
  i64 n = 1;
  for (int d = static_cast<int>(s.size()) - 1; d >= 0; --d) {
    out[d] = n;
    n *= d + 1 == static_cast<int>(s.size()) ? ceil_div(s[d], group) * group : s[d];
  }
  return out;
}

View View::narrowed(int d, i64 start, i64 size) const {
  View v = *this;
  v.strides = steps();
  v.data = data.plus(bytes_of(dtype, start * v.strides[d]));
  v.shape[d] = size;
  return v;
}

}  // namespace redco
