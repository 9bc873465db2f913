#include "data/arrow/flat_table.h"

namespace redco {

FlatTable FlatTable::root(std::string_view buffer) {
  FlatTable t;
  t.buffer_ = buffer;
  return FlatTable(buffer, t.target(0));
}

FlatTable::FlatTable(std::string_view buffer, std::size_t at) : buffer_(buffer), at_(at) {
  const i64 vtable = static_cast<i64>(at) - read<i32>(at);
  if (vtable < 0) broken_metadata();
  vtable_ = static_cast<std::size_t>(vtable);
  vtable_size_ = read<std::uint16_t>(vtable_);
}

std::size_t FlatTable::target(std::size_t at) const {
  const std::size_t to = at + read<u32>(at);
  if (to >= buffer_.size()) broken_metadata();
  return to;
}

std::size_t FlatTable::place(int field) const {
  const std::size_t entry = 4 + 2 * static_cast<std::size_t>(field);
  if (entry + 2 > vtable_size_) return 0;
  const auto offset = read<std::uint16_t>(vtable_ + entry);
  return offset == 0 ? 0 : at_ + offset;
}

std::size_t FlatTable::elements(int field, std::size_t size) const {
  const std::size_t first = target(place(field)) + 4;
  if (n_elements(field) > (buffer_.size() - std::min(first, buffer_.size())) / size) broken_metadata();
  return first;
}

std::string_view FlatTable::text(int field) const {
  if (place(field) == 0) return "";
  return buffer_.substr(elements(field, 1), n_elements(field));
}

FlatTable FlatTable::table(int field) const {
  const std::size_t at = place(field);
  return at == 0 ? FlatTable() : FlatTable(buffer_, target(at));
}

std::size_t FlatTable::n_elements(int field) const {
  const std::size_t at = place(field);
  return at == 0 ? 0 : read<u32>(target(at));
}

FlatTable FlatTable::element(int field, std::size_t i) const {
  return FlatTable(buffer_, target(elements(field, 4) + 4 * i));
}

i64 FlatTable::element_number(int field, std::size_t i, std::size_t k, std::size_t per) const {
  return read<i64>(elements(field, 8 * per) + 8 * (per * i + k));
}

}  // namespace redco
