#include "verify/generation.h"

#include "base/error.h"
#include "base/file.h"
#include "generate/forward_pass.h"
#include "generate/generate.h"
#include "generate/sampling.h"
#include "ops/create.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

class Generations {
 public:
  Generations(const Expected& e, const Model& m, const ParamTree& p, const GenerationTokens& t,
              const GenerationChecks& c)
      : expected_(e), model_(m), params_(p), tokens_(t), checks_(c) {}

  void run() {
    for (const std::string prefix : {"", "padded_"}) {
      if (!load(prefix)) continue;
      for (const Expected::Generation& g : expected_.generations()) {
        const std::string name = prefix + g.name;
        if (expected_.has(name)) check(name, g.settings);
      }
      if (prefix.empty() && expected_.has("sample_probs_t07_k20_p09")) sampling();
    }
  }

 private:
  bool speech() const { return model_.task() == ModelTask::speech_to_text; }
  bool reads_values() const { return speech() || model_.task() == ModelTask::image_captioning; }

  // Reads the prompts; false if the file has none.
  bool load(const std::string& prefix) {
    const std::string ids = prefix.empty() ? "gen_input_ids" : prefix + "input_ids",
                      mask = prefix.empty() ? "gen_attention_mask" : prefix + "attention_mask";
    examples_.clear();
    heads_.clear();
    if (reads_values()) {
      const std::string input = speech() ? "input_features" : "pixel_values";
      if (!prefix.empty() || !expected_.has(input)) return false;
      const Shape shape = expected_.shape(input);
      if (shape.size() != (speech() ? 3 : 4))
        throw ContentsError("[verify] {}: '{}' has shape {}, expected {} dims", expected_.path(), input,
                            to_string(shape), speech() ? 3 : 4);
      const auto values = expected_.values(input);
      image_ = Shape(shape.begin() + 1, shape.end());
      const i64 size = numel(image_);
      for (i64 r = 0; r < shape[0]; ++r) {
        Example e;
        e.ordinal = r;
        e.values["input"].assign(values.begin() + r * size, values.begin() + (r + 1) * size);
        examples_.push_back(std::move(e));
      }
    } else {
      if (!expected_.has(ids)) return false;
      expected_.check_ids(ids, model_.vocab_size());
      const Shape shape = expected_.shape(ids);
      const auto all = expected_.ids(ids);
      const auto masked = expected_.has(mask) ? expected_.ids(mask) : std::vector<i32>(all.size(), 1);
      if (masked.size() != all.size())
        throw ContentsError("[verify] {}: '{}' has {} entries for {} ids", expected_.path(), mask,
                            masked.size(), all.size());
      for (i64 r = 0; r < shape[0]; ++r) {
        Example e;
        e.ordinal = r;
        auto& prompt = e.ids["prompt"];
        for (i64 t = 0; t < shape[1]; ++t)
          if (masked[r * shape[1] + t]) prompt.push_back(all[r * shape[1] + t]);
        if (prompt.empty() || static_cast<i64>(prompt.size()) >= model_.length_limit())
          throw ContentsError("[verify] {}: row {} of '{}' has {} tokens; expected 1 to {}", expected_.path(),
                              r, ids, prompt.size(), model_.length_limit() - 1);
        examples_.push_back(std::move(e));
        // The file's rows begin with the prompt and its padding.
        heads_.emplace_back(all.begin() + r * shape[1], all.begin() + (r + 1) * shape[1]);
      }
    }
    prompts_.clear();
    for (size_t r = 0; r < examples_.size(); ++r) {
      GenerationPrompt p{{}, static_cast<i64>(r)};
      if (!model_.is_encoder_decoder()) {
        p.ids = examples_[r].ids.at("prompt");
      } else {
        if (!tokens_.decoder_start)
          throw ContentsError(
              "[verify] the model's folder has no decoder_start_token_id; set it in config.json");
        p.ids = {*tokens_.decoder_start};
        heads_.resize(examples_.size());
        heads_[r] = p.ids;
      }
      prompts_.push_back(std::move(p));
    }
    return true;
  }

  Memory encode(std::span<const i64> which) const {
    if (!reads_values()) return encode_text(model_, params_, examples_, which, "prompt");
    EncoderInputs in;
    (speech() ? in.features : in.pixel_values) = example_values(examples_, which, "input", image_);
    return {model_.encode(params_, in, {}), {}};
  }

  void check(const std::string& name, const GenerationSettings& s) {
    GenerateOptions o{.batch_size = static_cast<i64>(prompts_.size())};
    if (model_.is_encoder_decoder()) o.encode = [this](std::span<const i64> which) { return encode(which); };
    std::vector<std::vector<i32>> rows = heads_;
    std::vector<double> scores;
    const auto answers = generate(model_, params_, prompts_, s, tokens_, o);
    for (size_t r = 0; r < answers.size(); ++r) {
      rows[r].insert(rows[r].end(), answers[r][0].ids.begin(), answers[r][0].ids.end());
      scores.push_back(answers[r][0].score);
    }
    // The filler after the end of a row: transformers' beam search treats a padding id of 0 as no padding id.
    const bool by_end = s.num_beams > 1 && tokens_.pad == 0 && !tokens_.eos.empty();
    checks_.ids(name, rows, by_end ? tokens_.eos[0] : tokens_.pad);
    const std::string score_name = name.substr(0, name.rfind("_ids")) + "_scores";
    if (s.num_beams > 1 && expected_.has(score_name)) checks_.values(score_name, scores);
  }

  void sampling() {
    if (model_.is_encoder_decoder()) return;
    GenerationSettings s;
    s.temperature = 0.7;
    s.top_k = 20;
    s.top_p = 0.9;
    std::vector<std::vector<i32>> prompts;
    for (const GenerationPrompt& p : prompts_) prompts.push_back(p.ids);
    const auto logits = next_token_logits(model_, params_, prompts);
    std::vector<double> got;
    const i64 V = model_.vocab_size();
    for (size_t r = 0; r < prompts.size(); ++r)
      for (const float p : sampling_probabilities(std::span<const float>(logits).subspan(r * V, V), s))
        got.push_back(p);
    checks_.values("sample_probs_t07_k20_p09", got);
  }

  const Expected& expected_;
  const Model& model_;
  const ParamTree& params_;
  const GenerationTokens& tokens_;
  const GenerationChecks& checks_;
  std::vector<Example> examples_;
  std::vector<GenerationPrompt> prompts_;
  std::vector<std::vector<i32>> heads_;  // the beginnings of the file's rows of ids
  Shape image_;                          // of an image, or of a recording
};

}  // namespace

void check_generation(const std::string& folder, const Expected& expected, const Model& model,
                      const ParamTree& params, const GenerationChecks& checks) {
  const GenerationTokens tokens = generation_tokens(folder, model.config(), nullptr);
  Generations(expected, model, params, tokens, checks).run();
}

}  // namespace redco
