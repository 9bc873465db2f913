#include "data/arrow/arrow_schema.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "data/parquet/class_names.h"

namespace redco {

namespace {

constexpr int kMaxFieldDepth = 32;

// Numbers of the members of the union Type (Schema.fbs).
enum ArrowType : std::uint8_t {
  type_null = 1,
  type_int = 2,
  type_floating_point = 3,
  type_binary = 4,
  type_utf8 = 5,
  type_bool = 6,
  type_decimal = 7,
  type_date = 8,
  type_time = 9,
  type_timestamp = 10,
  type_interval = 11,
  type_list = 12,
  type_struct = 13,
  type_union = 14,
  type_fixed_size_binary = 15,
  type_fixed_size_list = 16,
  type_map = 17,
  type_duration = 18,
  type_large_binary = 19,
  type_large_utf8 = 20,
  type_large_list = 21,
  type_run_end_encoded = 22,
  type_binary_view = 23,
  type_utf8_view = 24,
  type_list_view = 25,
  type_large_list_view = 26
};

i64 bytes_of_bits(i64 bits) {
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) broken_metadata();
  return bits / 8;
}

[[noreturn]] void unknown_type(const ArrowField& f, int type) {
  throw UsageError(
      "column {} has the type {}, which redco does not read. Cast or remove the column, or write the data set "
      "as Parquet: dataset.to_parquet('data.parquet')",
      f.name,
      type == type_interval                                    ? "interval"
      : type == type_union                                     ? "union"
      : type == type_run_end_encoded                           ? "run-end encoded"
      : type == type_list_view || type == type_large_list_view ? "list view"
                                                               : "of a newer version of Arrow");
}

void set_layout(ArrowField& f, int type, const FlatTable& t) {
  const auto set = [&](ArrowLayout layout, i64 width = 0) {
    f.layout = layout;
    f.width = width;
  };
  switch (type) {
    case type_null:
      return set(ArrowLayout::null);
    case type_int:
      f.is_signed = t.number<std::uint8_t>(1, 0) != 0;
      return set(ArrowLayout::integer, bytes_of_bits(t.number<i32>(0, 0)));
    case type_floating_point: {
      const i64 precision = t.number<std::int16_t>(0, 0);
      if (precision < 0 || precision > 2) broken_metadata();
      return set(ArrowLayout::real, 2 << precision);
    }
    case type_bool:
      return set(ArrowLayout::boolean);
    case type_decimal: {
      const i64 bits = t.number<i32>(2, 128);
      if (bits != 32 && bits != 64 && bits != 128 && bits != 256) broken_metadata();
      f.scale = t.number<i32>(1, 0);
      return set(ArrowLayout::decimal, bits / 8);
    }
    case type_date:
      return set(ArrowLayout::integer, t.number<std::int16_t>(0, 1) == 0 ? 4 : 8);
    case type_time:
      return set(ArrowLayout::integer, bytes_of_bits(t.number<i32>(1, 32)));
    case type_timestamp:
    case type_duration:
      return set(ArrowLayout::integer, 8);
    case type_binary:
    case type_utf8:
    case type_large_binary:
    case type_large_utf8:
      f.is_text = type == type_utf8 || type == type_large_utf8;
      return set(ArrowLayout::text, type >= type_large_binary ? 8 : 4);
    case type_binary_view:
    case type_utf8_view:
      f.is_text = type == type_utf8_view;
      return set(ArrowLayout::view, 16);
    case type_fixed_size_binary:
      set(ArrowLayout::fixed, t.number<i32>(0, 0));
      break;
    case type_list:
    case type_large_list:
    case type_map:
      f.is_map = type == type_map;
      return set(ArrowLayout::list, type == type_large_list ? 8 : 4);
    case type_fixed_size_list:
      set(ArrowLayout::fixed_list, t.number<i32>(0, 0));
      break;
    case type_struct:
      return set(ArrowLayout::structure);
    default:
      unknown_type(f, type);
  }
  if (f.width < 0) broken_metadata();
}

ArrowField read_field(const FlatTable& t, int depth) {
  if (depth > kMaxFieldDepth) broken_metadata();
  ArrowField f;
  f.name = t.text(0);
  if (!is_utf8(f.name)) broken_metadata();
  set_layout(f, t.number<std::uint8_t>(2, 0), t.table(3));
  if (t.has(4)) {
    const FlatTable d = t.table(4);
    f.dictionary = d.number<i64>(0, 0);
    const FlatTable index = d.table(1);
    f.index_width = d.has(1) ? bytes_of_bits(index.number<i32>(0, 0)) : 4;
    f.index_signed = !d.has(1) || index.number<std::uint8_t>(1, 0) != 0;
  }
  for (std::size_t i = 0; i < t.n_elements(5); ++i)
    f.children.push_back(read_field(t.element(5, i), depth + 1));
  const bool one = f.layout == ArrowLayout::list || f.layout == ArrowLayout::fixed_list;
  if (f.layout != ArrowLayout::structure && f.children.size() != one) broken_metadata();
  if (f.is_map && (f.children[0].layout != ArrowLayout::structure || f.children[0].children.size() != 2))
    broken_metadata();
  return f;
}

void name_field(ArrowField& f, const nlohmann::json& feature) {
  if (f.layout == ArrowLayout::integer) {
    f.class_names = names_of_classes(feature);
  } else if (f.layout == ArrowLayout::list || f.layout == ArrowLayout::fixed_list) {
    if (const nlohmann::json* element = feature_of_elements(feature)) name_field(f.children[0], *element);
  } else if (feature.is_object()) {
    for (ArrowField& c : f.children)
      if (const auto it = feature.find(c.name); it != feature.end()) name_field(c, *it);
  }
}

}  // namespace

ArrowField read_arrow_schema(const FlatTable& schema) {
  if (schema.number<std::int16_t>(0, 0) != 0)
    throw UsageError("its numbers are big-endian, which redco does not read. Write it again on this machine");
  ArrowField root;
  root.layout = ArrowLayout::structure;
  for (std::size_t i = 0; i < schema.n_elements(1); ++i)
    root.children.push_back(read_field(schema.element(1, i), 1));
  if (root.children.empty()) throw ContentsError("it has no columns");
  for (std::size_t i = 0; i < schema.n_elements(2); ++i)
    if (const FlatTable entry = schema.element(2, i); entry.text(0) == "huggingface")
      name_field(root, features_of(entry.text(1)));
  return root;
}

}  // namespace redco
