#include "metrics/metric_direction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace redco {

namespace {

constexpr std::array kMore = {
    "accuracy",  "acc",      "bleu", "sacrebleu", "chrf", "cider",  "correlation", "em",       "f1",
    "match",     "matthews", "mcc",  "meteor",    "auc",  "map",    "pearson",     "spearman", "pearsonr",
    "spearmanr", "recall",   "ndcg", "mrr",       "r2",   "return", "reward",      "precision"};
constexpr std::array kLess = {"loss", "nll", "perplexity", "ppl",  "error", "err", "wer",  "cer",
                              "ter",  "mse", "mae",        "mape", "rmse",  "kl",  "cost", "regret"};

// "eval_rougeL" -> eval, rougel
std::vector<std::string> parts(const std::string& name) {
  std::vector<std::string> out(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  return out;
}

}  // namespace

std::optional<bool> more_is_better(const std::string& metric) {
  std::optional<bool> out;
  for (const std::string& p : parts(metric)) {
    const bool more = p.starts_with("rouge") || std::find(kMore.begin(), kMore.end(), p) != kMore.end();
    const bool less = std::find(kLess.begin(), kLess.end(), p) != kLess.end();
    if (!more && !less) continue;
    if (out && *out != more) return std::nullopt;  // accuracy_loss
    out = more;
  }
  return out;
}

}  // namespace redco
