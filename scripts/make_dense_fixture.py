#!/usr/bin/env python3
"""Makes tests/fixtures/gemma3-sentence: a folder in the form of EmbeddingGemma, and what its modules compute.

Gemma 3's text model with attention to both sides, mean of the tokens, two Dense modules, length 1. Needs torch,
transformers 5 and sentence-transformers 6.
"""
import json
import pathlib

import torch
import transformers as tf
from safetensors.torch import save_file
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "gemma3-sentence"


def main():
    g = torch.Generator().manual_seed(5)
    config = tf.Gemma3TextConfig(
        vocab_size=53, hidden_size=24, intermediate_size=38, num_hidden_layers=3, num_attention_heads=3,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=256, query_pre_attn_scalar=10, sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"], use_bidirectional_attention=True,
        pad_token_id=0)
    model = tf.Gemma3TextModel._from_config(config, attn_implementation="eager").eval()
    dense = [Dense(24, 32, bias=False, activation_function=torch.nn.Identity()), Dense(32, 20)]
    modules = [Pooling(24, pooling_mode="mean"), *dense, Normalize()]
    with torch.no_grad():
        for m in (model, *dense):
            for name, p in sorted(m.named_parameters()):
                x = torch.randn(p.shape, generator=g)
                p.copy_(x * (0.2 if p.dim() < 2 or "embed" in name else 1.3 / p.shape[-1] ** 0.5))
    model.save_pretrained(FOLDER)
    (FOLDER / "generation_config.json").unlink(missing_ok=True)
    for i, m in enumerate(modules[:-1], 1):
        (FOLDER / f"{i}_{type(m).__name__}").mkdir(exist_ok=True)
        m.save(str(FOLDER / f"{i}_{type(m).__name__}"))
    names = ["Transformer"] + [type(m).__name__ for m in modules]
    (FOLDER / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": f"{i}_{n}" if i else "", "type": f"sentence_transformers.models.{n}"}
         for i, n in enumerate(names)], indent=2) + "\n")
    (FOLDER / "config_sentence_transformers.json").write_text(json.dumps(
        {"prompts": {"query": "task: search result | query: ", "document": "title: none | text: "},
         "default_prompt_name": None, "similarity_fn_name": "cosine"}, indent=2) + "\n")

    tensors = {}  # padding of at most 2 tokens: a query whose window has no token has no numbers in float64
    for prefix, lengths, width in (("", (13, 11, 12), 13), ("positive_", (9, 11, 10), 11)):
        mask = torch.tensor([[1] * n + [0] * (width - n) for n in lengths])
        tensors[f"{prefix}input_ids"] = torch.randint(1, 53, mask.shape, generator=g) * mask
        tensors[f"{prefix}attention_mask"] = mask

    def run(dtype):
        model.to(dtype).zero_grad()
        out = {}
        for prefix in ("", "positive_"):
            ids, mask = tensors[f"{prefix}input_ids"], tensors[f"{prefix}attention_mask"]
            f = {"token_embeddings": model(ids, attention_mask=mask).last_hidden_state, "attention_mask": mask}
            for m in modules:
                f = m.to(dtype)(f)
            out[f"{prefix}embeddings"] = f["sentence_embedding"]
        logits = 20 * out["embeddings"] @ out["positive_embeddings"].T
        out["loss"] = torch.nn.functional.cross_entropy(logits, torch.arange(3))
        out["loss"].backward()
        named = list(model.named_parameters())
        named += [(f"{i}_Dense/{n}", p) for i, m in enumerate(dense, 2) for n, p in m.named_parameters()]
        out |= {f"grad.{n}": p.grad.clone() for n, p in named}
        for m in dense:
            m.zero_grad()
        return {n: t.detach().clone().contiguous() for n, t in out.items()}

    single, double = run(torch.float32), run(torch.float64)
    worst = max((single[n].double() - double[n]).abs().max().item() for n in single)
    save_file(tensors | single, FOLDER / "expected.safetensors")
    print(f"loss {single['loss']:.4f}, largest difference to float64 {worst:.1e}")


if __name__ == "__main__":
    main()
