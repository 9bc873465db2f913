#include "base/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace redco::ckpt {

using nlohmann::json;

json parse_strict_json(std::string_view text, const std::string& where, int max_depth) {
  if (text.find('\0') != text.npos)  // the parser would take it for the end
    throw ContentsError("{}: the file has a zero byte, which JSON does not allow", where);
  std::vector<std::set<std::string>> keys;  // of each open object
  auto on_event = [&](int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= max_depth) throw ContentsError("{}: nested deeper than {} levels", where, max_depth);
      if (event == Event::object_start) keys.emplace_back();
    } else if (event == Event::object_end) {
      keys.pop_back();
    } else if (event == Event::key && !keys.back().insert(value.get_ref<const std::string&>()).second) {
      throw ContentsError("{}: the key {} appears twice", where, shown(value.get_ref<const std::string&>()));
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), on_event);
  } catch (const json::exception& e) {
    std::string what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 9: ..."
    size_t begin = what.find("] ");
    throw ContentsError("{}: not valid JSON: {}", where,
                        shown(what.substr(begin == what.npos ? 0 : begin + 2)));
  }
}

std::string shown(std::string_view text) {
  std::string s(text.substr(0, 200));
  for (char& c : s)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.size() <= 200 ? s : s + "...";
}

json read_strict_json(const std::string& path, i64 max_bytes) {
  return parse_strict_json(read_file(path, max_bytes), path);
}

}  // namespace redco::ckpt
