#include "base/types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redco {

const char* name_of(DType t) {
  switch (t) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::q8:
      return "int8";
    case DType::q4:
      return "int4";
  }
  return "?";
}

std::string to_string(const Shape& s) { return fmt::format("({})", fmt::join(s, ", ")); }

}  // namespace redco
