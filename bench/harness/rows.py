"""The rows of the comparison: what redco and its peers run, and which of their numbers are compared.

A row has programs, which run alternately, and metrics. A program is ours (`redco bench` or `redco train`) or a peer's
(bench/peers). A metric names a field of the JSON that the programs print. To add a row, add an entry to a list below.
"""
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Program:
    name: str
    kind: str  # redco | train | torch | torchrun | llama.cpp | jax: see measure.py
    arguments: tuple
    against: Optional[tuple] = None  # of redco's programs: the peers it is compared with; None: all of the row
    threads: int = 2  # of a process


@dataclass(frozen=True)
class Metric:
    field: str
    unit: str
    higher: bool = True  # whether more is better
    share: str = ""  # redco's field with the share of the ceiling
    ceiling: str = ""  # what the ceiling is; products: of bf16 or sgemm, as redco says
    ratio: Optional[float] = None  # the target of the ratio, ours / best peer (or its inverse, if lower is better)
    share_target: Optional[float] = None


@dataclass(frozen=True)
class Row:
    name: str
    group: str
    title: str
    programs: tuple
    metrics: tuple
    note: str = ""


def bench(name, job, *arguments, **more):
    return Program(name, "redco", (job, *arguments), **more)


def mesh(ranks=1, threads=2, shards=1):
    return (f"parallel.n_ranks={ranks}", f"parallel.n_model_shards={shards}", f"parallel.threads_per_rank={threads}")


ONE, TWO_SHARDS, TWO_REPLICAS, SINGLE = mesh(), mesh(2, 1, 2), mesh(2, 1, 1), mesh(1, 1)
READ, PRODUCTS = "streaming read", "products"


# --- generation ---
def decode_row(name, weights, gguf, ratio, share):
    keys = ("model.path=@llama-134m", "--predict", "--steps", "3")
    dtype = () if weights == "fp32" else (f"model.weight_dtype={weights}", "predict.cache_dtype=bf16")
    return Row(
        f"decode-{name}", "decode", f"decode, batch 1, around position 576, LLaMA 134M, {name}",
        (bench("1 rank x 2 threads", "llama-134m", *keys, *dtype, *ONE),
         Program("llama.cpp", "llama.cpp", (f"@llama-134m-{gguf}.gguf",)),
         bench("2 ranks x 1 thread, mp 2", "llama-134m", *keys, *dtype, *TWO_SHARDS),
         bench("1 rank x 1 thread", "llama-134m", *keys, *dtype, *SINGLE, against=())),
        (Metric("decode_tokens_per_s", "tokens/s", share="ceiling_share", ceiling=READ, ratio=ratio,
                share_target=share),))


def prefill_row(name, weights, gguf, ratio):
    keys = ("model.path=@llama-134m", "--predict", "--steps", "4", "predict.max_new_tokens=2", "data.max_length=514")
    dtype = () if weights == "fp32" else (f"model.weight_dtype={weights}", "predict.cache_dtype=bf16")
    if weights != "fp32":
        dtype += ("train.compute_dtype=bf16",)  # llama.cpp rounds activations too, to bf16 and to int8
    return Row(
        f"prefill-{name}", "prefill", f"prefill of 512 tokens, LLaMA 134M, {name}",
        (bench("1 rank x 2 threads", "llama-134m", *keys, *dtype, *ONE),
         Program("llama.cpp", "llama.cpp", (f"@llama-134m-{gguf}.gguf", "--new", "4", "--runs", "4"))),
        (Metric("prefill_tokens_per_s", "tokens/s", share="prefill_ceiling_share", ceiling=PRODUCTS, ratio=ratio),))


def batch_row(name, title, rows, beams, ratio):
    keys = ("--predict", "--steps", "2", f"predict.batch_size={rows}", "data.max_length=192",
            "predict.max_new_tokens=64", f"predict.num_beams={beams}")
    peer = ("--rows", str(rows), "--beams", str(beams))
    return Row(name, "batch", title,
               (bench("1 rank x 2 threads", "llama-134m", *keys, *ONE),
                Program("transformers", "torch", ("torch_generate.py", *peer))),
               (Metric("decode_tokens_per_s", "tokens/s", share="ceiling_share", ceiling="roofline",
                       ratio=ratio, share_target=0.70),))


GENERATION = [
    decode_row("f32", "fp32", "f32", 0.97, 0.88),
    decode_row("bf16", "bf16", "bf16", 0.97, 0.88),
    decode_row("int8", "int8", "q8_0", 1.1, 0.65),
    decode_row("int4", "int4", "q4_0", 1.0, 0.50),
    batch_row("decode-batch8", "decode, batch 8, 128 + 64 tokens, LLaMA 134M, f32", 8, 1, 2.5),
    batch_row("decode-batch32", "decode, batch 32, 128 + 64 tokens, LLaMA 134M, f32", 32, 1, 2.0),
    batch_row("decode-beam4", "beam search, 4 beams, 128 + 64 tokens, LLaMA 134M, f32", 1, 4, 2.5),
    prefill_row("f32", "fp32", "f32", 1.2),
    prefill_row("bf16", "bf16", "bf16", 1.2),
    prefill_row("int8", "int8", "q8_0", 1.1),
]

