// Reads flatbuffers, in which Arrow stores its metadata. Every offset is checked: what leaves the bytes is a
// ContentsError without the place. Absent fields have their defaults.
#pragma once

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/types.h"

namespace redco {

[[noreturn]] inline void broken_metadata() { throw ContentsError("its metadata are damaged"); }

class FlatTable {
 public:
  // The root table of a buffer. An empty one has no fields.
  static FlatTable root(std::string_view buffer);
  FlatTable() = default;

  bool has(int field) const { return place(field) != 0; }
  template <class T>
  T number(int field, T otherwise) const {
    const std::size_t at = place(field);
    return at == 0 ? otherwise : read<T>(at);
  }
  std::string_view text(int field) const;  // "" if it is absent
  FlatTable table(int field) const;        // also the table of a union

  // Vectors; those of absent fields are empty.
  std::size_t n_elements(int field) const;
  FlatTable element(int field, std::size_t i) const;  // of a vector of tables
  // Number `k` of element i of a vector of structs or numbers, which have `per` numbers each.
  i64 element_number(int field, std::size_t i, std::size_t k = 0, std::size_t per = 1) const;

 private:
  FlatTable(std::string_view buffer, std::size_t at);
  template <class T>
  T read(std::size_t at) const {
    if (at > buffer_.size() || sizeof(T) > buffer_.size() - at) broken_metadata();
    T v;
    std::memcpy(&v, buffer_.data() + at, sizeof v);
    return v;
  }
  std::size_t place(int field) const;                       // of a field's value; 0: absent
  std::size_t target(std::size_t at) const;                 // to which the offset at `at` points
  std::size_t elements(int field, std::size_t size) const;  // place of the first of elements of `size` bytes

  std::string_view buffer_;
  std::size_t at_ = 0, vtable_ = 0, vtable_size_ = 0;
};

}  // namespace redco
