#!/usr/bin/env python3
"""Makes the tiny checkpoints tests/fixtures/{gpt2-variants,opt-postnorm,...} with the results of PyTorch.

They have the settings that the larger fixtures do not use. Needs torch and transformers 5; tests don't: the
files are committed. Usage: scripts/make_model_fixtures.py [NAME...]
"""
import copy
import json
import pathlib
import sys

import torch
import transformers as tf
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
VOCAB = 53

GPT2 = dict(vocab_size=VOCAB, n_positions=32, n_embd=20, n_layer=3, n_head=5, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
OPT = dict(vocab_size=VOCAB, max_position_embeddings=32, hidden_size=24, num_hidden_layers=2, ffn_dim=36,
           num_attention_heads=3, dropout=0.0, attention_dropout=0.0)
LLAMA = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=38, num_hidden_layers=2, num_attention_heads=3,
             num_key_value_heads=3, max_position_embeddings=256)

T5 = dict(vocab_size=VOCAB, d_model=20, d_kv=6, d_ff=34, num_layers=1, num_decoder_layers=3, num_heads=5,
          relative_attention_num_buckets=12, relative_attention_max_distance=20, dropout_rate=0.0,
          decoder_start_token_id=3)
BART = dict(vocab_size=VOCAB, d_model=20, encoder_layers=1, decoder_layers=2, encoder_attention_heads=5,
            decoder_attention_heads=2, encoder_ffn_dim=26, decoder_ffn_dim=34, max_position_embeddings=24,
            dropout=0.0)
