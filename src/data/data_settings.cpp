#include "data/data_settings.h"

#include <algorithm>

#include "data/builtin.h"

namespace redco {

namespace {

bool called_jsonl(std::string path) {
  if (is_builtin(path)) return true;
  for (char& c : path)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

}  // namespace

bool DataSettings::is_jsonl() const {
  if (format) return *format == "jsonl";
  return !train.empty() + !eval.empty() > 0 && std::all_of(train.begin(), train.end(), called_jsonl) &&
         std::all_of(eval.begin(), eval.end(), called_jsonl);
}

}  // namespace redco
