"""Writes models with random weights: a Hugging Face folder and GGUF files of the same weights.

    make_models.py FOLDER llama-134m [f32 bf16 q8_0 q4_0]     FOLDER/llama-134m/, FOLDER/llama-134m-f32.gguf, ...
    make_models.py FOLDER gpt2-124m                           FOLDER/gpt2-124m/

GGUF holds the rows of q and k in another order: llama.cpp rotates neighbours, Hugging Face the halves of a head.
"""
import os
import sys

import torch
from transformers import AutoModelForCausalLM

from shapes import config

TYPES = {"f32": "F32", "bf16": "BF16", "q8_0": "Q8_0", "q4_0": "Q4_0"}
LAYER = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
TOP = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
       "lm_head.weight": "output.weight"}


def gguf_name(name):
    if name in TOP:
        return TOP[name]
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{LAYER[rest.removesuffix('.weight')]}.weight"


def permuted(weight, heads):
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(path, model, kind):
    import gguf
    c = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(c.vocab_size)
    writer.add_tokenizer_model("none")
    quantized = gguf.GGMLQuantizationType[TYPES[kind]]
    writer.add_file_type(gguf.LlamaFileType[{"f32": "ALL_F32"}.get(kind, "MOSTLY_" + TYPES[kind])])
    for name, tensor in model.state_dict().items():
        weight = tensor.float().numpy()
        if "q_proj" in name:
            weight = permuted(weight, c.num_attention_heads)
        if "k_proj" in name:
            weight = permuted(weight, c.num_key_value_heads)
        as_type = quantized if weight.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(gguf_name(name), gguf.quants.quantize(weight, as_type), raw_dtype=as_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder, name, *kinds = sys.argv[1:]
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config(name))
    model.save_pretrained(os.path.join(folder, name))
    for kind in kinds:
        path = os.path.join(folder, f"{name}-{kind}.gguf")
        write_gguf(path + ".part", model, kind)
        os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