BERT = dict(vocab_size=VOCAB, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=38,
            max_position_embeddings=24, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def rope(kind="default", **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


FIXTURES = {
    # relu instead of gelu_new, scaling by layer instead of width, an untied head, an odd inner width.
    "gpt2-variants": ("gpt2", dict(GPT2, scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False, n_inner=34,
                                   activation_function="relu", tie_word_embeddings=False)),
    # Scores divided by layer and width, in another order of operations.
    "gpt2-upcast": ("gpt2", dict(GPT2, scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True,
                                 activation_function="gelu")),
    # Norms after each part.
    "openai-gpt": ("openai-gpt", dict(vocab_size=VOCAB, n_positions=32, n_embd=24, n_layer=2, n_head=3, resid_pdrop=0.0,
                                      embd_pdrop=0.0, attn_pdrop=0.0)),
    "gptj-tied": ("gptj", dict(vocab_size=VOCAB, n_positions=32, n_embd=24, n_layer=2, n_head=3, rotary_dim=8,
                               tie_word_embeddings=True, activation_function="silu", bos_token_id=0, eos_token_id=0)),
    # The settings of opt-350m.
    "opt-postnorm": ("opt", dict(OPT, do_layer_norm_before=False, word_embed_proj_dim=14)),
    "opt-nobias": ("opt", dict(OPT, enable_bias=False, layer_norm_elementwise_affine=False,
                               _remove_final_layer_norm=True, tie_word_embeddings=False,
                               activation_function="gelu")),
    "llama-tied-bias": ("llama", dict(LLAMA, num_key_value_heads=1, attention_bias=True, mlp_bias=True,
                                      tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh", rms_norm_eps=1e-5,
                                      **rope())),
    "llama-rope-linear": ("llama", dict(LLAMA, **rope("linear", factor=4.0))),
    "llama-rope-llama3": ("llama", dict(LLAMA, **rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                      original_max_position_embeddings=128))),
    "llama-rope-yarn": ("llama", dict(LLAMA, **rope("yarn", factor=4.0, original_max_position_embeddings=64))),
    # Heads wider than hidden_size / num_attention_heads.
    "mistral-window": ("mistral", dict(LLAMA, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                                       sliding_window=4, **rope())),
    "qwen2-window": ("qwen2", dict(LLAMA, num_attention_heads=6, num_key_value_heads=2, use_sliding_window=True,
                                   sliding_window=5, max_window_layers=1, pad_token_id=7, tie_word_embeddings=True,
                                   rope_parameters={"rope_type": "default", "rope_theta": 1e6})),
    # Norms of the heads before rotary positions, heads wider than hidden_size / num_attention_heads, one window.
    "qwen3": ("qwen3", dict(LLAMA, num_attention_heads=6, num_key_value_heads=3, head_dim=10, attention_bias=True,
                            use_sliding_window=True, sliding_window=5, max_window_layers=1,
                            rope_parameters={"rope_type": "default", "rope_theta": 1e6})),
    # Weights of norms stored less one, scaled embeddings, a padding token that gets no gradient.
    "gemma": ("gemma", dict(LLAMA, num_key_value_heads=1, head_dim=12, pad_token_id=7, **rope())),
    # Both soft caps in their nonlinear range, norms on both sides, a window in every second layer.
    "gemma2": ("gemma2", dict(LLAMA, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=8,
                              query_pre_attn_scalar=4, attn_logit_softcapping=2.0, final_logit_softcapping=5.0,
                              sliding_window=4, pad_token_id=0, **rope())),
    # Two rotary bases, one of them scaled; one full layer after two with windows.
    "gemma3": ("gemma3_text", dict(LLAMA, num_hidden_layers=3, num_key_value_heads=1, head_dim=8,
                                   query_pre_attn_scalar=10, sliding_window=5, pad_token_id=None,
                                   layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                                   tie_word_embeddings=False,
                                   rope_parameters={
                                       "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                       "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}})),
    # Five experts, two per token. Some meshes cannot divide the experts evenly.
    "mixtral": ("mixtral", dict(LLAMA, num_key_value_heads=1, num_local_experts=5, num_experts_per_tok=2,
                                intermediate_size=16, sliding_window=6, **rope())),
    # The load-balancing loss of the routers; in the second one of a layer only.
    "mixtral-balanced": ("mixtral", dict(LLAMA, num_key_value_heads=1, num_local_experts=5, num_experts_per_tok=2,
                                         intermediate_size=16, output_router_logits=True,
                                         router_aux_loss_coef=0.3, **rope())),
    "qwen2_moe-balanced": ("qwen2_moe", dict(LLAMA, num_key_value_heads=1, num_experts=5, num_experts_per_tok=3,
                                             moe_intermediate_size=10, shared_expert_intermediate_size=14,
                                             mlp_only_layers=[0], output_router_logits=True,
                                             router_aux_loss_coef=0.2, **rope())),
    # Experts in blocks of 4 bits, also along the shards of their rows.
    "gpt_oss-mxfp4": ("gpt_oss", dict(LLAMA, hidden_size=32, intermediate_size=64, num_key_value_heads=1, head_dim=8,
                                      num_local_experts=4, num_experts_per_tok=3, sliding_window=5,
                                      swiglu_limit=1.5, swiglu_alpha=1.3, output_router_logits=True,
                                      router_aux_loss_coef=0.2, **rope())),
    # Rotary bases that depend on the length, and factors per frequency; the inputs are longer than the limits.
    "llama-rope-dynamic": ("llama", dict(LLAMA, max_position_embeddings=8, **rope("dynamic", factor=3.0))),
    "phi3-longrope": ("phi3", dict(LLAMA, head_dim=8, max_position_embeddings=32, original_max_position_embeddings=8,
                                   num_key_value_heads=1, pad_token_id=0,
                                   **rope("longrope", short_factor=[1.0, 1.1, 1.3, 1.7],
                                          long_factor=[1.0, 2.1, 3.3, 4.7]))),
    "phi": ("phi", dict(LLAMA, qk_layernorm=True, partial_rotary_factor=0.5, pad_token_id=7)),
    # A norm after the other, and no biases of the attention.
    "gpt_neox-sequential": ("gpt_neox", dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=38,
                                             num_hidden_layers=2, num_attention_heads=3, attention_bias=False,
                                             max_position_embeddings=32, use_parallel_residual=False,
                                             hidden_act="relu", rotary_pct=0.5)),
    # One key/value head for all queries, one norm; and head by head with ALiBi and biases in sequential blocks.
    "falcon-mqa": ("falcon", dict(vocab_size=VOCAB, hidden_size=24, num_hidden_layers=2, num_attention_heads=3)),
    "falcon-alibi": ("falcon", dict(vocab_size=VOCAB, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                                    alibi=True, multi_query=False, parallel_attn=False, bias=True,
                                    tie_word_embeddings=False)),
    "bloom-variants": ("bloom", dict(vocab_size=VOCAB, hidden_size=24, n_layer=2, n_head=4,
                                     apply_residual_connection_post_layernorm=True)),
    "mpt": ("mpt", dict(vocab_size=VOCAB, d_model=24, n_heads=3, n_layers=2, max_seq_len=32,
                        attn_config=dict(clip_qkv=1.5, softmax_scale=0.3))),
    "gpt_bigcode": ("gpt_bigcode", dict(GPT2, n_inner=34)),
    "gpt_bigcode-heads": ("gpt_bigcode", dict(GPT2, multi_query=False, scale_attn_weights=False,
                                              tie_word_embeddings=False)),
    # A norm for each head, stored head by head.
    "stablelm": ("stablelm", dict(LLAMA, num_attention_heads=6, num_key_value_heads=2, hidden_size=48,
                                  qk_layernorm=True, use_qkv_bias=True)),
    "stablelm-parallel": ("stablelm", dict(LLAMA, use_parallel_residual=True, partial_rotary_factor=0.5)),
    "olmo": ("olmo", dict(LLAMA, clip_qkv=0.9, num_key_value_heads=1)),
    "olmo3": ("olmo3", dict(LLAMA, num_hidden_layers=3, num_key_value_heads=1, sliding_window=5,
                            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                            rope_parameters={
                                "full_attention": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 5e5,
                                                   "original_max_position_embeddings": 64},
                                "sliding_attention": {"rope_type": "default", "rope_theta": 5e5}})),
    "granite": ("granite", dict(LLAMA, embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.6,
                                logits_scaling=4.0, mlp_bias=True, attention_bias=True, tie_word_embeddings=True)),
    "cohere": ("cohere", dict(LLAMA, num_attention_heads=6, num_key_value_heads=2, hidden_size=48, use_qk_norm=True,
                              attention_bias=True, logit_scale=0.25)),
    "glm": ("glm", dict(LLAMA, head_dim=8, num_key_value_heads=1, pad_token_id=None, attention_bias=False,
                        tie_word_embeddings=True)),
    "glm4": ("glm4", dict(LLAMA, head_dim=8, num_key_value_heads=1, pad_token_id=None, attention_bias=True)),
    "smollm3": ("smollm3", dict(LLAMA, num_key_value_heads=1, no_rope_layers=[1, 0], use_sliding_window=True,
                                sliding_window=5, pad_token_id=None, bos_token_id=0, eos_token_id=1)),
    "nemotron": ("nemotron", dict(LLAMA, head_dim=8, num_key_value_heads=1, mlp_bias=True)),
    "exaone4": ("exaone4", dict(LLAMA, num_hidden_layers=3, num_key_value_heads=1, head_dim=8, sliding_window=5,
                                sliding_window_pattern=3)),
    # Queries without a latent vector, one group of two, softmax scores, yarn with mscale_all_dim.
    "deepseek_v2": ("deepseek_v2", dict(LLAMA, num_hidden_layers=2, first_k_dense_replace=1, kv_lora_rank=10,
                                        q_lora_rank=None, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=12,
                                        n_routed_experts=6, n_shared_experts=2, num_experts_per_tok=2, n_group=3,
                                        topk_group=2, topk_method="group_limited_greedy", routed_scaling_factor=1.5,
                                        moe_intermediate_size=10,
                                        **rope("yarn", factor=4.0, original_max_position_embeddings=64,
                                               mscale=0.8, mscale_all_dim=0.6))),
    # Tied, scaled and gated together; stacks of different depth; buckets in the linear and the logarithmic range.
    "t5-variants": ("t5", dict(T5, feed_forward_proj="gated-silu", layer_norm_epsilon=1e-5)),
    # The target begins with its language; positions from row 0 on, with both places of norms.
    "plbart": ("plbart", dict(BART)),
    "blenderbot": ("blenderbot", dict(BART)),
    "blenderbot-small": ("blenderbot-small", dict(BART, scale_embedding=True)),
    "mt5": ("mt5", dict(T5)),
    # The decoder reads the text too, and the head its state of the end token.
    "bart-class": ("bart", dict(BART, num_labels=3)),
    "ernie": ("ernie", dict(BERT, use_task_id=True, task_type_vocab_size=3)),
    "data2vec-text": ("data2vec-text", dict(BERT, type_vocab_size=1)),
    # Masked tokens without embedding; rotary positions, and learned ones with a norm.
    "esm": ("esm", dict(BERT, position_embedding_type="rotary", token_dropout=True, mask_token_id=5, pad_token_id=1,
                        layer_norm_eps=1e-5)),
    "esm-absolute": ("esm", dict(BERT, emb_layer_norm_before=True, token_dropout=True, mask_token_id=5, pad_token_id=1)),
    # Rotary positions and gated MLPs; a file has up before gate. No types of tokens.
    "gte": ("gte", dict(BERT, pad_token_id=1)),
    "gte-class": ("gte", dict(BERT, type_vocab_size=0, num_labels=3)),
    "jina_embeddings_v3": ("jina_embeddings_v3", dict(BERT, pad_token_id=1)),
    # Grouped heads and norms of LLaMA, to both sides; the mean of the classes' scores of all tokens.
    "eurobert": ("eurobert", dict(LLAMA, num_key_value_heads=1, mlp_bias=True, pad_token_id=1, mask_token_id=5)),
    "eurobert-class": ("eurobert", dict(LLAMA, num_labels=3, pad_token_id=1, mask_token_id=5)),
    # Norms before each part.
    "roformer": ("roformer", dict(BERT, embedding_size=14)),
    "megatron-bert": ("megatron-bert", dict(BERT)),
    "roberta-prelayernorm": ("roberta-prelayernorm", dict(BERT, pad_token_id=1)),
    "xlm-roberta-xl": ("xlm-roberta-xl", dict(BERT, pad_token_id=1)),
    # A table of relative positions in each layer.
    "umt5": ("umt5", dict(T5, num_layers=2)),
    # The text model of a folder with an image tower.
    "gemma3-images": ("gemma3", dict(
        text_config=dict(LLAMA, num_hidden_layers=3, num_key_value_heads=1, head_dim=8, sliding_window=4,
                         query_pre_attn_scalar=8, sliding_window_pattern=2),
        vision_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=8,
                           patch_size=4, vision_use_head=False),
        mm_tokens_per_image=4, image_token_index=VOCAB - 1, boi_token_index=VOCAB - 2, eoi_token_index=VOCAB - 3)),
    "mistral3-images": ("mistral3", dict(
        text_config=dict(LLAMA, model_type="ministral3", num_key_value_heads=1, head_dim=8, pad_token_id=7,
                         **rope("yarn", factor=4.0, original_max_position_embeddings=5, llama_4_scaling_beta=0.5)),
        vision_config=dict(model_type="pixtral", hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                           num_attention_heads=2, image_size=8, patch_size=4, head_dim=4),
        image_token_index=VOCAB - 1, tie_word_embeddings=False)),
    # Clipped after the norms, weights of the experts that do not sum to 1, and the load-balancing loss.
    "olmoe": ("olmoe", dict(LLAMA, num_key_value_heads=1, num_experts=5, num_experts_per_tok=2, intermediate_size=12,
                            clip_qkv=1.2, pad_token_id=None, eos_token_id=2,
                            output_router_logits=True, router_aux_loss_coef=0.1,
                            **rope())),
    "glm4_moe": ("glm4_moe", dict(LLAMA, num_hidden_layers=2, num_key_value_heads=1, attention_bias=True,
                                  use_qk_norm=True, first_k_dense_replace=1, n_routed_experts=6, n_shared_experts=1,
                                  num_experts_per_tok=2, n_group=3, topk_group=2, routed_scaling_factor=1.5,
                                  moe_intermediate_size=10, partial_rotary_factor=0.5)),
    "dots1": ("dots1", dict(LLAMA, num_hidden_layers=3, num_key_value_heads=3, first_k_dense_replace=1,
                            n_routed_experts=4, n_shared_experts=2, num_experts_per_tok=3, norm_topk_prob=True,
                            moe_intermediate_size=10, sliding_window=5, max_window_layers=2)),
    "ernie4_5": ("ernie4_5", dict(LLAMA, num_key_value_heads=1, head_dim=10, use_bias=True)),
    "helium": ("helium", dict(LLAMA, num_key_value_heads=1, head_dim=8, attention_bias=True, pad_token_id=3)),
    "seed_oss": ("seed_oss", dict(LLAMA, num_key_value_heads=1, head_dim=10, attention_out_bias=True, mlp_bias=True,
                                  attention_dropout=0.0, residual_dropout=0.0)),
    "arcee": ("arcee", dict(LLAMA, num_key_value_heads=1, mlp_bias=True, bos_token_id=1, eos_token_id=2)),
    # Stacks of different depth, heads and width; a padding token that isn't 1.
    "bart-variants": ("bart", dict(BART, scale_embedding=True, activation_function="relu", pad_token_id=4,
                                   decoder_start_token_id=5)),
    # Three embedding tables and an untied head.
    "bart-untied": ("bart", dict(BART, tie_word_embeddings=False)),
    # Three token types, none in the inputs; another activation, also in the head.
    "bert-variants": ("bert", dict(BERT, type_vocab_size=3, hidden_act="gelu_new", layer_norm_eps=1e-6,
                                   pad_token_id=5)),
    "xlm-roberta-class": ("xlm-roberta", dict(BERT, type_vocab_size=1, pad_token_id=1, num_labels=3)),
    "mpnet": ("mpnet", dict(BERT, max_position_embeddings=26)),
    "mpnet-class": ("mpnet", dict(BERT, max_position_embeddings=26, num_labels=3)),
    # Embeddings narrower than the model.
    "electra": ("electra", dict(BERT, embedding_size=14, pad_token_id=3)),
    "electra-class": ("electra", dict(BERT, embedding_size=24, num_labels=4)),
    # Four layers of two groups: the layers of a group share their parameters.
    "albert": ("albert", dict(BERT, embedding_size=10, num_hidden_layers=4, num_hidden_groups=2)),
    "albert-class": ("albert", dict(BERT, embedding_size=10, num_labels=3, classifier_dropout_prob=0.0)),
    "distilbert-mlm": ("distilbert", dict(vocab_size=VOCAB, dim=24, n_layers=2, n_heads=3, hidden_dim=38,
                                          max_position_embeddings=24, dropout=0.0, attention_dropout=0.0)),
    # Biases everywhere, the mean of all tokens, windows of 2 tokens to each side.
    "modernbert-class": ("modernbert", dict(vocab_size=VOCAB, hidden_size=24, num_hidden_layers=3,
                                            num_attention_heads=3, intermediate_size=22, local_attention=5,
                                            norm_bias=True, attention_bias=True, mlp_bias=True,
                                            classifier_bias=True, classifier_pooling="mean", num_labels=3,
                                            classifier_activation="silu", pad_token_id=0, bos_token_id=1,
                                            eos_token_id=2, cls_token_id=1, sep_token_id=2)),
    # Other projections for positions, no buckets, positions and types in the embedding too.
    "deberta-v2-mlm": ("deberta-v2", dict(BERT, relative_attention=True, pos_att_type=["c2p", "p2c"],
                                          max_relative_positions=7, norm_rel_ebd="none", type_vocab_size=2)),
    # A convolution at the first layer, narrow embeddings that are projected before their norm, shared keys.
    "deberta-v2-conv": ("deberta-v2", dict(BERT, relative_attention=True, pos_att_type="c2p|p2c", position_buckets=6,
                                           share_att_key=True, norm_rel_ebd="layer_norm", type_vocab_size=0,
                                           position_biased_input=False, conv_kernel_size=3, conv_act="gelu",
                                           embedding_size=16)),
    # No relative positions, whose terms still divide the scores, and the other head.
    "deberta-v2-absolute": ("deberta-v2", dict(BERT, relative_attention=False, pos_att_type=["c2p"], legacy=False,
                                               conv_kernel_size=5, conv_groups=2)),
    # Relative positions without scores: the table is stored, and not used.
    "deberta-v2-unused-table-class": ("deberta-v2", dict(BERT, relative_attention=True, pos_att_type=[],
                                                         norm_rel_ebd="layer_norm", num_labels=3)),
    # A separate table for the head, and no bias.
    "modernbert-untied": ("modernbert", dict(vocab_size=VOCAB, hidden_size=24, num_hidden_layers=3,
                                             num_attention_heads=3, intermediate_size=22, local_attention=6,
                                             global_attn_every_n_layers=2, hidden_activation="silu",
                                             decoder_bias=False, tie_word_embeddings=False, pad_token_id=0,
                                             bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)),
    "camembert": ("camembert", dict(BERT, type_vocab_size=1, pad_token_id=3)),
    "nomic_bert": ("nomic_bert", dict(BERT, pad_token_id=2)),
    "nomic_bert-class": ("nomic_bert", dict(BERT, num_labels=3)),
    "mbart": ("mbart", dict(BART, scale_embedding=True, activation_function="relu")),
    # Positions are counted from the padding id. The head always uses gelu, independent of hidden_act.
    "roberta-mlm": ("roberta", dict(BERT, type_vocab_size=1, hidden_act="relu", pad_token_id=4, bos_token_id=0)),
}


