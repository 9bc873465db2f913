#include "base/json_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace redco {
namespace {

std::string shown(const nlohmann::json& v) {
  std::string s = v.is_structured() ? std::string(v.type_name())
                                    : v.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return s.size() > 100 ? s.substr(0, 100) + "..." : s;
}

[[noreturn]] void ill_typed(const std::string& where, const nlohmann::json& v, const char* expected) {
  throw ContentsError("{}: found {}, expected {}", where, shown(v), expected);
}

}  // namespace

JsonFields::JsonFields(const nlohmann::json& value, std::string where)
    : value_(value), where_(std::move(where)), known_(" ") {
  if (!value.is_object()) ill_typed(where_, value, "an object");
}

const nlohmann::json* JsonFields::find(const char* name) {
  known_ += name;
  known_ += ' ';
  const auto it = value_.find(name);
  return it == value_.end() || it->is_null() ? nullptr : &*it;
}

const nlohmann::json& JsonFields::need(const char* name) {
  const auto* v = find(name);
  if (v == nullptr) throw ContentsError("{}: the field '{}' is missing; add it", where_, name);
  return *v;
}

bool JsonFields::boolean(const char* name) {
  const auto& v = need(name);
  if (!v.is_boolean()) ill_typed(at(name), v, "true or false");
  return v.get<bool>();
}

bool JsonFields::boolean(const char* name, bool otherwise) {
  return find(name) == nullptr ? otherwise : boolean(name);
}

std::string JsonFields::text(const char* name) {
  const auto& v = need(name);
  if (!v.is_string()) ill_typed(at(name), v, "a string");
  return v.get<std::string>();
}

std::string JsonFields::text(const char* name, const std::string& otherwise) {
  return find(name) == nullptr ? otherwise : text(name);
}

std::string JsonFields::character(const char* name) {
  std::string v = text(name);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  if (v.empty() || std::count_if(v.begin(), v.end(), continues) + 1 != static_cast<std::ptrdiff_t>(v.size()))
    throw ContentsError("{}: found '{}', expected one character", at(name), v.substr(0, 100));
  return v;
}

i64 JsonFields::integer(const char* name) {
  const auto& v = need(name);
  if (!v.is_number_integer() || (v.is_number_unsigned() && v.get<u64>() > static_cast<u64>(INT64_MAX)))
    ill_typed(at(name), v, "an integer");
  return v.get<i64>();
}

i64 JsonFields::integer(const char* name, i64 otherwise) {
  return find(name) == nullptr ? otherwise : integer(name);
}

const nlohmann::json& JsonFields::array(const char* name) {
  const auto& v = need(name);
  if (!v.is_array()) ill_typed(at(name), v, "an array");
  return v;
}

void JsonFields::inert(std::initializer_list<const char*> names) {
  for (const char* n : names) find(n);
}

void JsonFields::finish() {
  for (const auto& [key, v] : value_.items()) {
    if (v.is_null() || known_.find(" " + key + " ") != std::string::npos) continue;
    throw ContentsError("{}: unknown field '{}' = {}; known fields:{}", where_, key.substr(0, 100), shown(v),
                        known_.substr(0, known_.size() - 1));
  }
}

void unknown_type(const std::string& where, const std::string& found, std::string_view supported) {
  throw ContentsError("{}: the type '{}' is not supported; supported types: {}", where, found.substr(0, 100),
                      supported);
}

}  // namespace redco
