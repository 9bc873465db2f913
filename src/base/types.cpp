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
    case DType::q4_0:
      return "q4_0";
    case DType::q5_0:
      return "q5_0";
    case DType::q5_1:
      return "q5_1";
    case DType::q4_k:
      return "q4_k";
    case DType::q5_k:
      return "q5_k";
    case DType::q6_k:
      return "q6_k";
  }
  return "?";
}

std::string to_string(const Shape& s) { return fmt::format("({})", fmt::join(s, ", ")); }

}  // namespace redco
