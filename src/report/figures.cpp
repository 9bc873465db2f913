#include "report/figures.h"

#include <algorithm>
#include <set>

#include "report/html.h"

namespace redco {

namespace {

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace

bool is_evaluation(const std::string& curve) { return curve.starts_with("eval_") && curve != "eval_s"; }

std::string words(std::string curve) {
  if (curve.starts_with("eval_")) curve = "evaluation " + curve.substr(5);
  std::replace(curve.begin(), curve.end(), '_', ' ');
  return curve;
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string badge(const RunState& state) {
  const std::string name = name_of(state.kind);
  const std::string kind = state.kind == RunState::Kind::unknown ? "unknown" : name;
  return "<span class=\"badge " + kind + "\">" + name + "</span>";
}

std::vector<Figure> figures(const Curves& curves) {
  constexpr std::size_t kMost = 40;
  std::vector<Figure> out = {
      {"Return", {{"training", "episode_return"}, {"evaluation", "eval_mean_return"}}},
      {"Loss", {{"training", "loss"}, {"evaluation", "eval_loss"}}},
  };
  const std::vector<Figure> known = {{"Learning rate", {{"", "learning_rate"}}},
                                     {"Gradient norm", {{"", "grad_norm"}}},
                                     {"Tokens per second", {{"", "tokens_per_s"}}},
                                     {"Seconds per step", {{"", "step_s"}}},
                                     {"Share of peak matmul speed", {{"", "ceiling_share"}}}};
  // The losses of named evaluation sets.
  for (const auto& [name, series] : curves)
    if (is_evaluation(name) && name.ends_with("_loss") && name != "eval_loss")
      out[1].lines.emplace_back(words(name.substr(0, name.size() - 5)), name);
  std::set<std::string> used = {"epoch", "eval_s", "peak_memory_bytes"}, there;
  for (const auto& all : {out, known})
    for (const Figure& f : all)
      for (const auto& line : f.lines) used.insert(line.second);
  for (const auto& [name, series] : curves) there.insert(name);
  const auto rest = [&](bool evaluations) {
    for (const auto& [name, series] : curves) {
      if (is_evaluation(name) != evaluations || used.count(name)) continue;
      const std::string training = evaluations ? name.substr(5) : name, evaluation = "eval_" + training;
      used.insert(training);
      used.insert(evaluation);
      if (there.count(training) && there.count(evaluation))
        out.push_back({capital(words(training)), {{"training", training}, {"evaluation", evaluation}}});
      else
        out.push_back({capital(words(name)), {{"", name}}});
    }
  };
  rest(true);
  out.insert(out.end(), known.begin(), known.end());
  rest(false);
  std::erase_if(out, [&](const Figure& f) {
    return std::none_of(f.lines.begin(), f.lines.end(),
                        [&](const auto& line) { return there.count(line.second) > 0; });
  });
  if (out.size() > kMost) out.resize(kMost);
  return out;
}

}  // namespace redco
