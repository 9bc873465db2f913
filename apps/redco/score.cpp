#include "commands/score.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "commands.h"

namespace redco::cli {

void add_score(CLI::App& app, Invocation& run) {
  struct Options {
    std::vector<std::string> files;
    ScoreOptions score;
    bool no_stemmer = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "score", "Compute metrics of predictions against references; prints one JSON object",
                  "  redco score runs/x/predictions.jsonl --metrics rouge,bleu\n"
                  "  redco score labels.jsonl --metrics accuracy,f1\n");
  c->add_option("FILE", o->files,
                "JSONL, plain, .gz or .zst, of {\"prediction\": ..., \"reference\": ...} or \"references\": "
                "[...]; - is standard input")
      ->required();
  c->add_option("--metrics", o->score.metrics,
                "rouge, bleu, chrf, chrf++, exact_match, accuracy, f1, matthews, pearson, spearman")
      ->delimiter(',')
      ->capture_default_str();
  c->add_flag("--no-stemmer", o->no_stemmer, "rouge: compare words without stemming");
  c->add_flag("--lowercase", o->score.text.lowercase, "bleu, chrf: compare lower-cased texts");
  c->callback([o, &run] {
    if (o->files.size() > 1)
      throw UsageError(
          "score takes one file whose lines hold both texts, {{\"prediction\": ..., \"reference\": ...}}, but got "
          "{} files: {}. Join them, e.g. by `paste`",
          o->files.size(), fmt::join(o->files, ", "));
    o->score.text.use_stemmer = !o->no_stemmer;
    nlohmann::ordered_json j;
    for (const auto& [name, value] : score_file(o->files[0], o->score)) {
      if (name == "n")
        j[name] = static_cast<i64>(value);
      else
        j[name] = std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
    }
    std::puts(j.dump().c_str());
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
