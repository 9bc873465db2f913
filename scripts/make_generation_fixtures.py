#!/usr/bin/env python3
"""Makes tests/fixtures/generation/{gpt2,llama,bart}: tiny random models and the text that transformers generates.

cases.json has greedy and beam searches with settings that no other fixture has (answers and scores), and the
probabilities for sampling. Every prompt is a separate batch, so nothing depends on padding. A case is kept only if
float64 and weights with a relative noise of 1e-5 give the same ids, and if there are as many answers as requested (a
forced end leaves one). Needs torch
and transformers 5. The files are committed, so the tests do not need them. Usage: scripts/make_generation_fixtures.py
"""
import copy
import json
import pathlib

import torch
import transformers as tf

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "generation"
VOCAB = 61

MODELS = {
    "gpt2": tf.GPT2Config(vocab_size=VOCAB, n_positions=40, n_embd=16, n_layer=2, n_head=2, bos_token_id=0,
                          eos_token_id=0, pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "llama": tf.LlamaConfig(vocab_size=VOCAB, hidden_size=16, intermediate_size=22, num_hidden_layers=2,
                            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                            bos_token_id=1, eos_token_id=[2, 3], pad_token_id=4),
    "bart": tf.BartConfig(vocab_size=VOCAB, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
                          decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20,
                          max_position_embeddings=40, dropout=0.0, bos_token_id=0, pad_token_id=1, eos_token_id=2,
                          decoder_start_token_id=2, forced_eos_token_id=2),
}
SEARCHES = [
    dict(max_new_tokens=12),
    dict(max_new_tokens=14, repetition_penalty=1.7),
    dict(max_new_tokens=14, no_repeat_ngram_size=2),
    dict(max_new_tokens=10, min_new_tokens=6),
    dict(max_new_tokens=12, num_beams=2),
    dict(max_new_tokens=12, num_beams=3, num_return_sequences=3),
    dict(max_new_tokens=14, num_beams=5, num_return_sequences=2, early_stopping=True),
    dict(max_new_tokens=12, num_beams=4, length_penalty=-1.0),
    dict(max_new_tokens=12, num_beams=4, length_penalty=0.0, num_return_sequences=4),
    dict(max_new_tokens=12, num_beams=3, length_penalty=2.0, early_stopping="never"),
    dict(max_new_tokens=12, num_beams=4, length_penalty=0.6, early_stopping="never", num_return_sequences=2),
    dict(max_new_tokens=12, num_beams=4, length_penalty=-0.5, early_stopping="never"),
    dict(max_new_tokens=14, num_beams=3, no_repeat_ngram_size=2, repetition_penalty=1.3),
    dict(max_new_tokens=10, num_beams=4, no_repeat_ngram_size=1, num_return_sequences=2),
    dict(max_new_tokens=10, num_beams=3, min_new_tokens=5, early_stopping=True),
    dict(max_new_tokens=1, num_beams=4, num_return_sequences=4),
]
DRAWS = [
    dict(temperature=1.0),
    dict(temperature=0.6, top_k=7),
    dict(temperature=1.4, top_p=0.8),
    dict(temperature=0.9, min_p=0.15),
    dict(temperature=1.2, top_k=20, top_p=0.9, min_p=0.05),
    dict(temperature=0.8, repetition_penalty=2.0, top_p=0.7),
    dict(temperature=1.0, repetition_penalty=0.6, no_repeat_ngram_size=2, min_new_tokens=3, min_p=0.02),
]


def prompts(seed, ban):
    g = torch.Generator().manual_seed(seed)
    rows = []
    for n in [1, 5, 3, 9, 2, 6, 12]:
        row = torch.randint(5, VOCAB, (n,), generator=g).tolist()
        if n > 4:  # a prompt with repetitions
            row[3], row[4] = row[0], row[1]
        rows.append([i for i in row if i not in ban])
    return rows


def generate(model, prompt, **settings):
    config = copy.deepcopy(model.generation_config)
    for key, value in {"do_sample": False, "top_k": 0, **settings}.items():
        setattr(config, key, value)
    config.return_dict_in_generate = config.output_scores = True
    with torch.no_grad():
        return model.generate(torch.tensor([prompt]), generation_config=config)


def answers(model, prompt, settings):
    out = generate(model, prompt, **settings)
    eos = model.generation_config.eos_token_id
    eos = eos if isinstance(eos, list) else [eos]
    skip = 1 if model.config.is_encoder_decoder else len(prompt)
    rows = []
    for row in out.sequences.tolist():
        row = row[skip:]
        ends = [i for i, t in enumerate(row) if t in eos]
        rows.append(row[:ends[0] + 1] if ends else row)
    scores = out.sequences_scores.tolist() if settings.get("num_beams", 1) > 1 else []
    return rows, scores


def make(name, config, seed):
    torch.manual_seed(seed)
    model = {"gpt2": tf.GPT2LMHeadModel, "llama": tf.LlamaForCausalLM, "bart": tf.BartForConditionalGeneration}[name](
        config)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(0, 0.55 if "emb" in key or "wte" in key or "wpe" in key or "shared" in key else 0.35)
            elif "bias" in key:
                p.normal_(0, 0.2)
    model.eval()
    tf.logging.set_verbosity_error()
    folder = FOLDER / name
    model.save_pretrained(folder)
    variants = [copy.deepcopy(model).double()]
    noisy = copy.deepcopy(model)
    with torch.no_grad():
        for p in noisy.parameters():
            p.mul_(1 + 1e-5 * torch.randn_like(p))
    variants.append(noisy)
    eos = model.generation_config.eos_token_id
    rows = prompts(seed, eos if isinstance(eos, list) else [eos])
    cases, dropped = [], 0
    for settings in SEARCHES:
        case = {"settings": settings, "answers": [], "scores": []}
        good = True
        for prompt in rows:
            ids, scores = answers(model, prompt, settings)
            good &= all(answers(v, prompt, settings)[0] == ids for v in variants)
            good &= all(s > -1e8 for s in scores)  # there are as many answers as requested
            case["answers"].append(ids)
            case["scores"].append(scores)
        dropped += not good
        if good:
            cases.append(case)
    draws = []
    for settings in DRAWS:
        case = {"settings": settings, "probabilities": []}
        for prompt in rows:
            out = generate(model, prompt, do_sample=True, max_new_tokens=8, **settings)
            p = torch.softmax(out.scores[0][0].double(), -1)
            case["probabilities"].append([float(f"{x:.9g}") for x in p.tolist()])
        draws.append(case)
    ended = sum(len(a[0]) < c["settings"]["max_new_tokens"] for c in cases for a in c["answers"])
    print(f"{name}: {len(cases)} searches, {dropped} dropped; {ended} answers end early")
    text = json.dumps({"prompts": rows, "searches": cases, "draws": draws}, separators=(",", ":"))
    (folder / "cases.json").write_text(text.replace('{"settings"', '\n{"settings"') + "\n")


for i, (name, config) in enumerate(MODELS.items()):
    make(name, config, 11 + i)
