// Plan requests for tests: a model from a config or preset, with a pipeline.
#pragma once

#include <memory>
#include <string>

#include "models/model.h"
#include "pipelines/pipelines.h"
#include "plan/plan.h"

namespace redco::testing {

struct Planned {
  std::unique_ptr<Model> model;
  std::unique_ptr<Pipeline> pipeline;
  PlanRequest request;

  explicit Planned(std::unique_ptr<Model> m) : model(std::move(m)) {
    pipeline = model->is_encoder_decoder() ? make_seq2seq_pipeline() : make_lm_pipeline();
    pipeline->model = model.get();
    request.pipeline = pipeline.get();
    request.length = model->max_length();
    request.machines.slots = {64};
    request.machines.memory = i64{1} << 60;
    request.machines.text = "a test";
  }
  static Planned preset(const std::string& name) {
    return Planned(make_model(ModelConfig(preset_config(name), "preset " + name)));
  }
  static Planned config(const std::string& json) { return Planned(make_model(ModelConfig(json, "test"))); }

  PlanReport on(i64 dp, i64 mp) {
    request.n_ranks = dp * mp;
    request.n_model_shards = mp;
    return make_plan(request);
  }
};

// Calls and bytes of the collectives of one kind and axis whose place begins with `where`.
struct Counted {
  i64 count = 0, bytes = 0;
};
inline Counted counted(const std::vector<PlanCollective>& all, const std::string& kind,
                       const std::string& axis, const std::string& where) {
  Counted c;
  for (const PlanCollective& p : all)
    if (p.kind == kind && p.axis == axis && p.where.starts_with(where)) {
      c.count += p.count;
      c.bytes += p.bytes;
    }
  return c;
}

// Small models with the shapes of the fixtures.
inline const char* kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 512,
        "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1})";
inline const char* kGptj =
    R"({"model_type": "gptj", "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 512, "rotary_dim": 4,
        "tie_word_embeddings": false})";
inline const char* kLlama =
    R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 88, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "vocab_size": 512, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "tie_word_embeddings": false})";
inline const char* kMixtral =
    R"({"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 88, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 2, "vocab_size": 512, "max_position_embeddings": 64, "num_local_experts": 5, "num_experts_per_tok": 2})";
// With a load-balancing loss, which is one of the whole step.
inline const char* kBalanced =
    R"({"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 88, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 2, "vocab_size": 512, "max_position_embeddings": 64, "num_local_experts": 5, "num_experts_per_tok": 2,
        "output_router_logits": true})";
inline const char* kGptOss =
    R"({"model_type": "gpt_oss", "hidden_size": 32, "intermediate_size": 44, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 8, "num_hidden_layers": 2, "vocab_size": 512, "max_position_embeddings": 64, "num_local_experts": 5,
        "num_experts_per_tok": 2, "rope_parameters": {"rope_type": "default"}})";
inline const char* kMamba2 =
    R"({"model_type": "mamba2", "hidden_size": 32, "num_heads": 8, "head_dim": 8, "n_groups": 2, "state_size": 12,
        "num_hidden_layers": 2, "vocab_size": 512})";
inline const char* kOpt =
    R"({"model_type": "opt", "hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 128, "num_attention_heads": 4,
        "num_hidden_layers": 2, "vocab_size": 512, "max_position_embeddings": 64})";

}  // namespace redco::testing
