#include "base/jsonl.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"

namespace redco {

JsonLines::JsonLines(const std::string& path)
    : name_(path == "-" ? "standard input" : path), reader_(path == "-" ? "/dev/stdin" : path) {}

bool JsonLines::next(std::string& line) {
  while (reader_.next(line))
    if (line.find_first_not_of(" \t\r") != std::string::npos) return true;
  return false;
}

std::string JsonLines::where(i64 line_number) const { return fmt::format("{}:{}", name_, line_number); }

std::string without_python_numbers(std::string_view text) {
  std::string out(text);
  bool in_text = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (in_text) {
      if (out[i] == '\\')
        ++i;
      else
        in_text = out[i] != '"';
      continue;
    }
    in_text = out[i] == '"';
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (std::string_view(out).substr(i, word.size()) != word) continue;
      out.replace(i, word.size(), "null");
      i += 3;
      break;
    }
  }
  return out;
}

nlohmann::ordered_json parse_json_line(std::string_view line, const std::string& where) {
  auto j = nlohmann::ordered_json::parse(line, nullptr, false);
  if (j.is_discarded() && (line.find("NaN") != line.npos || line.find("Infinity") != line.npos))
    j = nlohmann::ordered_json::parse(without_python_numbers(line), nullptr, false);
  if (!j.is_object())
    throw ContentsError("{}: not a JSON object: {}. Expected one object per line, {{\"key\": value, ...}}",
                        where, excerpt(line));
  return j;
}

std::string json_line_text(const nlohmann::ordered_json& object, const char* key, const std::string& where) {
  const auto it = object.find(key);
  if (it == object.end())
    throw ContentsError("{}: the field \"{}\" is missing; expected a string", where, key);
  if (!it->is_string())
    throw ContentsError("{}: \"{}\" is of type {}; expected a string", where, key, it->type_name());
  return it->get<std::string>();
}

}  // namespace redco
