#!/usr/bin/env python3
"""Makes tests/fixtures/heads: small random models of transformers with heads for tokens, spans, choices and classes.

    PEER_PYTHON scripts/make_head_fixtures.py

Each folder has config.json, model.safetensors and expected.safetensors: input_ids, attention_mask, logits, and
grad.NAME, the gradients of the sum of logits * weights, for all parameters. PEER_PYTHON has torch and transformers.
"""
import os
import shutil

import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "tests", "fixtures", "heads")
COMMON = dict(vocab_size=40, num_labels=3, pad_token_id=0)
ENCODER = dict(COMMON, hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=20,
               max_position_embeddings=20, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.3)
DECODER = dict(COMMON, hidden_size=24, num_hidden_layers=1, num_attention_heads=3, num_key_value_heads=3, intermediate_size=20,
               max_position_embeddings=20, initializer_range=0.3)
ROBERTA = dict(ENCODER, pad_token_id=1, type_vocab_size=1)
DISTIL = dict(COMMON, dim=24, n_layers=1, n_heads=3, hidden_dim=20, max_position_embeddings=20, dropout=0.0,
              attention_dropout=0.0, seq_classif_dropout=0.0, qa_dropout=0.0, initializer_range=0.3)
MODERN = dict(COMMON, hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=20, cls_token_id=2,
              sep_token_id=3, max_position_embeddings=20, initializer_range=0.3, initializer_cutoff_factor=2.0)
ALBERT = dict(ENCODER, embedding_size=8, classifier_dropout_prob=0.0)
ELECTRA = dict(ENCODER, embedding_size=8)
DEBERTA = dict(ENCODER, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=4, max_relative_positions=20,
               share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0)
FAMILIES = {"Bert": ENCODER, "Roberta": ROBERTA, "DistilBert": DISTIL, "ModernBert": MODERN, "Albert": ALBERT,
            "Electra": ELECTRA, "MPNet": dict(ENCODER, pad_token_id=1), "DebertaV2": DEBERTA}
HEADS = [(f, "TokenClassification") for f in FAMILIES] + [(f, "QuestionAnswering") for f in FAMILIES] + \
        [(f, "MultipleChoice") for f in ("Bert", "Roberta", "DistilBert", "MPNet", "ModernBert")]
DECODERS = {"Llama": DECODER, "Qwen2": DECODER, "OPT": dict(COMMON, hidden_size=24, num_hidden_layers=1, num_attention_heads=3,
            ffn_dim=20, max_position_embeddings=20, word_embed_proj_dim=24, dropout=0.0, init_std=0.3, pad_token_id=1),
            "GPT2": dict(COMMON, n_embd=24, n_layer=1, n_head=3, n_positions=20, initializer_range=0.3, resid_pdrop=0.0,
                         embd_pdrop=0.0, attn_pdrop=0.0, n_inner=20)}
HEADS += [(f, "SequenceClassification") for f in DECODERS]
HEADS += [(f, "TokenClassification") for f in ("Llama", "GPT2")]
shutil.rmtree(OUT, ignore_errors=True)
for family, head in HEADS:
    torch.manual_seed(7)
    settings = dict(DECODERS.get(family) or FAMILIES[family])
    if head == "QuestionAnswering":
        settings["num_labels"] = 2
    config = getattr(transformers, family + "Config")(**settings)
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}For{head}")(config).eval()
    for name, p in model.named_parameters():
        if p.dim() == 1:
            torch.nn.init.normal_(p, 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, 0.3)
    pad = settings["pad_token_id"]
    ids = torch.randint(4, 40, (4, 9))
    mask = torch.ones_like(ids)
    for row, n in enumerate((9, 6, 7, 4)):
        ids[row, n:] = pad
        mask[row, n:] = 0
    if head == "MultipleChoice":  # the choices of two questions
        out = model(input_ids=ids.view(2, 2, 9), attention_mask=mask.view(2, 2, 9)).logits.reshape(4, 1)
    else:
        out = model(input_ids=ids, attention_mask=mask)
        out = torch.stack([out.start_logits, out.end_logits], -1) if head == "QuestionAnswering" else out.logits
    weights = torch.sin(torch.arange(out.numel(), dtype=torch.float32)).view_as(out)
    if out.dim() == 3:
        weights = weights * mask[..., None]
    (out * weights).sum().backward()
    folder = os.path.join(OUT, f"{family}{head}".lower())
    model.save_pretrained(folder)
    tensors = {"input_ids": ids, "attention_mask": mask, "logits": out.detach().contiguous()}
    for name, p in model.named_parameters():
        if p.grad is not None and p.grad.abs().sum() > 0 and p.dim() == 2 and p.numel() < 1000:
            tensors["grad." + name] = p.grad.contiguous()
    save_file(tensors, os.path.join(folder, "expected.safetensors"))
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))
