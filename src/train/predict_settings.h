// The `predict:` section: prompts, output file and generation settings.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generate/generation_settings.h"

namespace redco {

// Variables of the chat template: name -> JSON text.
struct TemplateVariables {
  std::map<std::string, std::string> values;

  void visit(SettingsVisitor& v) {
    v.rest(values, "variable of the chat template, e.g. enable_thinking: false (Qwen3)");
  }
};

struct PredictSettings : GenerationSettings {
  std::optional<std::string> input, output, images, checkpoint;
  std::vector<std::string> prompt;
  std::optional<std::string> system, tools;
  TemplateVariables chat_template_kwargs;
  bool overwrite = false, skip_bad = false;
  std::string truncate_prompt = "never";
  i64 batch_size = 8;

  void visit(SettingsVisitor& v) {
    v.field(
         "input", input,
         "JSONL file of prompts (.gz and .zst are read too), one object per line: {\"prompt\": text}, "
         "{\"text\": text} or {\"messages\": [...]} for the model's chat template; an \"id\" is copied to "
         "the output; or builtin:NAME, the evaluation lines of a built-in data set; or a folder of images, "
         "sorted by name")
        .path();
    v.field(
         "output", output,
         "JSONL file of predictions, in the order of the input; ~: the terminal. A run that was stopped "
         "continues after the last line of this file. Of embeddings also a .npy or .safetensors file, with "
         "a row for each line of the input")
        .path();
    v.field("images", images,
            "folder for the images of answers, NUMBER.png or NUMBER-ID.png, for pipelines that make images; "
            "~: the images are data URIs in predict.output, or files in the current folder for prompts "
            "without an output file")
        .path();
    v.field("overwrite", overwrite, "overwriting of predict.output; false: continue an unfinished file");
    v.field("skip_bad", skip_bad,
            "skipping of bad input lines, with a count in the log; false: the first bad line is an error");
    v.field("checkpoint", checkpoint,
            "checkpoint whose weights and settings are used; ~: last if workdir is set, else the weights of "
            "model.path")
        .looks_like("last, best-METRIC or a path")
        .path();
    v.field("prompt", prompt, "prompt text, or a list of them").one_or_more().literal();
    v.field("system", system, "system message of chats that begin without one").literal();
    v.field(
         "tools", tools,
         "JSON file with a list of tools for the chat template, [{\"type\": \"function\", \"function\": {...}}]; "
         "the \"tools\" of a line replace them")
        .path();
    v.section("chat_template_kwargs", chat_template_kwargs,
              "Variables of the chat template, as the argument of transformers' apply_chat_template; the "
              "\"chat_template_kwargs\" of a line precede these");
    v.field("truncate_prompt", truncate_prompt,
            "action when a prompt and max_new_tokens exceed the model's maximum length: never is an error, "
            "left drops tokens from the start of the prompt")
        .one_of({"never", "left"});
    v.field("batch_size", batch_size, "answers generated in parallel per replica")
        .at_least(1)
        .at_most(1 << 20);
    GenerationSettings::visit(v);
  }
};

}  // namespace redco