def randomize(model, generator, unit_offset=False):
    """No parameter keeps a special initial value: norms are not ones, biases are not zeros."""
    # Gemma: norm weights are added to 1, embeddings are multiplied by the square root of the width.
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if model.config.model_type == "roformer" and not p.requires_grad:  # sinusoids
                continue
            x = torch.randn(p.shape, generator=generator)
            if p.dim() > 1:
                embedding = any(word in name for word in ("embed", "wte", "wpe", "shared"))
                p.copy_(x * ((0.2 if unit_offset else 0.6) if embedding else 1.3 / p.shape[-1] ** 0.5))
            else:
                offset = unit_offset and "norm" in name
                p.copy_(x * 0.2 + (0.0 if name.endswith("bias") or offset else 1.0))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator) * 0.3)


def as_saved(name, t, mixtral):
    """Tensors under the names of the files: transformers 5 computes with stacked experts, but writes each expert."""
    moe = ".block_sparse_moe" if mixtral else ".mlp"
    name = name.replace(".mlp.gate.", f"{moe}.gate.")
    if ".mlp.experts." not in name:
        return {name: t}
    prefix = name[:name.index(".mlp.experts.")] + moe + ".experts"
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    parts = {down: t} if name.endswith("down_proj") else dict(zip((gate, up), t.chunk(2, dim=1)))
    return {f"{prefix}.{e}.{w}.weight": x.clone() for w, p in parts.items() for e, x in enumerate(p)}


