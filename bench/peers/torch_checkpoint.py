"""PyTorch: from the start of the process to the first step of a checkpoint, and saving weights and optimizer state durably."""
import time

begin = time.perf_counter()
import argparse  # noqa: E402
import os  # noqa: E402
import statistics  # noqa: E402

from common import peak_memory, report  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", help="a Hugging Face folder")
parser.add_argument("folder", help="where checkpoints are written")
parser.add_argument("--rows", type=int, default=1)
parser.add_argument("--length", type=int, default=32)
parser.add_argument("--saves", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()

import torch  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

torch.set_num_threads(args.threads)
imported = time.perf_counter()
model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def step():
    x = torch.randint(0, model.config.vocab_size, (args.rows, args.length))
    model(input_ids=x, labels=x).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


step()
first = time.perf_counter()
saves = []
for k in range(args.saves):
    start = time.perf_counter()
    path = os.path.join(args.folder, f"checkpoint-{k}.pt")
    with open(path, "wb") as out:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
        out.flush()
        os.fsync(out.fileno())
    saves.append(time.perf_counter() - start)
    os.remove(path)
report(first_step_s=first - begin, import_s=imported - begin, save_s=statistics.median(saves),
       peak_memory_bytes=peak_memory())
