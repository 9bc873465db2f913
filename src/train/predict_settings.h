// The `predict:` section: what is asked of the model, and how it answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generate/generation_settings.h"

namespace redco {

struct PredictSettings : GenerationSettings {
  std::optional<std::string> input, output, checkpoint;
  std::vector<std::string> prompt;
  std::optional<std::string> system;
  bool overwrite = false, skip_bad = false;
  std::string truncate_prompt = "never";
  i64 batch_size = 8;

  void visit(SettingsVisitor& v) {
    v.field("input", input,
            "JSONL file, plain or .gz, an object a line: {\"prompt\": text}, {\"text\": text} or "
            "{\"messages\": [...]} for the model's chat template; an \"id\" is kept")
        .path();
    v.field("output", output,
            "JSONL file of predictions, in the input's order; ~ is the terminal. A run that was stopped goes "
            "on where its file ends")
        .path();
    v.field("overwrite", overwrite, "begin predict.output anew instead of going on");
    v.field("skip_bad", skip_bad, "leave out lines of the input that can't be used, and say how many");
    v.field("checkpoint", checkpoint,
            "the checkpoint whose weights and settings are used; ~ is `last` if workdir is given, else the "
            "weights are those of model.path")
        .looks_like("last, best-METRIC or a path");
    v.field("prompt", prompt, "a text to go on from, or several").one_or_more();
    v.field("system", system, "chat: the system message that a conversation begins with");
    v.field("truncate_prompt", truncate_prompt,
            "what to do with a prompt too long for the model: left drops its beginning, so that "
            "max_new_tokens fit; never is an error")
        .one_of({"never", "left"});
    v.field("batch_size", batch_size, "answers a replica works on at once").at_least(1).at_most(1 << 20);
    GenerationSettings::visit(v);
  }
};

}  // namespace redco
