"""transformers: generate() of a causal LM or of T5, greedy or with beams, on random tokens."""
import argparse
import statistics

from common import peak_memory, report, timed

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", default="llama-134m")
parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
parser.add_argument("--rows", type=int, default=8)
parser.add_argument("--beams", type=int, default=1)
parser.add_argument("--prompt", type=int, default=128, help="T5: tokens of the source")
parser.add_argument("--new", type=int, default=64)
parser.add_argument("--runs", type=int, default=2)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()

import torch  # noqa: E402
from transformers import GPT2LMHeadModel, LlamaForCausalLM, T5ForConditionalGeneration  # noqa: E402

from shapes import config  # noqa: E402

torch.set_num_threads(args.threads)
torch.manual_seed(0)
settings = config(args.model)
kind = {"gpt2": GPT2LMHeadModel, "llama": LlamaForCausalLM, "t5": T5ForConditionalGeneration}[settings.model_type]
model = kind(settings).to(getattr(torch, args.dtype)).eval()
x = torch.randint(300, 31000, (args.rows, args.prompt))


def run(n):
    def call():
        with torch.inference_mode():
            model.generate(x, attention_mask=torch.ones_like(x), min_new_tokens=n, max_new_tokens=n, do_sample=False,
                           num_beams=args.beams, pad_token_id=0, eos_token_id=None if args.beams == 1 else 1)
    return timed(call)


run(2)
first, whole = [], []
for _ in range(args.runs):
    first.append(run(1))
    whole.append(run(args.new))
one, many = statistics.median(first), statistics.median(whole)
report(prefill_tokens_per_s=args.rows * args.prompt / one, decode_tokens_per_s=args.rows * (args.new - 1) / (many - one),
       tokens_per_s=args.rows * args.new / many, peak_memory_bytes=peak_memory())
