// Configs with the keys that published folders have, and the number of parameters of transformers' models.
#include <gtest/gtest.h>

#include "models/model.h"

namespace redco {
namespace {

struct PublishedConfig {
  const char* name;
  const char* config;
  i64 parameters;  // trained ones
};

constexpr PublishedConfig kPublished[] = {
    {"lfm2-1.2b", R"({"block_auto_adjust_ff_dim": true, "block_dim": 2048, "block_ff_dim": 12288,
      "block_ffn_dim_multiplier": 1.0, "block_mlp_init_scale": 1.0, "block_multiple_of": 256,
      "block_norm_eps": 1e-05, "block_out_init_scale": 1.0, "block_use_swiglu": true,
      "block_use_xavier_init": true, "conv_L_cache": 3, "conv_bias": false, "conv_dim": 2048,
      "conv_dim_out": 2048, "conv_use_xavier_init": true, "eos_token_id": 7, "full_attn_idxs": [2, 5, 8,
      10, 12, 14], "hidden_size": 2048, "initializer_range": 0.02, "max_position_embeddings": 128000,
      "model_type": "lfm2", "norm_eps": 1e-05, "num_attention_heads": 32, "num_heads": 32,
      "num_hidden_layers": 16, "num_key_value_heads": 8, "pad_token_id": 0, "rope_theta": 1000000.0,
      "use_pos_enc": true, "vocab_size": 65536})",
     1170340608},
    {"lfm2-8b-a1b",
     R"({"conv_L_cache": 3, "conv_bias": false, "eos_token_id": 7, "hidden_size": 2048, "initializer_range":
      0.02, "intermediate_size": 7168, "layer_types": ["conv", "conv", "full_attention", "conv", "conv",
      "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv",
      "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "full_attention",
      "conv", "conv"], "max_position_embeddings": 128000, "model_type": "lfm2_moe",
      "moe_intermediate_size": 1792, "norm_eps": 1e-05, "norm_topk_prob": true, "num_attention_heads": 32,
      "num_dense_layers": 2, "num_experts": 32, "num_experts_per_tok": 4, "num_hidden_layers": 24,
      "num_key_value_heads": 8, "pad_token_id": 0, "rope_theta": 1000000.0, "routed_scaling_factor": 1.0,
      "use_expert_bias": true, "vocab_size": 65536})",
     8339929856},
    {"hunyuan-0.5b", R"({"add_classification_head": false, "anyres_pooling_size": 2, "attention_bias": false,
      "attention_dropout": 0.0, "attention_head_dim": 128, "cla_share_factor": 2, "class_num": 0,
      "dense_list": [1024, 0], "enable_lm_head_fp32": true, "eod_token_id": 120020, "eos_token_id":
      120020, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02,
      "intermediate_size": 3584, "max_position_embeddings": 262144, "mlp_bias": false, "model_type":
      "hunyuan_v1_dense", "norm_type": "rms", "num_attention_heads": 16, "num_experts": 1,
      "num_hidden_layers": 24, "num_key_value_heads": 8, "org_vocab_size": 120818, "pad_id": 120002,
      "pad_token_id": -1, "pool_type": "last", "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling":
      {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim":
      0.0, "type": "dynamic"}, "rope_theta": 10000.0, "sep_token_id": 0, "tie_word_embeddings": true,
      "use_cla": false, "use_qk_norm": true, "use_rotary_pos_emb": true, "vocab_size": 120818})",
     539010048},
    {"powermoe-3b", R"({"attention_bias": false, "attention_dropout": 0.0, "attention_multiplier": 0.015625,
      "embedding_multiplier": 12.0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 1536,
      "initializer_range": 0.02, "intermediate_size": 512, "logits_scaling": 6.0,
      "max_position_embeddings": 4096, "model_type": "granitemoe", "num_attention_heads": 24,
      "num_experts_per_tok": 8, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts":
      40, "output_router_logits": false, "pad_token_id": 0, "residual_multiplier": 0.22, "rms_norm_eps":
      1e-06, "rope_scaling": null, "rope_theta": 10000, "router_aux_loss_coef": 0.0,
      "tie_word_embeddings": true, "vocab_size": 49152})",
     3298788864},
    {"apertus-8b",
     R"({"attention_bias": false, "attention_dropout": 0.0, "eos_token_id": 68, "hidden_act": "xielu",
      "hidden_dropout": 0.0, "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 21504,
      "max_position_embeddings": 65536, "mlp_bias": false, "model_type": "apertus", "num_attention_heads":
      32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pad_token_id": 3, "post_norm": false,
      "qk_norm": true, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0,
      "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3", "type":
      "llama3"}, "rope_theta": 12000000, "tie_word_embeddings": false, "vocab_size": 131072})",
     8053338176},
    {"phi-3.5-moe",
     R"({"attention_bias": true, "attention_dropout": 0.0, "eos_token_id": 32000, "hidden_act": "silu",
      "hidden_dropout": 0.0, "hidden_size": 4096, "initializer_range": 0.02, "input_jitter_noise": 0.01,
      "intermediate_size": 6400, "lm_head_bias": true, "max_position_embeddings": 131072, "model_type":
      "phimoe", "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
      "num_key_value_heads": 8, "num_local_experts": 16, "original_max_position_embeddings": 4096,
      "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_scaling": {"long_factor": FACTORS,
      "long_mscale": 1.243163121016122, "original_max_position_embeddings": 4096, "short_factor": FACTORS,
      "short_mscale": 1.243163121016122, "type": "longrope"}, "rope_theta": 10000.0,
      "router_aux_loss_coef": 0.0, "router_jitter_noise": 0.01, "sliding_window": 131072,
      "tie_word_embeddings": false, "vocab_size": 32064})",
     41873153344},
    {"ernie-4.5-21b-a3b",
     R"({"eos_token_id": 2, "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 12288,
      "max_position_embeddings": 131072, "model_type": "ernie4_5_moe", "num_attention_heads": 20,
      "num_key_value_heads": 4, "num_hidden_layers": 28, "num_nextn_predict_layers": 1, "pad_token_id": 0,
      "rms_norm_eps": 1e-05, "vocab_size": 103424, "rope_theta": 500000, "tie_word_embeddings": true,
      "use_bias": false, "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
      "moe_layer_end_index": 27, "moe_layer_interval": 1, "moe_capacity": [64, 64, 64], "moe_gate":
      "topk", "moe_k": 6, "moe_intermediate_size": 1536, "moe_use_aux_free": true, "moe_group": "world",
      "rope_scaling": null, "hidden_dropout_prob": 0.0, "fuse_rope": false})",
     21825436160},
    {"falcon-h1-0.5b", R"({"attention_bias": false, "attention_dropout": 0.0, "attention_in_multiplier": 1.0,
      "attention_out_multiplier": 0.9375, "attn_layer_indices": null, "embedding_multiplier":
      5.656854249492381, "eos_token_id": 11, "head_dim": 64, "hidden_act": "silu", "hidden_size": 1024,
      "initializer_range": 0.02, "intermediate_size": 2048, "key_multiplier": 0.390625,
      "lm_head_multiplier": 0.0390625, "mamba_chunk_size": 128, "mamba_conv_bias": true, "mamba_d_conv":
      4, "mamba_d_head": 64, "mamba_d_ssm": 1536, "mamba_d_state": 128, "mamba_expand": 2,
      "mamba_n_groups": 1, "mamba_n_heads": 24, "mamba_norm_before_gate": false, "mamba_proj_bias": false,
      "mamba_rms_norm": false, "mamba_use_mlp": true, "max_position_embeddings": 16384, "mlp_bias": false,
      "mlp_expansion_factor": 8, "mlp_multipliers": [0.8838834764831844, 0.5859375], "model_type":
      "falcon_h1", "num_attention_heads": 8, "num_hidden_layers": 36, "num_key_value_heads": 2,
      "num_logits_to_keep": 1, "pad_token_id": 0, "projectors_bias": false, "rms_norm_eps": 1e-05,
      "rope_scaling": null, "rope_theta": 100000000000.0, "ssm_in_multiplier": 1.25, "ssm_multipliers":
      [0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738], "ssm_out_multiplier":
      0.23570226039551587, "tie_word_embeddings": false, "vocab_size": 32784})",
     521411104},
    {"mamba-130m", R"({"conv_kernel": 4, "d_inner": 1536, "d_model": 768, "eos_token_id": 0, "expand": 2,
      "fused_add_norm": true, "hidden_act": "silu", "hidden_size": 768, "initializer_range": 0.1,
      "intermediate_size": 1536, "layer_norm_epsilon": 1e-05, "model_type": "mamba", "n_layer": 24,
      "num_hidden_layers": 24, "pad_token_id": 0, "pad_vocab_size_multiple": 8,
      "rescale_prenorm_residual": false, "residual_in_fp32": true, "rms_norm": true, "ssm_cfg": {},
      "state_size": 16, "time_step_floor": 0.0001, "time_step_init_scheme": "random", "time_step_max":
      0.1, "time_step_min": 0.001, "time_step_rank": 48, "time_step_scale": 1.0, "use_bias": false,
      "use_conv_bias": true, "vocab_size": 50280})",
     129135360},
    {"falcon-mamba-7b",
     R"({"conv_kernel": 4, "eos_token_id": 11, "expand": 16, "hidden_act": "silu", "hidden_size": 4096,
      "initializer_range": 0.1, "intermediate_size": 8192, "layer_norm_epsilon": 1e-05, "model_type":
      "falcon_mamba", "num_hidden_layers": 64, "pad_token_id": 11, "rescale_prenorm_residual": false,
      "residual_in_fp32": true, "state_size": 16, "tie_word_embeddings": false, "time_step_floor": 0.0001,
      "time_step_init_scheme": "random", "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank":
      256, "time_step_scale": 1.0, "use_bias": false, "use_conv_bias": true, "use_mambapy": false,
      "vocab_size": 65024})",
     7272665088},
    {"jamba-v0.1", R"({"attention_dropout": 0.0, "attn_layer_offset": 4, "attn_layer_period": 8,
      "calc_logits_for_entire_prompt": false, "eos_token_id": 2, "expert_layer_offset": 1,
      "expert_layer_period": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
      "intermediate_size": 14336, "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_state": 16,
      "mamba_dt_rank": 256, "mamba_expand": 2, "mamba_inner_layernorms": true, "mamba_proj_bias": false,
      "max_position_embeddings": 262144, "model_type": "jamba", "n_ctx": 262144, "num_attention_heads":
      32, "num_experts": 16, "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "num_logits_to_keep": 1, "output_router_logits": false, "pad_token_id": 0, "rms_norm_eps": 1e-06,
      "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
      "use_mamba_kernels": true, "vocab_size": 65536})",
     51570323328},
};

std::string with_factors(std::string text) {
  std::string factors = "1.0";
  for (int i = 1; i < 64; ++i) factors += ", 1.5";
  for (size_t at; (at = text.find("FACTORS")) != text.npos;) text.replace(at, 7, "[" + factors + "]");
  return text;
}

TEST(PublishedConfigs, HaveTheParametersOfTransformers) {
  for (const PublishedConfig& p : kPublished) {
    SCOPED_TRACE(p.name);
    const auto model = make_model(ModelConfig(with_factors(p.config), p.name));
    i64 parameters = 0;
    for (const ParamSpec& s : model->params().specs)
      if (s.trained()) parameters += numel(s.shape);
    EXPECT_EQ(parameters, p.parameters);
  }
}

}  // namespace
}  // namespace redco
