#include "commands/convert.h"

#include "commands.h"

namespace redco::cli {

void add_convert(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<ConvertOptions>();
  CLI::App* c =
      add_command(app, "convert",
                  "Convert a model to a Hugging Face folder or a GGUF file, or a LoRA adapter to a GGUF file",
                  "  redco convert models/smollm2 --to gguf --dtype q4_k --output smollm2.gguf\n"
                  "  redco convert model.gguf --to hf --output models/mine\n"
                  "  redco convert runs/lora/checkpoints/last --to gguf --output adapter.gguf\n");
  expand_paths(c->add_option("MODEL", o->model,
                             "folder of a model or of a LoRA adapter, GGUF file, or id in the hub's cache"))
      ->required();
  c->add_option("--to", o->to, "format to write")->check(CLI::IsMember({"hf", "gguf"}))->required();
  expand_paths(c->add_option("--output", o->output, "folder or .gguf file to write"))->required();
  c->add_option(
       "--dtype", o->dtype,
       "type of the matrices; default: f32 with --to hf, f16 with --to gguf. Vectors are f32 in a GGUF "
       "file")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q4_k", "q6_k"}));
  expand_paths(
      c->add_option("--base", o->base,
                    "folder of an adapter's base model; default: base_model_name_or_path of its config"));
  expand_paths(c->add_option(
      "--calibration", o->calibration,
      "file of texts, as data.calibration: weights whose layers have large inputs on these texts are quantized "
      "more exactly, with q4_0, q4_1, q4_k and q6_k"));
  c->callback([o, &run] { run.exit_code = run_convert(*o); });
}

}  // namespace redco::cli