# --- training ---
STEPS = ("--steps", "4")
MEMORY = Metric("beyond_state_bytes", "MiB beyond weights, gradients, moments", higher=False, ratio=2.0)


def speed(ratio, share=None):
    return Metric("tokens_per_s", "tokens/s", share="ceiling_share", ceiling=PRODUCTS, ratio=ratio, share_target=share)


def torch_train(name, *arguments, **more):
    return Program(name, "torch", ("torch_train.py", *STEPS, *arguments), **more)


def torchrun(name, *arguments):
    return Program(name, "torchrun", ("torch_train.py", *STEPS, "--threads", "1", *arguments), threads=1)


TRAINING = [
    Row("train-fp32", "train", "train GPT-2 124M, fp32, 4 x 256 tokens",
        (bench("1 rank x 2 threads", "gpt2-124m", *STEPS, *ONE), torch_train("PyTorch eager"),), (speed(1.3, 0.90), MEMORY)),
    Row("train-compiled", "train", "train GPT-2 124M, fp32, 4 x 256 tokens, compiled",
        (bench("1 rank x 2 threads", "gpt2-124m", *STEPS, *ONE), torch_train("torch.compile", "--compile")),
        (speed(1.1, 0.90),)),
    Row("train-bf16", "train", "train GPT-2 124M, bf16, 4 x 256 tokens",
        (bench("1 rank x 2 threads", "gpt2-124m", *STEPS, *ONE, "train.compute_dtype=bf16"),
         torch_train("PyTorch autocast", "--dtype", "bf16")), (speed(1.25, 0.70), MEMORY)),
    Row("train-2ranks", "ranks", "train GPT-2 124M, fp32, 4 x 256 tokens, 2 processes x 1 thread",
        (bench("dp 2", "gpt2-124m", *STEPS, *TWO_REPLICAS, "train.per_device_batch_size=2", against=("DDP",)),
         torchrun("DDP", "--mode", "ddp"),
         bench("ZeRO-1", "gpt2-124m", *STEPS, *TWO_REPLICAS, "train.per_device_batch_size=2",
               "parallel.shard_optimizer=true", against=("DDP", "DDP + ZeroRedundancyOptimizer")),
         torchrun("DDP + ZeroRedundancyOptimizer", "--mode", "zero1"),
         bench("ZeRO-3", "gpt2-124m", *STEPS, *TWO_REPLICAS, "train.per_device_batch_size=2",
               "parallel.shard_parameters=true", against=("FSDP",)),
         torchrun("FSDP", "--mode", "fsdp"),
         bench("mp 2", "gpt2-124m", *STEPS, *TWO_SHARDS),
         bench("1 rank x 2 threads", "gpt2-124m", *STEPS, *ONE, against=())), (speed(1.4),)),
    Row("train-tp", "ranks", "train LLaMA 58M (512 wide, 8 layers, 32k vocabulary), fp32, 4 x 256 tokens",
        (bench("2 ranks x 1 thread, mp 2", "llama-58m", *STEPS, *TWO_SHARDS, against=("PyTorch TP",)),
         torchrun("PyTorch TP", "--model", "llama-58m", "--mode", "tp"),
         bench("1 rank x 2 threads", "llama-58m", *STEPS, *ONE, against=("PyTorch",)),
         torch_train("PyTorch", "--model", "llama-58m")), (speed(1.6),)),
]
# --- fine-tuning, long context, pairs of texts ---
def beyond_base(ratio=1 / 0.6):
    return Metric("beyond_base_bytes", "MiB beyond the base", higher=False, ratio=ratio)


def lora_row(name, title, job, rows):
    keys = ("model.weight_dtype=bf16", "train.compute_dtype=bf16", "train.lora={rank: 8}",
            f"train.global_batch_size={rows}", f"train.per_device_batch_size={rows}")
    return Row(name, "lora", title,
               (bench("1 rank x 2 threads", job, "--steps", "3", *keys, *ONE),
                Program("PEFT", "torch", ("torch_train.py", "--model", job, "--steps", "3", "--lora", "8",
                                          "--dtype", "bf16", "--rows", str(rows)))),
               (speed(1.3), beyond_base()))


def seq2seq_rows():
    return [
        Row("seq2seq-train", "seq2seq", "train T5-small, fp32, 8 pairs of 256 and 128 tokens (target tokens)",
            (Program("1 rank x 2 threads", "train",
                     ("bench/t5-small.yaml", "data.train=@pairs.jsonl", "train.global_batch_size=8",
                      "train.max_steps=6", "train.logging_steps=1", "checkpoint.save_optimizer=false", *ONE)),
             torch_train("PyTorch", "--model", "t5-small", "--rows", "8", "--length", "256", "--target", "128")),
            (speed(1.15),)),
        Row("seq2seq-beam4", "seq2seq", "beam search, 4 beams, T5-small, 128 source + 64 new tokens, f32",
            (bench("1 rank x 2 threads", "t5-small", "--predict", "--steps", "2", "predict.batch_size=1",
                   "data.max_source_length=128", "predict.max_new_tokens=64", "predict.num_beams=4", *ONE),
             Program("transformers", "torch", ("torch_generate.py", "--model", "t5-small", "--rows", "1", "--beams",
                                               "4"))),
            (Metric("decode_tokens_per_s", "tokens/s", ratio=2.5),)),
    ]


