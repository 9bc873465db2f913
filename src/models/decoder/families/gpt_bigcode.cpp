// GPT-BigCode (SantaCoder, StarCoder; Ben Allal et al. 2023): GPT-2 with one key/value head for all queries.
#include <cmath>

#include "models/decoder/families.h"
#include "models/decoder/read.h"

namespace redco {

DecoderArchitecture read_gpt_bigcode(ModelConfig& c) {
  DecoderArchitecture s = read_gpt2(c);
  s.family = "gpt_bigcode";
  if (!c.has("activation_function")) s.activation = "gelu_pytorch_tanh";
  s.transposed = false;
  const bool one_kv = c.boolean_or("multi_query", true);
  if (one_kv) s.heads.n_kv = 1;
  s.qkv = QkvStorage::groups;  // all queries, the key, the value; or head by head
  s.residual_std = s.std;
  c.expect("num_key_value_heads", {std::to_string(s.heads.n_kv)});
  // Scores are fp32, which redco always uses; others choose an implementation.
  c.inert({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner",
           "max_batch_size", "max_sequence_length", "pad_key_length", "pre_allocate_kv_cache",
           "validate_runner_input"});
  return s;
}

}  // namespace redco
