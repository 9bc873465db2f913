// The `predict:` section: what is asked of the model, and how it answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

struct PredictSettings {
  std::optional<std::string> input, output, checkpoint;
  std::vector<std::string> prompt;
  i64 max_new_tokens = 64;
  double temperature = 0;
  std::optional<i64> top_k;
  double top_p = 1;
  i64 seed = 42;
  i64 batch_size = 8;

  void visit(SettingsVisitor& v) {
    v.field("input", input, "JSONL file of prompts, plain or .gz, one {\"prompt\": ...} a line").path();
    v.field("output", output, "JSONL file of predictions; ~ is the terminal").path();
    v.field("checkpoint", checkpoint,
            "which weights; ~ is last where workdir holds a checkpoint, else model.path")
        .looks_like("last, best-METRIC or a path");
    v.field("prompt", prompt, "a text to go on from, or several").one_or_more();
    v.field("max_new_tokens", max_new_tokens, "most tokens generated for a prompt")
        .at_least(1)
        .at_most(1 << 24);
    v.field("temperature", temperature, "0 takes the likeliest token; above, tokens are drawn").at_least(0);
    v.field("top_k", top_k, "draw among the k likeliest tokens").at_least(1);
    v.field("top_p", top_p, "draw among the likeliest tokens that hold this much probability")
        .above(0)
        .at_most(1);
    v.field("seed", seed, "of the draws").at_least(0);
    v.field("batch_size", batch_size, "prompts a replica answers at once").at_least(1).at_most(1 << 20);
  }
};

}  // namespace redco