FP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def to_mxfp4(w):
    """(experts, in, out) -> blocks and scales of gpt-oss, and the values that they hold."""
    rows = w.transpose(1, 2).reshape(*w.transpose(1, 2).shape[:2], -1, 32)
    scales = torch.log2(rows.abs().amax(-1, keepdim=True)).floor() - 2
    scaled = rows / 2**scales
    codes = (scaled.abs().unsqueeze(-1) - FP4).abs().argmin(-1) + 8 * (scaled < 0)
    values = torch.cat([FP4, -FP4])[codes] * 2**scales
    blocks = (codes[..., ::2] + 16 * codes[..., 1::2]).to(torch.uint8)
    return (blocks.contiguous(), (scales.squeeze(-1) + 127).to(torch.uint8).contiguous(),
            values.flatten(2).transpose(1, 2).contiguous())


def pack_mxfp4(model):
    """Rounds the experts to MXFP4; returns the tensors that a file has in their place."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    packed = {}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
                continue
            blocks, scales, values = to_mxfp4(p)
            p.copy_(values)
            assert torch.equal(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32), values)
            packed |= {name + "_blocks": blocks, name + "_scales": scales}
    return packed


def store_packed(folder, packed):
    """Writes packed tensors in place of the experts."""
    from safetensors.torch import load_file
    path = folder / "model.safetensors"
    tensors = {n: t for n, t in load_file(path).items() if n + "_blocks" not in packed}
    save_file(tensors | packed, path, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def compute(model, inputs):
    """Hidden states, logits, loss and gradients of the inputs."""
    model.zero_grad()
    cache = {} if model.config.model_type in ENCODERS else {"use_cache": False}
    out = model(**inputs, output_hidden_states=True, **cache)
    out.loss.backward()
    stacks = ["encoder_hidden", "decoder_hidden"] if model.config.is_encoder_decoder else ["hidden"]
    if "decoder_input_ids" not in inputs and model.config.is_encoder_decoder:
        stacks = []
    results = {f"{s}.{i}": h for s in stacks for i, h in enumerate(out[f"{s}_states"])}
    results |= {"logits": out.logits, "loss": out.loss}
    for n, p in model.named_parameters():
        if p.grad is None and model.config.model_type in ("deberta-v2", "gemma3", "mistral3", "esm", "roformer"):  # not used: a table, the image tower
            continue
        n = n.replace("model.language_model.", "model.")  # redco's names, those of the text model alone
        n = n.replace("lm_head.", "embed_out.") if model.config.model_type == "gpt_neox" else n
        if model.config.model_type in ("camembert", "jina_embeddings_v3"):  # where the head comes first
            n = n.replace("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight")
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        results |= ({f"grad.{n}": grad} if model.config.model_type == "gpt_oss"
                    else as_saved(f"grad.{n}", grad, model.config.model_type == "mixtral"))
    if model.config.model_type in OLD_NAMES:
        results = old_names(results, *OLD_NAMES[model.config.model_type])
    return {n: t.detach().clone().contiguous() for n, t in results.items()}


# transformers 5 computes with three projections (and two of a gated MLP), but writes one: its name, and other names.
OLD_NAMES = {
    "nomic_bert": ("attn.Wqkv", "", {
        ".layers.": ".encoder.layers.", "embeddings.LayerNorm": "emb_ln", "self_attn.o_proj": "attn.out_proj",
        "up_proj": "fc11", "gate_proj": "fc12", "down_proj": "fc2", "post_attention_layernorm": "norm1",
        "post_mlp_layernorm": "norm2"}),
    "gte": ("attention.qkv_proj", "mlp.up_gate_proj", {
        ".layers.": ".encoder.layer.", "self_attn.o_proj": "attention.o_proj",
        "post_attention_layernorm": "attn_ln", "post_mlp_layernorm": "mlp_ln", "lm_head.layer_norm": "lm_head.norm"}),
    "jina_embeddings_v3": ("mixer.Wqkv", "", {
        ".layers.": ".encoder.layers.", "embeddings.LayerNorm": "emb_ln", "self_attn.o_proj": "mixer.out_proj",
        "post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"}),
}


def old_names(results, qkv, up_gate, names):
    out = {}
    for name, t in results.items():
        if ".self_attn.k_proj." in name or ".self_attn.v_proj." in name or (up_gate and ".mlp.gate_proj." in name):
            continue
        if ".self_attn.q_proj." in name:
            t = torch.cat([results[name.replace("q_proj", f"{p}_proj")] for p in "qkv"])
            name = name.replace("self_attn.q_proj", qkv)
        if up_gate and ".mlp.up_proj." in name:
            t = torch.cat([t, results[name.replace("up_proj", "gate_proj")]])
            name = name.replace("mlp.up_proj", up_gate)
        for new, old in names.items():
            name = name.replace(new, old) if name.startswith("grad.") else name
        out[name] = t
    return out


ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet", "electra", "albert", "distilbert", "modernbert", "nomic_bert",
            "deberta-v2", "ernie", "data2vec-text", "esm", "gte", "jina_embeddings_v3", "eurobert", "megatron-bert", "roformer",
            "roberta-prelayernorm", "xlm-roberta-xl")
# Families of transformers 4.41 whose keys are those of v4().
OLDER = ("gpt2", "gptj", "opt", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "mixtral")
GENERATED = ("qwen3", "gemma", "gemma2", "gemma3", "mixtral")  # with ids and three AdamW steps, in the format of `redco verify`
GENERATION = {"greedy_ids": dict(num_beams=1), "beam4_ids": dict(num_beams=4, length_penalty=1.0)}
MAX_NEW_TOKENS = 12
WITHOUT_GAP = ("bloom", "falcon")  # transformers counts ALiBi's distances without the gap
WITHOUT_PADDING = []


def generate(model, generator):
    """Prompts of equal and of different length, padded on the left, and their continuations."""
    ids = torch.randint(8, VOCAB, (3, 9), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, :4] = mask[2, :7] = 0
    pad = model.generation_config.pad_token_id
    ids = torch.where(mask == 1, ids, pad)
    results = {"padded_input_ids": ids, "padded_attention_mask": mask}
    prompts = {"": (ids[:1], mask[:1]), "padded_": (ids, mask)}
    results["gen_input_ids"] = ids[:1].clone()
    for prefix, (rows, m) in prompts.items():
        for name, settings in GENERATION.items():
            out = model.generate(rows, attention_mask=m, max_new_tokens=MAX_NEW_TOKENS, do_sample=False, **settings)
            results[prefix + name] = out.clone()
    return results


def generate_again(model, results, generator):
    """The same with weights that differ by 1e-5. Ids that are equal in both may be tested exactly."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        for p in model.parameters():
            p *= 1 + 1e-5 * torch.randn(p.shape, generator=generator)
    prompts = {"": (results["gen_input_ids"], None), "padded_": (results["padded_input_ids"], results["padded_attention_mask"])}
    return {prefix + name: model.generate(rows, attention_mask=torch.ones_like(rows) if m is None else m,
                                          max_new_tokens=MAX_NEW_TOKENS, do_sample=False, **settings)
            for prefix, (rows, m) in prompts.items() for name, settings in GENERATION.items()}


