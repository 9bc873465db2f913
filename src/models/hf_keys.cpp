#include "models/hf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace redco {

std::string without_python_floats(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    std::string_view number;
    for (const std::string_view f : {"-Infinity", "Infinity", "NaN"})
      if (!quoted && number.empty() && text.compare(i, f.size(), f) == 0) number = f;
    if (!number.empty()) {
      out += fmt::format(R"({{"__float__": "{}"}})", number);
      i += number.size();
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    out += text[i++];
  }
  return out;
}

std::optional<HfKeys> hf_keys(const std::string& model_type) {
  const HfKeyRows* const end = kHfKeyRows + kHfKeyTypes;
  const HfKeyRows* const found =
      std::find_if(kHfKeyRows, end, [&](const HfKeyRows& r) { return model_type == r.model_type; });
  if (found == end) return std::nullopt;
  HfKeys out;
  for (std::string_view rest = found->rows; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const auto space = line.find(' ');
    if (line[0] == '!') {
      out.attributes[std::string(line.substr(1))];
    } else if (line[0] == '=') {
      out.aliases[std::string(line.substr(1, space - 1))] = line.substr(space + 1);
    } else {
      out.attributes[std::string(line.substr(0, space))] =
          nlohmann::ordered_json::parse(without_python_floats(std::string(line.substr(space + 1))));
    }
  }
  return out;
}

bool is_common_key(const std::string& key) {
  static const std::set<std::string> kKeys = {"architectures",
                                              "model_type",
                                              "transformers_version",
                                              "dtype",
                                              "torch_dtype",
                                              "_name_or_path",
                                              "name_or_path",
                                              "bos_token_id",
                                              "eos_token_id",
                                              "pad_token_id",
                                              "sep_token_id",
                                              "cls_token_id",
                                              "mask_token_id",
                                              "use_cache",
                                              "id2label",
                                              "label2id",
                                              "num_labels",
                                              "problem_type",
                                              "finetuning_task",
                                              "task_specific_params",
                                              "initializer_range",
                                              "init_std",
                                              "gradient_checkpointing",
                                              "return_dict",
                                              "output_hidden_states",
                                              "output_attentions",
                                              "return_dict_in_generate",
                                              "is_decoder",
                                              "is_encoder_decoder",
                                              "max_length",
                                              "min_length",
                                              "do_sample",
                                              "early_stopping",
                                              "num_beams",
                                              "num_beam_groups",
                                              "diversity_penalty",
                                              "temperature",
                                              "top_k",
                                              "top_p",
                                              "typical_p",
                                              "repetition_penalty",
                                              "length_penalty",
                                              "no_repeat_ngram_size",
                                              "encoder_no_repeat_ngram_size",
                                              "bad_words_ids",
                                              "num_return_sequences",
                                              "output_scores",
                                              "remove_invalid_values",
                                              "exponential_decay_length_penalty",
                                              "suppress_tokens",
                                              "begin_suppress_tokens",
                                              "prefix",
                                              "tokenizer_class",
                                              "forced_bos_token_id",
                                              "forced_eos_token_id",
                                              "decoder_start_token_id",
                                              "torchscript",
                                              "tf_legacy_loss",
                                              "use_bfloat16",
                                              "chunk_size_feed_forward",
                                              "_attn_implementation_autoset",
                                              "attn_implementation",
                                              "_attn_implementation",
                                              "pretraining_tp",
                                              "language_model",
                                              "unsloth_version",
                                              "auto_map",
                                              "_commit_hash"};
  return kKeys.count(key) > 0;
}

}  // namespace redco
