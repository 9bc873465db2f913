// A line of JSONL data as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "chat/chat_template.h"

namespace redco {

// The line's object. ContentsError, without the place, if the line is not JSON or not an object, is nested
// more than 64 deep, or has a key twice.
// Python's NaN and Infinity are null.
nlohmann::ordered_json parse_example_line(std::string_view line);

// The line's "tools" and "chat_template_kwargs", each as JSON or as a text of JSON. ContentsError, without
// the place, for other values.
ChatVariables chat_variables(const nlohmann::ordered_json& line);

}  // namespace redco
