#include "ckpt/eval_files.h"

#include <string_view>

#include "ckpt/publish.h"

namespace redco::ckpt {

namespace {
constexpr std::string_view kAnswersEnding = ".jsonl", kDetailsEnding = ".details.json";
}

std::string file_name_of(const EvalFile& f) {
  std::string name = step_name(f.step);
  if (!f.set.empty()) name += "." + f.set;
  return name.append(f.details ? kDetailsEnding : kAnswersEnding);
}

std::optional<EvalFile> parse_eval_file(const std::string& name) {
  EvalFile f;
  f.details = name.ends_with(kDetailsEnding);
  if (!f.details && !name.ends_with(kAnswersEnding)) return std::nullopt;
  const std::string stem = name.substr(0, name.size() - (f.details ? kDetailsEnding : kAnswersEnding).size());
  const std::size_t dot = stem.find('.');
  const auto step = parse_step_name(stem.substr(0, dot));
  if (!step) return std::nullopt;
  f.step = *step;
  if (dot != std::string::npos) f.set = stem.substr(dot + 1);
  return f;
}

}  // namespace redco::ckpt
