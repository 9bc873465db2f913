#!/usr/bin/env python3
"""Makes tests/fixtures/whisper: a tiny random Whisper with its tokenizer, recordings, and the results of transformers.

expected.safetensors is for `redco verify`. speech.json has log-mel energies, texts, languages and times of the
recordings, and normalized texts. Needs torch, transformers 5 and soundfile; tests don't: the files are committed.
Usage: scripts/make_speech_fixtures.py
"""
import copy
import json

import numpy as np
import soundfile
import torch
import transformers as tf
from make_model_fixtures import FOLDER, compute, randomize, three_steps
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.models.whisper.english_normalizer import BasicTextNormalizer
from transformers.models.whisper.modeling_whisper import shift_tokens_right

OUT = FOLDER / "whisper"
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|fr|>", "<|translate|>", "<|transcribe|>",
           "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
TIMES = [f"<|{0.02 * i:.2f}|>" for i in range(51)]
TEXTS = ["The quick brown fox.", " said the man, who had 12 dogs", "Grüße aus Köln!", "one two three four five six seven"]
SEED = 21  # with which the recordings have several segments


def make_tokenizer():
    """GPT-2's byte-level BPE with Whisper's special tokens; times are added tokens that are not special."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=280, initial_alphabet=alphabet, show_progress=False))
    t.save(str(OUT / "bpe.json"))
    bpe = json.loads((OUT / "bpe.json").read_text())["model"]
    (OUT / "bpe.json").unlink()
    merges = [tuple(m) for m in bpe["merges"]]
    tokenizer = tf.WhisperTokenizer(vocab=bpe["vocab"], merges=merges, unk_token="<|endoftext|>",
                                    bos_token="<|endoftext|>", eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL[1:]})
    tokenizer.add_tokens([tf.AddedToken(x, special=False, normalized=False) for x in TIMES])
    return tokenizer


def sound(seconds, rate=16000, seed=0):
    """Chirps with pauses and noise."""
    r = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    x = 0.3 * np.sin(2 * np.pi * (200 + 900 * t) * t) * (np.sin(7 * t) > -0.3) + 0.1 * np.sin(2 * np.pi * 3100 * t)
    return (x * np.exp(-((t - seconds / 2) ** 2)) + 0.005 * r.standard_normal(len(t))).astype(np.float32)


def main():
    OUT.mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(SEED)
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(OUT)
    ids = {x: tokenizer.convert_tokens_to_ids(x) for x in SPECIAL + TIMES}
    assert ids[TIMES[0]] == ids["<|notimestamps|>"] + 1
    config = tf.WhisperConfig(
        vocab_size=ids[TIMES[-1]] + 1, num_mel_bins=12, d_model=20, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=5, decoder_attention_heads=2, encoder_ffn_dim=26, decoder_ffn_dim=34,
        max_source_positions=50, max_target_positions=40, decoder_start_token_id=ids["<|startoftranscript|>"],
        pad_token_id=ids["<|endoftext|>"], bos_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|endoftext|>"],
        begin_suppress_tokens=None, dtype="float32")
    model = tf.WhisperForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
    table = model.model.encoder.embed_positions.weight.detach().clone()
    randomize(model, generator)
    with torch.no_grad():
        model.model.encoder.embed_positions.weight.copy_(table)
        model.model.decoder.embed_positions.weight *= 4  # so that answers do not repeat one token
    blank = tokenizer.encode(" ", add_special_tokens=False)
    plain = dict(eos_token_id=ids["<|endoftext|>"], pad_token_id=ids["<|endoftext|>"], bos_token_id=ids["<|endoftext|>"],
                 decoder_start_token_id=ids["<|startoftranscript|>"], max_length=40,
                 suppress_tokens=[7, 11, 200, ids["<|startoflm|>"], ids["<|startofprev|>"], ids["<|nospeech|>"],
                                  ids["<|translate|>"], ids["<|transcribe|>"]],
                 begin_suppress_tokens=blank + [ids["<|endoftext|>"]])
    model.generation_config = tf.GenerationConfig(
        **plain, is_multilingual=True, lang_to_id={x: ids[x] for x in SPECIAL[2:5]}, max_initial_timestamp_index=20,
        task_to_id={t: ids[f"<|{t}|>"] for t in ("translate", "transcribe")},
        no_timestamps_token_id=ids["<|notimestamps|>"])
    model.save_pretrained(OUT)
    extractor = tf.WhisperFeatureExtractor(feature_size=12, chunk_length=1)
    extractor.save_pretrained(OUT)

    # For `redco verify`.
    features = torch.randn((3, 12, 100), generator=generator) * 0.7
    labels = torch.randint(0, config.vocab_size, (3, 9), generator=generator)
    labels[1, 5:] = labels[2, 3] = -100
    inputs = {"input_features": features, "labels": labels,
              "decoder_input_ids": shift_tokens_right(labels, config.pad_token_id, config.decoder_start_token_id)}
    drop = "grad.model.encoder.embed_positions.weight"
    single = compute(model, inputs)
    double_model = copy.deepcopy(model).double()
    doubles = dict(inputs, input_features=features.double())
    double = compute(double_model, doubles)
    single.pop(drop), double.pop(drop)
    bare = tf.GenerationConfig(**plain)

    def greedy(m, x):
        m = copy.deepcopy(m)
        m.generation_config = bare
        return m.generate(x, max_new_tokens=12, do_sample=False, num_beams=1)

    start = torch.full((3, 1), ids["<|startoftranscript|>"])
    rows = greedy(model, features)
    if rows[0, 0] != start[0, 0]:
        rows = torch.cat([start, rows], 1)
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for p in moved.parameters():
            p *= 1 + 1e-5 * torch.randn(p.shape, generator=generator)
    again = greedy(moved, features)
    assert torch.equal(again, rows[:, -again.shape[1]:]), "greedy_ids hang on rounding; take another seed"
    single |= three_steps(copy.deepcopy(model), inputs)
    double |= three_steps(double_model, doubles)
    differences = {n: {"max_abs_diff": (single[n].double() - double[n]).abs().max().item(),
                       "max_abs": double[n].abs().max().item()} for n in single}
    save_file(inputs | single | {"greedy_ids": rows.contiguous()}, OUT / "expected.safetensors")
    write = lambda file, value: (OUT / file).write_text(json.dumps(value, indent=2) + "\n")
    write("tolerances.json", {"float32_vs_float64": differences})
    write("fixture.json", {
        "name": "whisper", "family": "whisper", "task": "speech-to-text", "tokenizer": None, "attention": "eager",
        "optimizer": {"name": "AdamW", "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08, "weight_decay": 0.01, "steps": 3,
                      "clip": None},
        "generation": {"max_new_tokens": 12, "greedy_ids": {"num_beams": 1}}})

    # Recordings: one in a window, one of several windows, and other forms of files.
    short, long = sound(0.7), sound(2.6, seed=1)
    soundfile.write(OUT / "short.wav", short, 16000, subtype="PCM_16")
    soundfile.write(OUT / "long.flac", long, 16000, subtype="PCM_16")
    speech = {"features": [], "generated": [], "normalized": []}
    for name in ("short.wav", "long.flac"):
        x, _ = soundfile.read(OUT / name, dtype="float32")
        mel = extractor._np_extract_fbank_features(
            np.pad(x[:16000], (0, max(0, 16000 - len(x))))[None], "cpu")[0].astype(np.float64)
        speech["features"].append({"audio": name, "values": [round(v, 7) for v in mel.flatten().tolist()]})
    for name, settings in [("short.wav", dict(language="en", task="transcribe")),
                           ("short.wav", dict(language="de", task="translate")),
                           ("short.wav", dict(language=None, task="transcribe")),
                           ("short.wav", dict(language="en", task="transcribe", return_timestamps=True)),
                           ("long.flac", dict(language="fr", task="transcribe", return_timestamps=True))]:
        x, _ = soundfile.read(OUT / name, dtype="float32")
        found = extractor(x, sampling_rate=16000, return_tensors="pt", truncation=False, padding="longest"
                          if len(x) > 16000 else "max_length", return_attention_mask=True)
        # With <|notimestamps|> a random model still generates times, and transformers moves on by them.
        times = [] if "return_timestamps" in settings else [ids[x] for x in TIMES]
        model.generation_config.suppress_tokens = plain["suppress_tokens"] + times
        out = model.generate(found.input_features, attention_mask=found.attention_mask, max_new_tokens=20, do_sample=False,
                             num_beams=1, return_segments=True, condition_on_prev_tokens=False, **settings)
        segments = [{"start": float(s["start"]), "end": float(s["end"]), "ids": s["tokens"].tolist(),
                     "text": tokenizer.decode(s["tokens"], skip_special_tokens=True)} for s in out["segments"][0]]
        if settings["language"] is None:
            found_id = model.detect_language(input_features=found.input_features)
            settings = dict(settings, detected=tokenizer.convert_ids_to_tokens(found_id)[0][2:-2])
        speech["generated"].append({"audio": name, **settings, "segments": segments,
                                    "ids": out["sequences"][0].tolist()})
    normalizer = BasicTextNormalizer()
    texts = TEXTS + ["Hello, [laughter] World! (applause) it's 5€ – naïve ﬁne", "a  b\tc\n", "<unk> x", "Ünïcödé ½ ①",
                     "don't (a) b (c", "日本語、テスト。"]
    speech["normalized"] = [{"text": x, "normalized": normalizer(x).strip()} for x in texts]
    (OUT / "speech.json").write_text(json.dumps(speech, ensure_ascii=False) + "\n")
    print({f.name: f.stat().st_size for f in OUT.iterdir()})
    print(f"loss {single['loss']:.4f}")


if __name__ == "__main__":
    main()