LONG = [
    Row("train-4096", "long", "train LLaMA 58M with 2 layers, 1 x 4096 tokens, recompute, fp32",
        (bench("1 rank x 2 threads", "llama-58m", "--steps", "1", "data.max_length=4096", "model.num_hidden_layers=2",
               "train.recompute=block", "train.global_batch_size=1", "train.per_device_batch_size=1", *ONE),
         Program("PyTorch", "torch", ("torch_train.py", "--model", "llama-58m", "--layers", "2", "--rows", "1", "--steps",
                                      "1", "--length", "4096", "--recompute"))),
        (Metric("tokens_per_s", "tokens/s", share="ceiling_share", ceiling=PRODUCTS, ratio=1.0, share_target=0.60), MEMORY)),
    Row("prefill-8192", "long", "prefill of 8190 tokens, LLaMA 58M, f32",
        (bench("1 rank x 2 threads", "llama-58m", "--predict", "--steps", "1", "data.max_length=8192",
               "predict.max_new_tokens=2", *ONE),
         Program("llama.cpp", "llama.cpp", ("@llama-58m-f32.gguf", "--prompt", "8190", "--new", "2", "--runs", "1"))),
        (Metric("prefill_tokens_per_s", "tokens/s", share="prefill_ceiling_share", ceiling=PRODUCTS, ratio=1.2,
                share_target=0.60),)),
]
LORA = [lora_row("lora-124m", "LoRA rank 8, GPT-2 124M, bf16 base, 4 x 256 tokens", "gpt2-124m", 4),
        lora_row("lora-1.1b", "LoRA rank 8, LLaMA 1.1B, bf16 base, 1 x 256 tokens", "llama-1.1b", 1)]

# --- other algorithms, files ---
OTHERS = [
    Row("maml", "others", "second-order MAML, RedCoast's CNN, 5-way 1-shot, 32 tasks",
        (Program("1 rank x 2 threads", "train",
                 ("configs/maml/omniglot.yaml", "maml.tasks_per_epoch=640", "maml.eval_tasks=8", "train.n_epochs=1",
                  "train.logging_steps=1", *ONE)),
         Program("PyTorch", "torch", ("torch_maml.py",))),
        (Metric("tasks_per_s", "tasks/s", ratio=3.5),)),
    Row("ppo", "others", "PPO, CartPole, 8 environments x 32 steps, 20 updates of 256 transitions",
        (Program("1 rank x 1 thread", "train",
                 ("configs/rl/cartpole_ppo.yaml", "train.n_epochs=80", "train.logging_steps=40", "eval.every_n_epochs=~",
                  "rl.n_eval_episodes=1", "checkpoint.every_n_epochs=~")),
         Program("PyTorch", "torch", ("torch_ppo.py", "--threads", "1"), threads=1)),
        (Metric("env_steps_per_s", "environment steps/s", ratio=5.0),)),
    Row("checkpoint", "files", "GPT-2 124M: from the start of the program to the first step; save with optimizer state",
        (Program("1 rank x 2 threads", "train",
                 ("bench/gpt2-124m.yaml", "model={path: @gpt2-124m, tokenizer: bytes, preset: ~}", "data.train=@text.jsonl",
                  "data.max_length=32", "train.global_batch_size=1", "train.per_device_batch_size=1", "train.max_steps=6",
                  "train.logging_steps=1", "checkpoint.every_n_steps=1", *ONE)),
         Program("PyTorch", "torch", ("torch_checkpoint.py", "@gpt2-124m", "@work"))),
        (Metric("first_step_s", "s to the first step", higher=False, ratio=1.5),
         Metric("save_s", "s to save", higher=False, ratio=1.5))),
    Row("redcoast", "others", "train GPT-2 124M, fp32, 4 x 256 tokens, 2 devices; RedCoast on JAX",
        (bench("2 ranks x 1 thread, dp 2", "gpt2-124m", *STEPS, *TWO_REPLICAS, "train.per_device_batch_size=2",
               against=("RedCoast, dp 2",)),
         Program("RedCoast, dp 2", "jax", ("jax_train.py", "--devices", "2")),
         bench("2 ranks x 1 thread, mp 2", "gpt2-124m", *STEPS, *TWO_SHARDS, against=("RedCoast, mp 2",)),
         Program("RedCoast, mp 2", "jax", ("jax_train.py", "--devices", "2", "--shards", "2"))), (speed(1.0),)),
]
ROWS = GENERATION + TRAINING + LONG + LORA + seq2seq_rows() + OTHERS
