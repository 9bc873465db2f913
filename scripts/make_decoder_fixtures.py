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
}
m.GENERATED = ("hunyuan_v1_moe", "granitemoeshared", "apertus", "phimoe", "lfm2", "falcon_h1", "mamba")
RECURRENT = ("lfm2", "lfm2_moe", "falcon_h1", "mamba", "falcon_mamba", "jamba")
# Results at padding differ: transformers lets the state decay there. Generated ids cover padding.
m.WITHOUT_PADDING += RECURRENT


def randomize(model, generator, unit_offset=False):
    usual(model, generator, unit_offset)
    draw = lambda p: torch.randn(p.shape, generator=generator)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if name.endswith("e_score_correction_bias"):
                p.copy_(draw(p) * 0.2)
        for name, b in sorted(model.named_buffers()):
            if name.endswith("expert_bias"):
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
