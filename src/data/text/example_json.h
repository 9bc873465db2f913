// A line of JSONL data as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace redco {

// The line's object. ContentsError, without the place, if the line is not JSON or not an object, is nested
// more than 64 deep, or has a key twice.
nlohmann::ordered_json parse_example_line(std::string_view line);

}  // namespace redco
