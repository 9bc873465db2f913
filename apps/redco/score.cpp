#include "commands/score.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "commands.h"
#include "commands/predict.h"

namespace redco::cli {

void add_score(CLI::App& app, Invocation& run) {
  struct Options {
    std::vector<std::string> files;
    ScoreOptions score;
    bool no_stemmer = false, rerank = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "score", "Compute metrics of predictions against references; prints one JSON object",
                  "  redco score runs/x/predictions.jsonl --metrics rouge,bleu\n"
                  "  redco score labels.jsonl --metrics accuracy,f1\n"
                  "  redco score --rerank model.path=models/ms-marco-MiniLM predict.input=queries.jsonl "
                  "predict.output=ranked.jsonl\n");
  c->add_option("FILE", o->files,
                "JSONL, plain, .gz or .zst, of {\"prediction\": ..., \"reference\": ...} or \"references\": "
                "[...]; - is standard input. With --rerank: a job and overrides")
      ->required();
  c->add_flag(
      "--rerank", o->rerank,
      "score documents by a cross-encoder: predict with pipeline reranking, of lines {\"query\", \"documents\": "
      "[...]}");
  c->add_option("--metrics", o->score.metrics,
                "rouge, bleu, chrf, chrf++, exact_match, accuracy, f1, matthews, pearson, spearman")
      ->delimiter(',')
      ->capture_default_str();
  c->add_flag("--no-stemmer", o->no_stemmer, "rouge: compare words without stemming");
  c->add_flag("--lowercase", o->score.text.lowercase, "bleu, chrf: compare lower-cased texts");
  c->callback([o, &run] {
    if (o->rerank) {
      auto words = std::make_shared<JobArguments>();
      words->words = o->files;
      const auto given = words->overrides();
      const bool named =
          std::ranges::any_of(given, [](const std::string& w) { return w.starts_with("pipeline="); });
      if (words->files().empty() && !named) words->words.insert(words->words.begin(), "pipeline=reranking");
      run.exit_code = run_predict({.job = [words] { return words->load(); }, .program = run.argv});
      return;
    }
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
