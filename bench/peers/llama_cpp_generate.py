"""llama.cpp: prefill and greedy decoding of a GGUF file, by its C functions.

The time of a token is that of llama_decode and of finding the largest logit; the medians are over tokens and over runs.
"""
import argparse
import ctypes
import os
import statistics
import time

import numpy as np

from common import peak_memory, report

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model")
parser.add_argument("--prompt", type=int, default=512)
parser.add_argument("--new", type=int, default=128)
parser.add_argument("--runs", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--cache", choices=["f16", "f32"], default="f16")
args = parser.parse_args()

import llama_cpp as ll  # noqa: E402


@ll.llama_log_callback
def silent(level, text, data):
    pass


ll.llama_log_set(silent, ctypes.c_void_p(0))
ll.llama_backend_init()
model = ll.llama_model_load_from_file(os.fsencode(args.model), ll.llama_model_default_params())
if not model:
    raise SystemExit(f"llama.cpp cannot load {args.model}")
settings = ll.llama_context_default_params()
settings.n_ctx = args.prompt + args.new
settings.n_batch = settings.n_ubatch = min(args.prompt, 512)
settings.n_threads = settings.n_threads_batch = args.threads
if args.cache == "f32":
    settings.type_k = settings.type_v = ll.GGML_TYPE_F32
context = ll.llama_init_from_model(model, settings)
vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
tokens = (ll.llama_token * args.prompt)(*[(i * 7919) % (vocabulary - 1000) + 300 for i in range(args.prompt)])


def decode(ids, n):
    if ll.llama_decode(context, ll.llama_batch_get_one(ids, n)) != 0:
        raise SystemExit("llama_decode failed")


def largest():
    logits = ll.llama_get_logits_ith(context, -1)
    return int(np.ctypeslib.as_array(logits, shape=(vocabulary,)).argmax())


prefill, times = [], []
for run in range(args.runs + 1):
    ll.llama_memory_clear(ll.llama_get_memory(context), True)
    begin = time.perf_counter()
    for at in range(0, args.prompt, settings.n_batch):
        n = min(settings.n_batch, args.prompt - at)
        decode((ll.llama_token * n)(*tokens[at:at + n]), n)
    token = largest()
    seconds = time.perf_counter() - begin
    steps = []
    for _ in range(4 if run == 0 else args.new - 1):
        begin = time.perf_counter()
        decode((ll.llama_token * 1)(token), 1)
        token = largest()
        steps.append(time.perf_counter() - begin)
    if run:  # the first is a warm-up
        prefill.append(seconds)
        times += steps
report(prefill_tokens_per_s=args.prompt / statistics.median(prefill),
       decode_tokens_per_s=1 / statistics.median(times), peak_memory_bytes=peak_memory())
