"""The PyTorch side of compare_torch.py: prints one JSON object. GPT-2 124M, random weights, no dropout."""
import argparse
import json
import statistics
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("what", choices=["train", "decode"])
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--length", type=int, default=256)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="sdpa"))

if args.what == "train":
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    times = []
    for _ in range(args.steps + 1):
        x = torch.randint(0, 50257, (args.batch, args.length + 1))
        begin = time.perf_counter()
        logits = model(input_ids=x[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 50257), x[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - begin)
    step = statistics.median(times[1:])
    print(json.dumps({"step_s": step, "tokens_per_s": args.batch * args.length / step}))
else:
    model.eval()
    prompt, new = args.length // 2, args.length // 4
    x = torch.randint(0, 50000, (args.batch, prompt))

    def run(n):
        begin = time.perf_counter()
        with torch.no_grad():
            model.generate(x, min_new_tokens=n, max_new_tokens=n, do_sample=False, pad_token_id=0)
        return time.perf_counter() - begin

    run(2)
    first, whole = [], []
    for _ in range(3):
        first.append(run(1))
        whole.append(run(new))
    one, many = statistics.median(first), statistics.median(whole)
    print(json.dumps({"prefill_tokens_per_s": args.batch * prompt / one,
                      "decode_tokens_per_s": args.batch * (new - 1) / (many - one)}))
