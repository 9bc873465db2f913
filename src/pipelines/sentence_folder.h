// The files of a sentence-transformers folder besides model and tokenizer: how a text becomes an embedding.
//
//   modules.json                        Transformer (the folder itself), Pooling, Dense, Normalize
//   1_Pooling/config.json               the pooling modes, as booleans or as `pooling_mode`
//   2_Dense/config.json                 in_features, out_features, bias, activation_function; and its weights
//   sentence_bert_config.json           max_seq_length, do_lower_case
//   config_sentence_transformers.json   prompts, default_prompt_name, similarity_fn_name
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// A linear layer with an activation, after the pooling.
struct DenseModule {
  std::string folder;  // in the model's folder: config.json, and a file of weights
  i64 in = 0, out = 0;
  bool bias = true;
  std::string activation = "tanh";  // (nn/layers.h)
};

struct SentenceFolder {
  bool found = false;                // modules.json exists
  std::vector<std::string> pooling;  // modes, whose embeddings are concatenated; {}: none given
  bool include_prompt = true;        // false: the tokens of a prompt are not pooled
  std::vector<DenseModule> dense;    // in this order
  bool normalize = false;
  std::optional<i64> max_seq_length;
  bool lower_case = false;
  std::map<std::string, std::string> prompts;  // by name
  std::string default_prompt_name;             // "": none
  bool dot_product = false;                    // similarity_fn_name: "dot", not "cosine"
  std::string config;  // config_sentence_transformers.json, whose other keys are kept; "": none

  // The prompt of the first of these names; "": none.
  std::string prompt_of(const std::vector<std::string>& names) const;
  // The width of an embedding, from that of the hidden states.
  i64 width(i64 hidden) const;
  // The files by their paths in a model's folder, as sentence-transformers 2 to 6 read them. width: of the
  // hidden states.
  std::map<std::string, std::string> files(i64 width) const;
};

// The pooling modes.
const std::vector<std::string>& pooling_modes();

// Reads the files; a folder without modules.json, or "", has none. ContentsError with the file and the key:
// a broken file, a module or a value that redco does not support.
SentenceFolder read_sentence_folder(const std::string& folder);

}  // namespace redco
