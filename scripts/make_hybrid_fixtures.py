#!/usr/bin/env python3
"""Makes the tiny checkpoints tests/fixtures/{granitemoehybrid,nemotron_h,...}: decoders with recurrent layers.

Needs torch and transformers 5, and the functions of make_model_fixtures.py. Usage:
scripts/make_hybrid_fixtures.py [NAME...]
"""
import sys

import make_model_fixtures as m
import torch

LLAMA = dict(m.LLAMA, num_key_value_heads=1, pad_token_id=0)
# Six heads in two groups: three shards cut a group.
MAMBA = dict(mamba_n_heads=6, mamba_d_head=8, mamba_d_state=5, mamba_n_groups=2)

FIXTURES = {
    # Both mixers, five experts and the shared MLP, no positions, all multipliers.
    "granitemoehybrid": ("granitemoehybrid", dict(
        LLAMA, num_hidden_layers=3, layer_types=["mamba", "attention", "mamba"], num_local_experts=5,
        num_experts_per_tok=2, intermediate_size=12, shared_intermediate_size=20, position_embedding_type="nope",
        embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.6, logits_scaling=4.0,
        tie_word_embeddings=True, **MAMBA)),
    # Without experts, with rotary positions; one group.
    "granitemoehybrid-dense": ("granitemoehybrid", dict(
        LLAMA, num_hidden_layers=2, layer_types=["mamba", "attention"], num_local_experts=0,
        shared_intermediate_size=38, position_embedding_type="rope", attention_bias=True, mamba_conv_bias=False,
        **(MAMBA | dict(mamba_n_groups=1, mamba_d_conv=3)))),
    "bamba": ("bamba", dict(LLAMA, num_hidden_layers=2, attn_layer_indices=[1], mlp_bias=True, **MAMBA)),
    # A layer of each kind, experts in groups with a latent width.
    "nemotron_h": ("nemotron_h", dict(
        LLAMA, hybrid_override_pattern="M-*EM", head_dim=8, mamba_num_heads=6, mamba_head_dim=8, ssm_state_size=5,
        n_groups=2, n_routed_experts=6, num_experts_per_tok=2, n_group=3, topk_group=2, moe_intermediate_size=10,
        moe_shared_expert_intermediate_size=14, moe_latent_size=12, routed_scaling_factor=1.5, pad_token_id=7)),
    # Two value heads on each key head, five experts and a gated shared MLP.
    "qwen3_next": ("qwen3_next", dict(
        LLAMA, num_hidden_layers=2, full_attention_interval=2, head_dim=8, linear_key_head_dim=6,
        linear_value_head_dim=10, linear_num_key_heads=3, linear_num_value_heads=6, num_experts=5,
        num_experts_per_tok=2, moe_intermediate_size=10, shared_expert_intermediate_size=14)),
    # The load-balancing loss of the routers.
    "granitemoehybrid-balanced": ("granitemoehybrid", dict(
        LLAMA, num_hidden_layers=2, layer_types=["mamba", "attention"], num_local_experts=4, num_experts_per_tok=2,
        intermediate_size=10, shared_intermediate_size=14, position_embedding_type="nope", output_router_logits=True,
        router_aux_loss_coef=0.3, **MAMBA)),
    "qwen3_next-balanced": ("qwen3_next", dict(
        LLAMA, num_hidden_layers=2, full_attention_interval=2, head_dim=8, linear_key_head_dim=6,
        linear_value_head_dim=6, linear_num_key_heads=1, linear_num_value_heads=3, num_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=10, shared_expert_intermediate_size=14, mlp_only_layers=[0],
        output_router_logits=True, router_aux_loss_coef=0.2)),
    "qwen3_5_text": ("qwen3_5_text", dict(
        LLAMA, num_hidden_layers=2, layer_types=["linear_attention", "full_attention"], head_dim=8,
        attention_bias=True, tie_word_embeddings=True, linear_key_head_dim=6, linear_value_head_dim=8,
        linear_num_key_heads=1, linear_num_value_heads=3)),
    "qwen3_5_moe_text": ("qwen3_5_moe_text", dict(
        {k: v for k, v in LLAMA.items() if k != "intermediate_size"}, num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"], head_dim=8, linear_key_head_dim=6,
        linear_value_head_dim=8, linear_num_key_heads=1, linear_num_value_heads=3, num_experts=5,
        num_experts_per_tok=2, moe_intermediate_size=10, shared_expert_intermediate_size=14,
        output_router_logits=True, router_aux_loss_coef=0.2)),
}
m.GENERATED = ("granitemoehybrid", "nemotron_h", "qwen3_next")
# Results at padding differ: transformers lets the state decay there. Generated ids cover padding.
m.WITHOUT_PADDING += [family for family, _ in FIXTURES.values()]

randomize = m.randomize


def randomize_states(model, generator, unit_offset=False):
    """The same, with decays that remember some tokens."""
    randomize(model, generator, unit_offset=False)
    draw = lambda p: torch.randn(p.shape, generator=generator)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if name.endswith("A_log"):
                p.copy_(draw(p) * 0.5 - 1)
            elif name.endswith("dt_bias"):
                p.copy_(draw(p) * 0.5 - 1)
            elif "qwen" in model.config.model_type and "norm" in name and ".linear_attn." not in name:
                p.sub_(1)  # stored minus one
        for name, b in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                b.copy_(draw(b) * 0.2)


def as_saved(name, t, _):
    """Tensors under the names of the files."""
    if ".block_sparse_moe." in name:
        for new, old in (("experts.gate_up_proj", "input_linear.weight"), ("experts.down_proj", "output_linear.weight"),
                         ("router.weight", "router.layer.weight")):
            name = name.replace(new, old)
        return {name: t}
    if ".mixer." in name or name.startswith(("grad.model.embeddings", "grad.model.norm_f")) or ".norm.weight" in name:
        name = name.replace("grad.model.", "grad.backbone.") if "backbone" in KIND else name
    for e in (".experts.up_proj", ".experts.down_proj"):
        if ".mixer" in name and name.endswith(e):
            return {f"{name[:-len(e)]}.experts.{i}{e[8:]}.weight": x.clone() for i, x in enumerate(t)}
    return saved_experts(name, t, False)


KIND = ""
saved_experts = m.as_saved
m.randomize, m.as_saved = randomize_states, as_saved


def keep_double():
    """Models that compute in fp32 for accuracy keep float64."""
    to, as_float, as_type = torch.Tensor.to, torch.Tensor.float, torch.Tensor.type
    full = torch.full  # a default of fp32 cannot hold the least float64
    wide = lambda a: len(a) > 1 and isinstance(a[1], float) and a[1] < -1e300
    torch.full = lambda *a, **k: full(*a, **(k | {"dtype": torch.float64} if wide(a) else k))
    torch.Tensor.float = lambda t, *a, **k: t if t.dtype == torch.float64 else as_float(t, *a, **k)
    torch.Tensor.type = lambda t, *a: t if t.dtype == torch.float64 and a == (torch.float32,) else as_type(t, *a)
    torch.Tensor.to = lambda t, *a, **k: (t if t.dtype == torch.float64 and a and a[0] is torch.float32
                                          else to(t, *a, **k))


if __name__ == "__main__":
    keep_double()
    for name in sys.argv[1:] or FIXTURES:
        KIND = "backbone" if name.startswith("nemotron_h") else ""
        m.make(name, *FIXTURES[name])
