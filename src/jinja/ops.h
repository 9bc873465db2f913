// Operators, attributes and subscripts of values, as in jinja2's sandbox.
#pragma once

#include <string>

#include "jinja/value.h"

namespace redco::jinja {

Value binary(const std::string& op, const Value& a, const Value& b);  // + - * / // % **
Value negative(const Value& v);
bool compare(const std::string& op, const Value& a, const Value& b);  // == != < <= > >= in, not in
bool contains(const Value& container, const Value& v);

// object.name: the method of that name, else the item; undefined if there is neither.
Value attribute(const Value& object, const std::string& name);
// object[key]: the item, else the method of that name.
Value item(const Value& object, const Value& key);
Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);

// "text".format(...) and "text" % values.
std::string format_braces(const std::string& text, const Arguments& a);
std::string format_percent(const std::string& text, const Value& values);

// A method of a text, dict, list, ... as a function; undefined if there is none of that name. Failure for
// methods that the sandbox forbids (append, update, ...).
Value method(const Value& object, const std::string& name);

// The integer or text; Failure for other values and integers beyond 64 bits. `what` names the argument.
i64 need_int(const Value& v, const char* what);
const std::string& need_text(const Value& v, const char* what);
// Python's int(text, base) and float(text); false if the text is not such a number.
bool parse_int(std::string_view text, i64 base, i64* out);
bool parse_float(std::string_view text, double* out);

// JSON as Python's json.dumps writes it. indent: none writes one line.
std::string to_json(const Value& v, bool ensure_ascii, const Value& indent, const Value& separators,
                    bool sort_keys);
// The value of a JSON text. ContentsError, starting with `where`, for invalid JSON.
Value from_json(std::string_view json, const std::string& where);

}  // namespace redco::jinja
