"""PyTorch and transformers: the training step of a causal LM or of T5: forward, backward, clipping to 1.0, AdamW.

Modes of several processes (torchrun): ddp, zero1 (DDP with ZeroRedundancyOptimizer), fsdp (fully_shard), tp.
"""
import argparse
import statistics
import time

from common import memory, peak_memory, report

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", default="gpt2-124m")
parser.add_argument("--mode", choices=["single", "ddp", "zero1", "fsdp", "tp"], default="single")
parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32", help="bf16: autocast; with --lora the base too")
parser.add_argument("--lora", type=int, default=0, help="rank of PEFT's adapters on all linear layers")
parser.add_argument("--compile", action="store_true")
parser.add_argument("--recompute", action="store_true")
parser.add_argument("--rows", type=int, default=4)
parser.add_argument("--length", type=int, default=256, help="T5: of the sources")
parser.add_argument("--target", type=int, default=128, help="T5: length of the targets; these tokens are counted")
parser.add_argument("--layers", type=int, default=0, help="number of layers (default: the shape's)")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from transformers import GPT2LMHeadModel, LlamaForCausalLM, T5ForConditionalGeneration  # noqa: E402

from shapes import config  # noqa: E402

torch.set_num_threads(args.threads)
torch.manual_seed(0)
libraries = memory()
settings = config(args.model, args.layers)
settings.use_cache = False
seq2seq = settings.model_type == "t5"
kind = {"gpt2": GPT2LMHeadModel, "llama": LlamaForCausalLM, "t5": T5ForConditionalGeneration}[settings.model_type]
if args.lora and args.dtype == "bf16":
    torch.set_default_dtype(torch.bfloat16)
model = kind(settings)
torch.set_default_dtype(torch.float32)
model.train()
n_parameters = sum(p.numel() for p in model.parameters())
if args.lora:
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(model, LoraConfig(r=args.lora, lora_alpha=args.lora, lora_dropout=0,
                                             target_modules="all-linear", task_type="CAUSAL_LM"))
if args.recompute:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
rank, world = 0, 1
if args.mode != "single":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
if args.mode in ("ddp", "zero1"):
    model = torch.nn.parallel.DistributedDataParallel(model)
if args.mode == "fsdp":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (world,))
    for block in model.transformer.h if settings.model_type == "gpt2" else model.model.layers:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
if args.mode == "tp":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cpu", (world,))
    column, row = ColwiseParallel(), RowwiseParallel()
    for block in model.model.layers:
        parallelize_module(block, mesh, {"self_attn.q_proj": column, "self_attn.k_proj": column,
                                         "self_attn.v_proj": column, "self_attn.o_proj": row,
                                         "mlp.gate_proj": column, "mlp.up_proj": column, "mlp.down_proj": row})
    parallelize_module(model, mesh, {"model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
                                     "lm_head": ColwiseParallel(output_layouts=Replicate())})
trained = [p for p in model.parameters() if p.requires_grad]
adamw = dict(lr=1e-4, weight_decay=0.01)
if args.mode == "zero1":
    from torch.distributed.optim import ZeroRedundancyOptimizer
    optimizer = ZeroRedundancyOptimizer(trained, torch.optim.AdamW, foreach=True, **adamw)
else:
    # The fused AdamW is the fastest on CPUs; DTensors of two kinds in one list need the plain loop.
    optimizer = torch.optim.AdamW(trained, **adamw, **(dict(foreach=False) if args.mode == "tp" else dict(fused=True)))
forward = torch.compile(model) if args.compile else model
rows = args.rows // world if args.mode in ("ddp", "zero1", "fsdp") else args.rows
generator = torch.Generator().manual_seed(1 if args.mode == "tp" else rank)
vocabulary = settings.vocab_size


def step():
    x = torch.randint(0, vocabulary, (rows, args.length + (args.target if seq2seq else 1)), generator=generator)
    inputs, labels = x.split([args.length, args.target], 1) if seq2seq else (x[:, :-1], x[:, 1:])
    begin = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16"):
        more = dict(decoder_input_ids=torch.nn.functional.pad(labels[:, :-1], (1, 0))) if seq2seq else {}
        logits = forward(input_ids=inputs, **more).logits
        if hasattr(logits, "full_tensor"):
            logits = logits.full_tensor()
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, vocabulary).float(), labels.reshape(-1))
    loss.backward()
    if args.mode != "tp":  # clip_grad_norm_ has no mixed DTensors
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if world > 1:
        dist.barrier()
    return time.perf_counter() - begin


times = [step() for _ in range(args.steps + 1)][1:]
if rank == 0:
    seconds = statistics.median(times)
    report(step_s=seconds, tokens_per_s=args.rows * (args.target if seq2seq else args.length) / seconds,
           peak_memory_bytes=peak_memory(), libraries_bytes=libraries, parameters=n_parameters)
if world > 1:
    dist.destroy_process_group()
