#!/usr/bin/env python3
"""Makes the tiny checkpoints tests/fixtures/{hunyuan_v1_dense,granitemoe,...}: further decoders.

Needs torch and transformers 5, and the functions of make_model_fixtures.py and make_hybrid_fixtures.py. Usage:
scripts/make_decoder_fixtures.py [NAME...]
"""
import sys

import make_model_fixtures as m
import torch
from make_hybrid_fixtures import keep_double
from transformers.core_model_loading import revert_weight_conversion

# Three heads on one key head; a padding token that gets no gradient.
LLAMA = dict(m.LLAMA, num_key_value_heads=1, pad_token_id=7)

FIXTURES = {
    # Norms of the heads after rotary positions, whose base is stretched once.
    "hunyuan_v1_dense": ("hunyuan_v1_dense", dict(LLAMA, head_dim=10, attention_bias=True,
                                                  **m.rope("dynamic", alpha=50.0, factor=1.0))),
    "hunyuan_v1_moe": ("hunyuan_v1_moe", dict(LLAMA, head_dim=8, num_experts=5, moe_topk=[2, 2], intermediate_size=12,
                                              tie_word_embeddings=True, **m.rope())),
    # The load-balancing loss of the routers.
    "granitemoe": ("granitemoe", dict(LLAMA, num_local_experts=5, num_experts_per_tok=2, intermediate_size=12,
                                      embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.6,
                                      logits_scaling=4.0, attention_bias=True, output_router_logits=True,
                                      router_aux_loss_coef=0.2)),
    "granitemoeshared": ("granitemoeshared", dict(LLAMA, num_local_experts=5, num_experts_per_tok=3,
                                                  intermediate_size=10, shared_intermediate_size=14,
                                                  attention_multiplier=0.3, tie_word_embeddings=True)),
    # An activation with two trained numbers in each layer.
    "apertus": ("apertus", dict(LLAMA, attention_bias=True)),
    # Routers whose second choice is weighted among the experts that the first one leaves.
    "phimoe": ("phimoe", dict(LLAMA, num_local_experts=5, num_experts_per_tok=2, intermediate_size=12,
                              attention_bias=True, lm_head_bias=True, router_jitter_noise=0.3, sliding_window=5,
                              original_max_position_embeddings=8,
                              **m.rope("longrope", short_factor=[1.0, 1.1, 1.3, 1.7], long_factor=[1.0, 2.1, 3.3, 4.7],
                                       short_mscale=1.2, long_mscale=1.4, original_max_position_embeddings=8))),
    # Short convolutions in some layers, an inner width that is adjusted.
    "lfm2": ("lfm2", dict(LLAMA, num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"], conv_bias=True,
                          block_multiple_of=5)),
    "lfm2_moe": ("lfm2_moe", dict(LLAMA, num_hidden_layers=3, layer_types=["full_attention", "conv", "conv"],
                                  num_dense_layers=1, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=10,
                                  conv_L_cache=4, routed_scaling_factor=1.5, tie_word_embeddings=False)),
    "ernie4_5_moe": ("ernie4_5_moe", dict(LLAMA, num_hidden_layers=3, use_bias=True, moe_num_experts=5, moe_k=2,
                                          moe_intermediate_size=10, moe_num_shared_experts=2, moe_layer_start_index=1,
                                          moe_norm_min=0.6, tie_word_embeddings=False, output_router_logits=True,
                                          router_aux_loss_coef=0.2)),
    # Mamba-2 and attention side by side; six heads in two groups.
    "falcon_h1": ("falcon_h1", dict(
        LLAMA, head_dim=8, mamba_d_ssm=36, mamba_n_heads=6, mamba_d_head=6, mamba_n_groups=2, mamba_d_state=5,
        projectors_bias=True, mamba_proj_bias=True, attention_bias=True, embedding_multiplier=2.0,
        lm_head_multiplier=0.6, key_multiplier=0.7, attention_in_multiplier=1.3, attention_out_multiplier=0.8,
        ssm_in_multiplier=1.2, ssm_out_multiplier=0.9, ssm_multipliers=[0.7, 0.8, 1.1, 1.2, 0.9],
        mlp_multipliers=[0.8, 1.2])),
    # A norm in the mixer, after the gate.
    "falcon_h1-norm": ("falcon_h1", dict(
        LLAMA, head_dim=8, mamba_d_ssm=None, mamba_n_heads=4, mamba_d_state=5, mamba_d_conv=3, mamba_rms_norm=True,
        mamba_norm_before_gate=False, tie_word_embeddings=True, mamba_conv_bias=False)),
    # A decay for each number of each channel; ten channels, so that shards are uneven.
    "mamba": ("mamba", dict(vocab_size=m.VOCAB, hidden_size=10, expand=1, state_size=5, num_hidden_layers=2,
                            time_step_rank=3, tie_word_embeddings=False)),
    "falcon_mamba": ("falcon_mamba", dict(vocab_size=m.VOCAB, hidden_size=12, expand=2, state_size=4,
                                          num_hidden_layers=2, conv_kernel=3, mixer_rms_eps=1e-3, use_bias=True,
                                          use_conv_bias=False)),
    # Mamba and attention, experts in every second layer, and the router loss.
    "jamba": ("jamba", dict(LLAMA, num_hidden_layers=3, attn_layer_period=3, attn_layer_offset=1, mamba_d_state=5,
                            mamba_dt_rank=4, mamba_expand=2, expert_layer_period=2, expert_layer_offset=1, num_experts=5,
                            num_experts_per_tok=2, intermediate_size=12, output_router_logits=True,
                            router_aux_loss_coef=0.2)),
    # Windows in every second layer, no divisor of the scores.
    "gpt_neo": ("gpt_neo", dict(vocab_size=m.VOCAB, hidden_size=24, num_layers=3, num_heads=3, window_size=5,
                                attention_types=[[["global", "local"], 1], [["local"], 1]],
                                max_position_embeddings=32, intermediate_size=34, resid_dropout=0.0)),
    # Queries, values and keys stored in quarters.
    "codegen": ("codegen", dict(vocab_size=m.VOCAB, n_positions=32, n_embd=32, n_layer=2, n_head=4, rotary_dim=6)),
    # One quarter of the rows is one and a half heads.
    "codegen-uneven": ("codegen", dict(vocab_size=m.VOCAB, n_positions=32, n_embd=24, n_layer=2, n_head=6, rotary_dim=4,
                                       n_inner=38, activation_function="relu")),
    "biogpt": ("biogpt", dict(vocab_size=m.VOCAB, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                              intermediate_size=38, max_position_embeddings=32, hidden_dropout_prob=0.0,
                              attention_probs_dropout_prob=0.0)),
    "ministral": ("ministral", dict(LLAMA, head_dim=8, sliding_window=5, pad_token_id=None,
                                    layer_types=["full_attention", "sliding_attention"])),
    # Queries that grow with their position.
    "ministral3": ("ministral3", dict(LLAMA, head_dim=8, pad_token_id=7, tie_word_embeddings=True,
                                      **m.rope("yarn", factor=4.0, original_max_position_embeddings=4, mscale=1.0,
                                               mscale_all_dim=1.0, llama_4_scaling_beta=0.5, beta_fast=32.0,
                                               beta_slow=1.0))),
    "cwm": ("cwm", dict(LLAMA, head_dim=8, sliding_window=5, mlp_bias=True, pad_token_id=None)),
    "internlm3": ("internlm3", dict(LLAMA, head_dim=8, attention_bias=True, mlp_bias=True)),
    "iquestcoder": ("iquestcoder", dict(LLAMA, head_dim=10)),
    "exaone": ("exaone", dict(LLAMA, head_dim=8, pad_token_id=0)),
    "vaultgemma": ("vaultgemma", dict(LLAMA, num_attention_heads=6, num_key_value_heads=2, head_dim=8,
                                      query_pre_attn_scalar=4, attn_logit_softcapping=2.0, final_logit_softcapping=5.0,
                                      sliding_window=4, pad_token_id=0)),
    "hyperclovax": ("hyperclovax", dict(LLAMA, embedding_multiplier=3.0, attention_multiplier=0.2,
                                        residual_multiplier=0.6, logits_scaling=0.4, mlp_bias=True)),
    "jais2": ("jais2", dict(LLAMA, num_attention_heads=3)),
    # A correction of the choice, rotary positions on a part of a head, norms over all heads.
    "minimax_m2": ("minimax_m2", dict(LLAMA, head_dim=8, num_local_experts=5, num_experts_per_tok=2,
                                      intermediate_size=12, rotary_dim=4, output_router_logits=True,
                                      router_aux_loss_coef=0.2)),
    "glm4_moe_lite": ("glm4_moe_lite", dict(LLAMA, num_hidden_layers=3, num_key_value_heads=3, kv_lora_rank=10,
                                            q_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=12,
                                            n_routed_experts=6, num_experts_per_tok=2, n_group=3, topk_group=2,
                                            moe_intermediate_size=10, mlp_layer_types=["sparse", "dense", "sparse"])),
    "youtu": ("youtu", dict(LLAMA, num_key_value_heads=3, kv_lora_rank=10, q_lora_rank=8, qk_nope_head_dim=6,
                            qk_rope_head_dim=4, v_head_dim=12)),
    "solar_open": ("solar_open", dict({k: v for k, v in LLAMA.items() if k != "intermediate_size"}, head_dim=8,
                                      attention_bias=True, n_routed_experts=6, num_experts_per_tok=2,
                                      moe_intermediate_size=10)),
    "exaone_moe": ("exaone_moe", dict(LLAMA, num_hidden_layers=3, head_dim=8, sliding_window=5,
                                      layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                                      num_experts=6, num_experts_per_tok=2, moe_intermediate_size=10)),
    # Norms without weights, one of them after the embedding; positions that rotate the other way.
    "nanochat": ("nanochat", dict(LLAMA, hidden_act="relu2", final_logit_softcapping=3.0, attention_bias=True)),
    # The load-balancing loss, and norms after each part only.
    "flex_olmo": ("flex_olmo", dict(LLAMA, num_experts=5, num_experts_per_tok=2, intermediate_size=12,
                                    output_router_logits=True, router_aux_loss_coef=0.2, eos_token_id=2)),
    # Latent attention with the multipliers of MiniCPM.
    "minicpm3": ("minicpm3", dict(LLAMA, num_key_value_heads=3, kv_lora_rank=10, q_lora_rank=8, qk_nope_head_dim=6,
                                  qk_rope_head_dim=4, v_head_dim=12, scale_emb=3, scale_depth=0.9, dim_model_base=12,
                                  attention_bias=True)),
    "persimmon": ("persimmon", dict({k: v for k, v in LLAMA.items() if k != "num_key_value_heads"},
                                    eos_token_id=2)),
    # Sinusoids, which no file has.
    "xglm": ("xglm", dict(vocab_size=m.VOCAB, d_model=24, num_layers=2, attention_heads=3, ffn_dim=38, dropout=0.0,
                          attention_dropout=0.0, max_position_embeddings=32)),
    # A layer before the head; no norm before the first attention.
    "modernbert-decoder": ("modernbert-decoder", dict(
        {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}, num_hidden_layers=3, local_attention=8,
        layer_types=["full_attention", "sliding_attention", "full_attention"], norm_bias=True, attention_bias=True,
        classifier_bias=True, eos_token_id=2, bos_token_id=2, cls_token_id=2, sep_token_id=2)),
    "modernbert-decoder-class": ("modernbert-decoder", dict(
        {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}, local_attention=8, classifier_bias=True,
        layer_types=["sliding_attention", "full_attention"], num_labels=3, eos_token_id=2, bos_token_id=2, cls_token_id=2,
        sep_token_id=2)),
    "hy_v3": ("hy_v3", dict(LLAMA, head_dim=8, num_experts=5, num_experts_per_tok=2, num_hidden_layers=3,
                            moe_intermediate_size=10, mlp_layer_types=["sparse", "dense", "sparse"])),
    # A separate layer computes the gate of the attention.
    "afmoe": ("afmoe", dict(LLAMA, num_hidden_layers=3, num_dense_layers=1, head_dim=8, sliding_window=5, num_experts=5,
                            num_experts_per_tok=2, moe_intermediate_size=10, route_scale=1.5, mup_enabled=True,
                            layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "mellum": ("mellum", dict(LLAMA, head_dim=8, sliding_window=5, num_local_experts=5, num_experts_per_tok=2,
                              moe_intermediate_size=10, layer_types=["full_attention", "sliding_attention"],
                              mlp_layer_types=["sparse", "dense"], output_router_logits=True, router_aux_loss_coef=0.2,
                              rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 500000.0, "factor": 2.0},
                                               "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})),
    # Attention in chunks with norms of the heads, or without positions; experts of the scaled input.
    "llama4_text": ("llama4_text", dict(LLAMA, num_hidden_layers=3, head_dim=8, intermediate_size=12,
                                        intermediate_size_mlp=34, num_local_experts=5, attention_chunk_size=5,
                                        no_rope_layers=[1, 0, 1], moe_layers=[0, 1], floor_scale=4, attn_scale=0.5)),
    # transformers counts the positions of growing queries with the padding, so ids are generated without growth.
    "llama4_text-equal": ("llama4_text", dict(LLAMA, num_hidden_layers=2, head_dim=8, intermediate_size=12,
                                              intermediate_size_mlp=34, num_local_experts=5, attention_chunk_size=4,
                                              no_rope_layers=[1, 0], interleave_moe_layer_step=2, use_qk_norm=False,
                                              attn_temperature_tuning=False)),
}
m.GENERATED = ("hunyuan_v1_moe", "granitemoeshared", "apertus", "phimoe", "lfm2", "falcon_h1", "mamba",
               "gpt_neo", "codegen", "biogpt", "ministral3", "glm4_moe_lite", "vaultgemma",
               "nanochat", "xglm", "modernbert-decoder", "afmoe", "llama4_text-equal")
RECURRENT = ("lfm2", "lfm2_moe", "falcon_h1", "mamba", "falcon_mamba", "jamba")
# Results at padding differ: transformers lets the state decay there. Generated ids cover padding.
m.WITHOUT_PADDING += RECURRENT
# A padded token attends to its chunk in transformers, and to nothing in redco.
m.WITHOUT_PADDING += ["llama4_text"]

CORRECTIONS = ("e_score_correction_bias", "expert_bias")  # of the choice of experts; some are parameters


def randomize(model, generator, unit_offset=False):
    usual(model, generator, unit_offset)
    draw = lambda p: torch.randn(p.shape, generator=generator)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if name.endswith(CORRECTIONS):
                p.copy_(draw(p) * 0.2)
        for name, b in sorted(model.named_buffers()):
            if name.endswith(CORRECTIONS):
                b.copy_(draw(b) * 0.2)


def compute(model, inputs):
    """Hidden states, logits, loss and gradients of the inputs, under the names of the files."""
    model.zero_grad()
    out = model(**inputs, output_hidden_states=True, use_cache=False)
    out.loss.backward()
    results = {f"hidden.{i}": h for i, h in enumerate(out.hidden_states)} | {"logits": out.logits, "loss": out.loss}
    grads = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in model.named_parameters() if p.requires_grad}
    for n, t in revert_weight_conversion(model, grads).items():
        results[f"grad.{n}"] = t
    return {n: t.detach().clone().contiguous() for n, t in results.items()}


usual, m.randomize, m.compute = m.randomize, randomize, compute


if __name__ == "__main__":
    keep_double()
    for name in sys.argv[1:] or FIXTURES:
        m.make(name, *FIXTURES[name])
