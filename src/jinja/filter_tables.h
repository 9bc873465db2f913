// Tables of the built-in filters, by kind. filters.h looks names up in them.
#pragma once

#include <map>
#include <string_view>

#include "jinja/value.h"

namespace redco::jinja {

using Filter = Value (*)(const Value& operand, Arguments& arguments);
using FilterTable = std::map<std::string_view, Filter>;

const FilterTable& sequence_filters();
const FilterTable& number_filters();
const FilterTable& text_filters();

// For optional arguments: whether it is given and not none; its truth.
inline bool given(const Value* v) { return v && !v->is(Kind::none); }
inline bool flag(const Value* v, bool otherwise = false) { return v ? truth(*v) : otherwise; }

}  // namespace redco::jinja
