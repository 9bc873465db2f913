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
    {"xglm-564m",
     R"({"activation_dropout": 0, "activation_function": "gelu", "attention_dropout": 0.1,
      "attention_heads": 16, "d_model": 1024, "decoder_start_token_id": 2, "dropout": 0.1,
      "eos_token_id": 2, "ffn_dim": 4096, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings":
      2048, "model_type": "xglm", "num_layers": 24, "pad_token_id": 1, "scale_embedding": true,
      "vocab_size": 256008})",
     564463616},
    {"minicpm3-4b",
     R"({"dim_model_base": 256, "eos_token_id": [2, 73440], "hidden_act": "silu", "hidden_size": 2560,
      "initializer_range": 0.1, "intermediate_size": 6400, "kv_lora_rank": 256,
      "max_position_embeddings": 32768, "model_type": "minicpm3", "num_attention_heads": 40,
      "num_hidden_layers": 62, "num_key_value_heads": 40, "q_lora_rank": 768, "qk_nope_head_dim": 64,
      "qk_rope_head_dim": 32, "rms_norm_eps": 1e-05, "rope_scaling": {"long_factor": [1.0, 1.0, 1.0,
      1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
      "original_max_position_embeddings": 32768, "short_factor": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0,
      1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "type": "longrope", "rope_theta": 10000.0,
      "rope_type": "longrope"}, "scale_depth": 1.4, "scale_emb": 12, "vocab_size": 73448})",
     4073875968},
    {"nanochat-d32",
     R"({"attention_bias": false, "attention_dropout": 0.0, "eos_token_id": 1, "final_logit_softcapping":
      15.0, "hidden_act": "relu2", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size":
      8192, "logits_soft_cap": 15.0, "max_position_embeddings": 2048, "model_type": "nanochat",
      "num_attention_heads": 16, "num_hidden_layers": 32, "num_key_value_heads": 16, "pad_token_id": 1,
      "qkv_bias": false, "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 10000.0, "rope_type":
      "default"}, "tie_word_embeddings": false, "vocab_size": 65536})",
     1879048192},
    {"eurobert-210m",
     R"({"architectures": ["EuroBertForMaskedLM"], "attention_bias": false, "attention_dropout": 0.0,
      "clf_pooling": "late", "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu",
      "hidden_dropout": 0.0, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
      "mask_token": "<|mask|>", "mask_token_id": 128002, "max_position_embeddings": 8192, "mlp_bias":
      false, "model_type": "eurobert", "num_attention_heads": 12, "num_hidden_layers": 12,
      "num_key_value_heads": 12, "pad_token": "<|end_of_text|>", "pad_token_id": 128001,
      "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 250000,
      "tie_word_embeddings": false, "vocab_size": 128256})",
     310266624},
    {"ettin-decoder-17m",
     R"({"attention_bias": false, "attention_dropout": 0.0, "causal_mask": true, "classifier_activation":
      "gelu", "classifier_bias": false, "classifier_dropout": 0.0, "classifier_pooling": "mean",
      "cls_token_id": 50281, "decoder_bias": true, "deterministic_flash_attn": false,
      "embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3,
      "global_rope_theta": 160000.0, "gradient_checkpointing": false, "hidden_activation": "gelu",
      "hidden_size": 256, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02,
      "intermediate_size": 384, "is_causal": true, "layer_norm_eps": 1e-05, "local_attention": 128,
      "local_rope_theta": 160000.0, "max_position_embeddings": 7999, "mlp_bias": false, "mlp_dropout":
      0.0, "model_type": "modernbert-decoder", "norm_bias": false, "norm_eps": 1e-05,
      "num_attention_heads": 4, "num_hidden_layers": 7, "pad_token_id": 50283,
      "position_embedding_type": "sans_pos", "sep_token_id": 50282, "vocab_size": 50368})",
     16913600},
    {"blenderbot-400m-distill",
     R"({"activation_dropout": 0.0, "activation_function": "gelu", "add_bias_logits": false,
      "add_final_layer_norm": true, "attention_dropout": 0.0, "classif_dropout": 0.0,
      "classifier_dropout": 0.0, "d_model": 1280, "decoder_attention_heads": 32, "decoder_ffn_dim":
      5120, "decoder_layerdrop": 0.0, "decoder_layers": 12, "decoder_start_token_id": 1,
      "do_blenderbot_90_layernorm": true, "dropout": 0.1, "encoder_attention_heads": 32,
      "encoder_ffn_dim": 5120, "encoder_layerdrop": 0.0, "encoder_layers": 2,
      "encoder_no_repeat_ngram_size": 3, "eos_token_id": 2, "extra_layer_norm": false,
      "extra_pos_embeddings": 0, "force_bos_token_to_be_generated": false, "forced_eos_token_id": 2,
      "init_std": 0.02, "is_encoder_decoder": true, "layernorm_variant": "prelayernorm",
      "length_penalty": 0.65, "max_position_embeddings": 128, "model_type": "blenderbot",
      "no_repeat_ngram_size": 3, "normalize_before": true, "normalize_embedding": false, "num_beams":
      10, "num_hidden_layers": 2, "pad_token_id": 0, "scale_embedding": true,
      "static_position_embeddings": false, "unk_token_id": 3, "vocab_size": 8008})",
     364802560},
    {"blenderbot_small-90m",
     R"({"activation_dropout": 0.0, "activation_function": "gelu", "add_bias_logits": false,
      "add_final_layer_norm": false, "attention_dropout": 0.0, "classif_dropout": 0.0,
      "classifier_dropout": 0.0, "d_model": 512, "decoder_attention_heads": 16, "decoder_ffn_dim": 2048,
      "decoder_layerdrop": 0.0, "decoder_layers": 8, "decoder_start_token_id": 1,
      "do_blenderbot_90_layernorm": true, "dropout": 0.1, "encoder_attention_heads": 16,
      "encoder_ffn_dim": 2048, "encoder_layerdrop": 0.0, "encoder_layers": 8, "eos_token_id": 2,
      "extra_pos_embeddings": 0, "force_bos_token_to_be_generated": false, "init_std": 0.02,
      "is_encoder_decoder": true, "layernorm_variant": "xlm", "max_position_embeddings": 512,
      "model_type": "blenderbot-small", "normalize_before": false, "normalize_embedding": true,
      "num_hidden_layers": 8, "pad_token_id": 0, "scale_embedding": true, "static_position_embeddings":
      false, "unk_token_id": 3, "vocab_size": 54944})",
     87508992},
    {"llama-4-scout",
     R"({"boi_token_index": 200080, "eoi_token_index": 200081, "image_token_index": 200092, "model_type":
      "llama4", "text_config": {"attention_bias": false, "attention_chunk_size": 8192,
      "attention_dropout": 0.0, "attn_scale": 0.1, "attn_temperature_tuning": true, "eos_token_id":
      [200001, 200007, 200008], "floor_scale": 8192, "for_llm_compressor": false, "head_dim": 128,
      "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02, "interleave_moe_layer_step":
      1, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "max_position_embeddings": 10485760,
      "model_type": "llama4_text", "no_rope_layers": [], "num_attention_heads": 40,
      "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts":
      16, "output_router_logits": false, "pad_token_id": 200018, "rms_norm_eps": 1e-05, "rope_scaling":
      {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
      "original_max_position_embeddings": 8192, "rope_type": "llama3", "rope_theta": 500000.0},
      "rope_theta": 500000.0, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "use_qk_norm":
      true, "vocab_size": 202048}, "vision_config": {"hidden_size": 1408, "model_type":
      "llama4_vision_model"}})",
     107769861120},
    {"trinity-mini",
     R"({"attention_dropout": 0.0, "eos_token_id": 3, "global_attn_every_n_layers": 4, "head_dim": 128,
      "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
      "load_balance_coeff": 0.001, "max_position_embeddings": 131072, "model_type": "afmoe",
      "moe_intermediate_size": 1024, "mup_enabled": true, "n_group": 1, "num_attention_heads": 32,
      "num_dense_layers": 2, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 32,
      "num_key_value_heads": 4, "num_shared_experts": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
      "rope_theta": 10000, "route_norm": true, "route_scale": 2.826, "score_func": "sigmoid",
      "sliding_window": 2048, "tie_word_embeddings": false, "topk_group": 1, "vocab_size": 200192})",
     26123970560},
    {"persimmon-8b",
     R"({"attention_dropout": 0.0, "eos_token_id": 71013, "hidden_act": "relu2", "hidden_dropout": 0.0,
      "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 16384, "layer_norm_eps":
      1e-05, "max_position_embeddings": 16384, "model_type": "persimmon", "num_attention_heads": 64,
      "num_hidden_layers": 36, "num_key_value_heads": 64, "partial_rotary_factor": 0.5, "qk_layernorm":
      true, "rope_scaling": null, "rope_theta": 25000.0, "tie_word_embeddings": false, "vocab_size":
      262144})",
     9397175296},
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