def three_steps(model, inputs):
    """Losses before and after three AdamW steps, with weight decay on all parameters."""
    model.zero_grad()
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = {}
    for step in range(3):
        adamw.zero_grad()
        loss = model(**inputs, use_cache=False).loss
        losses[f"loss_step{step + 1}"] = loss.detach().clone()
        loss.backward()
        adamw.step()
    losses["loss_after3"] = model(**inputs, use_cache=False).loss.detach().clone()
    return losses


def v4(config):
    """The older spelling of a config."""
    old = {k: v for k, v in config.items() if k not in ("rope_parameters", "layer_types", "dtype",
                                                                "_sliding_window_pattern")}
    old |= {"transformers_version": "4.41.0", "torch_dtype": "float32"}
    if "rope_parameters" in config:
        rope = dict(config["rope_parameters"])
        if "full_attention" in rope:  # Gemma 3
            old["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
            old["sliding_window_pattern"] = config["num_hidden_layers"]
            rope = dict(rope["full_attention"])
        old["rope_theta"] = rope.pop("rope_theta")
        kind = rope.pop("rope_type")
        # 'type' became 'rope_type' with llama3.
        old["rope_scaling"] = None if kind == "default" else {"type" if kind == "linear" else "rope_type": kind, **rope}
    return old


def make(name, family, settings):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    config = tf.AutoConfig.for_model(family, **settings)
    config._experts_implementation = "eager"  # the other implementations have no float64
    two_stacks = config.is_encoder_decoder
    encoder, classes = family in ENCODERS, name.endswith("-class")
    kind = (tf.AutoModelForSequenceClassification if classes else tf.AutoModelForSeq2SeqLM if two_stacks
            else tf.AutoModelForImageTextToText if family in ("gemma3", "mistral3") else tf.AutoModelForMaskedLM if encoder else tf.AutoModelForCausalLM)
    # Falcon's eager attention adds ALiBi twice.
    attention = "sdpa" if getattr(config, "alibi", False) else "eager"
    model = kind.from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
    if name in GENERATED:
        model.generation_config = tf.GenerationConfig(bos_token_id=2, eos_token_id=1, pad_token_id=0)
    randomize(model, generator, unit_offset=family.startswith(("gemma", "nemotron")))
    packed = pack_mxfp4(model) if name.endswith("-mxfp4") else {}
    folder = FOLDER / name
    model.save_pretrained(folder)
    if packed:
        store_packed(folder, packed)
    if name not in GENERATED:
        (folder / "generation_config.json").unlink(missing_ok=True)
    saved = json.loads((folder / "config.json").read_text())
    if family in OLDER:
        (folder / "config.v4.json").write_text(json.dumps(v4(saved), indent=2) + "\n")

    ids = torch.randint(0, VOCAB, (3, 20 if two_stacks else 12), generator=generator)
    pad = getattr(config, "pad_token_id", None)
    ids[0, 3] = ids[1, 2] = pad if pad is not None else 5  # an ordinary token
    mask = torch.ones_like(ids)
    # Padded on the right; a query whose window has no token has no numbers in PyTorch.
    if family not in WITHOUT_PADDING:
        mask[1, 10 if family == "modernbert" else 9:] = 0
    if family not in WITHOUT_PADDING and family not in WITHOUT_GAP:
        mask[2, 4] = 0  # and a gap
    if classes and not encoder and not two_stacks:  # a head reads the state of the last token that is no padding
        ids = torch.where(mask == 1, ids, pad)
    labels = torch.where(mask == 1, ids, -100)
    if two_stacks and classes:  # a head reads the state of the last end token
        ids = torch.where(ids == config.eos_token_id, 5, ids)
        ids[0, -1] = ids[1, 7] = ids[2, 15] = config.eos_token_id
    elif two_stacks:
        labels = torch.randint(0, VOCAB, (3, 9), generator=generator)
        labels[1, 5:] = labels[2, 3] = -100
    if classes:
        labels = torch.randint(0, config.num_labels, (3,), generator=generator)
    elif encoder:
        labels[:, ::3] = -100
    inputs = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    if two_stacks and not classes:
        if hasattr(model, "prepare_decoder_input_ids_from_labels"):
            inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
        else:
            shift = sys.modules[type(model).__module__].shift_tokens_right
            inputs["decoder_input_ids"] = shift(labels, config.pad_token_id, config.decoder_start_token_id)
    single = compute(model, inputs)
    ids_out, single_model = {}, copy.deepcopy(model)
    if name in GENERATED:
        ids_out = generate(model, generator)
    for module in model.modules():
        if hasattr(module, "reorder_and_upcast_attn"):
            module.reorder_and_upcast_attn = False  # the same numbers; the other path requires float32
    double = compute(model.double(), inputs)
    if name in GENERATED:
        for key, ids in generate_again(single_model, ids_out, generator).items():
            assert torch.equal(ids, ids_out[key]), f"{name}: {key} hangs on rounding; take another seed"
        single |= three_steps(single_model, inputs)
        double |= three_steps(model, inputs)
    differences = {n: {"max_abs_diff": (single[n].double() - double[n]).abs().max().item(),
                       "max_abs": double[n].abs().max().item()} for n in single}
    save_file(inputs | single | ids_out, folder / "expected.safetensors")
    write = lambda file, value: (folder / file).write_text(json.dumps(value, indent=2) + "\n")
    write("tolerances.json", {"float32_vs_float64": differences})
    fixture = {"name": name, "family": family,
               "task": "sequence-classification" if classes else "seq2seq-lm" if two_stacks
               else "masked-lm" if encoder else "causal-lm", "tokenizer": None,
               "attention": attention}
    if name in GENERATED:
        fixture["optimizer"] = {"name": "AdamW", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08, "weight_decay": 0.01,
                                "steps": 3, "clip": None}
        fixture["generation"] = {"max_new_tokens": MAX_NEW_TOKENS, **GENERATION}
    write("fixture.json", fixture)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size // 1024} KiB, loss {single['loss']:.4f}, worst gradient difference "
          f"{max(d['max_abs_diff'] for n, d in differences.items() if n.startswith('grad')):.1e}")


def make_buckets():
    """tests/fixtures/t5-buckets.json: T5's buckets of distances, at their borders."""
    from transformers.models.t5.modeling_t5 import T5Attention

    cases = []
    for count, longest in ((32, 128), (32, 512), (12, 20), (8, 16), (64, 1000), (4, 9)):
        for both in (True, False):
            distances = torch.arange(-700, 701)
            buckets = T5Attention._relative_position_bucket(distances, both, count, longest).tolist()
            changes = [[d, b] for i, (d, b) in enumerate(zip(distances.tolist(), buckets))
                       if i == 0 or buckets[i - 1] != b]
            cases.append({"count": count, "max_distance": longest, "bidirectional": both, "changes": changes})
    (FOLDER / "t5-buckets.json").write_text("[" + ",\n ".join(map(json.dumps, cases)) + "]\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or FIXTURES:
        make(name, *FIXTURES[name])
    if not sys.argv[1:]:
        make_buckets()
