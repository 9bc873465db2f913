// Reads Thrift's compact protocol, in which Parquet stores its metadata. All reads are checked: a field that
// leaves the bytes is a ContentsError without the place.
#pragma once

#include <string_view>

#include "base/types.h"

namespace redco {

class ThriftReader {
 public:
  enum Type : std::uint8_t {
    stop = 0,
    yes = 1,
    no = 2,
    byte = 3,
    i16 = 4,
    i32 = 5,
    i64_ = 6,
    real = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12
  };

  explicit ThriftReader(std::string_view bytes) : bytes_(bytes) {}
  std::size_t position() const { return at_; }

  // Calls f(id, type) for each field of a struct; f reads the value or returns false, and it is skipped.
  template <class F>
  void fields(F f) {
    enter();
    for (i64 id = 0;;) {
      const auto head = static_cast<std::uint8_t>(next());
      const auto type = static_cast<Type>(head & 15);
      if (type == stop) break;
      id = head >> 4 ? id + (head >> 4) : integer();
      if (!f(id, type)) skip(type);
    }
    --depth_;
  }
  // Calls f() for each element of a list of structs or values.
  template <class F>
  void elements(F f) {
    enter();
    const auto [n, type] = list_head();
    for (u64 i = 0; i < n; ++i) f();
    --depth_;
  }

  i64 integer();            // of any width
  std::string_view text();  // of type binary

 private:
  struct Head {
    u64 size;
    Type type;
  };
  char next();
  u64 varint();
  Head list_head();
  void enter();
  void skip(Type type);

  std::string_view bytes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace redco
