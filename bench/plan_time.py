#!/usr/bin/env python3
"""Compares the times that `redco plan` predicts with the measurements of `redco bench`, over many settings.

    bench/plan_time.py [--redco build/bin/redco] [--only TEXT] [--out plan_time.json] [--list]
    bench/plan_time.py --hosts redco-a,redco-b [--wrap 'netns-hosts exec redco-a'] [--network 'COMMAND']...

Each setting is a model, a mesh, threads, a precision and shapes. Settings with the same ranks and threads share a
calibration (`redco env --measure --layout RxT`), which is measured directly before them, into a separate folder. The
script prints a line for each setting, and at last the share of settings within 10 % and within 20 %. It needs a quiet
machine with at least 2 cores: a measurement during which other programs used more than 3 % of the cores is repeated,
at most 4 times, and then marked as disturbed. `--wrap COMMAND` runs each measurement through a command, such as one
that waits for other programs.

With `--hosts` the settings are those of one rank on each of two hosts. Each `--network COMMAND` is run before the
settings, which are then measured once more: a command that gives the links a delay or a speed. Others are looked for
before each measurement only, because the ranks of the second host and the links themselves are others, too.
"""
import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time

GPT = ("model.arch=gpt2 model.vocab_size={v} model.n_positions=1024 model.n_embd={c} model.n_layer={l} "
       "model.n_head={h} model.resid_pdrop=0.0 model.embd_pdrop=0.0 model.attn_pdrop=0.0")
LLAMA = ("model.arch=llama model.vocab_size={v} model.hidden_size={c} model.intermediate_size={i} "
         "model.num_hidden_layers={l} model.num_attention_heads={h} model.num_key_value_heads={h} "
         "model.max_position_embeddings=1024 model.rms_norm_eps=1.0e-5 model.tie_word_embeddings=false")
MODELS = {
    "gpt2-tiny": GPT.format(v=2000, c=128, l=4, h=4),
    "gpt2-small": GPT.format(v=8000, c=384, l=4, h=6),
    "gpt2-wide": GPT.format(v=16000, c=768, l=3, h=12),
    "llama-small": LLAMA.format(v=8000, c=256, i=688, l=4, h=4),
    "llama-512": LLAMA.format(v=16000, c=512, i=1376, l=4, h=8),
}
# For generation on hosts that share a cache, as network namespaces do: each takes all of it for its own.
LARGE = {"llama-768": LLAMA.format(v=16000, c=768, i=2064, l=6, h=12)}
# Ranks, model shards, threads of a rank.
MESHES = {"1x1": (1, 1, 1), "1x1 2 threads": (1, 1, 2), "dp 2": (2, 1, 1), "mp 2": (2, 2, 1)}
TRAIN = [  # rows, tokens, further settings
    ("B4 T128", "train.global_batch_size=4 data.max_length=128"),
    ("B2 T512", "train.global_batch_size=2 data.max_length=512"),
]


def maker(mesh, layout, parallel):
    """A function that makes settings of this mesh."""
    def make(model, what, words, predict=False):
        job = f"{parallel}pipeline=lm model.tokenizer=bytes {(MODELS | LARGE)[model]} {words}"
        return f"{model}, {mesh}, {what}", layout, predict, job.split()

    return make


def settings():
    """Yields (name, layout, predict, words)."""
    for mesh, (ranks, shards, threads) in MESHES.items():
        layout = f"{ranks}x{threads}"
        base = f"parallel.n_ranks={ranks} parallel.n_model_shards={shards} parallel.threads_per_rank={threads} "
        make = maker(mesh, layout, base)

        for model in MODELS:
            for shape, words in TRAIN:
                yield make(model, f"{shape} fp32", words)
        for model in ("gpt2-wide", "llama-512"):
            yield make(model, "B4 T128 bf16", TRAIN[0][1] + " train.compute_dtype=bf16")
        yield make("llama-small", "B4 T128 recompute", TRAIN[0][1] + " train.recompute=block")
        yield make("gpt2-small", "B8 T64 4 micro-batches", "train.global_batch_size=8 train.per_device_batch_size="
                   f"{2 // (ranks // shards) } data.max_length=64")
        if ranks // shards > 1:
            yield make("llama-512", "B4 T128 sharded optimizer", TRAIN[0][1] + " parallel.shard_optimizer=true")
        for model in ("gpt2-wide", "llama-512"):
            yield make(model, "generate 1", "data.max_length=256 predict.max_new_tokens=64 predict.batch_size=1", True)
        yield make("llama-512", "generate 4", "data.max_length=256 predict.max_new_tokens=64 predict.batch_size=4",
                   True)


def settings_of_hosts(hosts):
    """The same for one rank of one thread on each of two hosts."""
    for mesh, shards in {"dp 2": 1, "mp 2": 2}.items():
        base = (f"parallel.hosts=[{','.join(host + ':1' for host in hosts)}] parallel.n_model_shards={shards} "
                "parallel.threads_per_rank=1 ")
        make = maker(f"{mesh} hosts", "1x1", base)

        for model in ("gpt2-small", "gpt2-wide", "llama-small", "llama-512"):
            yield make(model, "B4 T128 fp32", TRAIN[0][1])
        yield make("llama-512", "B4 T128 bf16", TRAIN[0][1] + " train.compute_dtype=bf16")
        if shards == 1:
            yield make("llama-512", "B4 T128 sharded optimizer", TRAIN[0][1] + " parallel.shard_optimizer=true")
            yield make("llama-512", "B4 T128 sharded parameters", TRAIN[0][1] + " parallel.shard_parameters=true")
            yield make("gpt2-small", "B8 T64 4 micro-batches",
                       "train.global_batch_size=8 train.per_device_batch_size=1 data.max_length=64")
        else:
            yield make("gpt2-wide", "B2 T512 fp32", TRAIN[1][1])
            words = "data.max_length=256 predict.max_new_tokens=64 predict.batch_size="
            yield make("llama-768", "generate 1", words + "1", True)
            yield make("llama-768", "generate 4", words + "4", True)


def run(wrap, command, env):
    done = subprocess.run(wrap + command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with code {done.returncode}:\n{done.stderr}")
    return done.stdout


def cpu_seconds():
    """Of all programs since the start of the machine, and of the ended children of this process."""
    with open("/proc/stat") as file:
        words = [int(w) for w in file.readline().split()[1:9]]
    mine = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(words) - words[3] - words[4]) / os.sysconf("SC_CLK_TCK"), mine.ru_utime + mine.ru_stime


def with_others(action):
    """What action() returns, and the share of the cores that other programs used meanwhile."""
    all_before, mine_before = cpu_seconds()
    begin = time.monotonic()
    result = action()
    elapsed = time.monotonic() - begin
    all_after, mine_after = cpu_seconds()
    return result, (all_after - all_before - (mine_after - mine_before)) / elapsed / os.cpu_count()


def inner(before, command):
    """Runs a command; prints its output and the share of the cores that other programs used meanwhile, or in the half
    second before."""
    def run_command():
        return subprocess.run(command, capture_output=True, text=True)

    if before:
        _, others = with_others(lambda: time.sleep(0.5))
        done = run_command()
    else:
        done, others = with_others(run_command)
    sys.stderr.write(done.stderr)
    json.dump({"out": done.stdout, "others": others}, sys.stdout)
    return done.returncode


def measured(wrap, command, env, hosts):
    """The output of a command that ran without others, and whether others disturbed it after all."""
    best, limit = None, 0.1 if hosts else 0.03
    for _ in range(4):
        one = json.loads(run(wrap + [sys.executable, os.path.abspath(__file__), "--inner", "before" if hosts else ""],
                             command, env))
        if best is None or one["others"] < best["others"]:
            best = one
        if best["others"] < limit:
            break
    return best["out"], best["others"] >= limit


def compare(args, hosts, chosen, wrap, env, network):
    """Measures settings, each group of a layout after its calibration; returns a row for each prediction."""
    calibrated, noisy_calibration, rows = None, False, []
    for name, layout, predict, words in chosen:
        if calibrated != layout:
            calibrate = [args.redco, "env", "--measure", "--layout", layout] + (
                ["--hosts", ",".join(hosts)] if hosts else [])
            _, noisy_calibration = measured(wrap, calibrate, env, hosts)
            if noisy_calibration:
                print(f"the calibration {layout} was disturbed", flush=True)
            calibrated = layout
        extra = ["--predict"] if predict else []
        plan = json.loads(run(wrap if hosts else [], [args.redco, "plan", *words, *extra, "--json"], env))["time"]
        steps = ["--steps", "2" if predict else args.steps]
        out, disturbed = measured(wrap, [args.redco, "bench", *words, *extra, *steps, "--json"], env, hosts)
        bench = json.loads(out)
        keys = [("prefill_tokens_per_s", "prompt"), ("decode_tokens_per_s", "decode")] if predict else [
            ("tokens_per_s", "train")]
        for key, what in keys:
            rows.append({"setting": name, "network": network, "what": what, "measured": bench[key],
                         "predicted": plan[key], "ratio": bench[key] / plan[key],  # above 1: faster than the plan says
                         "disturbed": disturbed or noisy_calibration})
            print(f"{name:45} {what:7} measured {bench[key]:10.1f}  predicted {plan[key]:10.1f} tokens/s  "
                  f"{100 * (plan[key] / bench[key] - 1):+6.1f} %{' disturbed' if disturbed else ''}", flush=True)
    return rows


def main():
    if sys.argv[1:2] == ["--inner"]:
        sys.exit(inner(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redco", default="build/bin/redco", help="the program")
    parser.add_argument("--only", default="", help="settings whose name contains this text")
    parser.add_argument("--out", help="file for the results as JSON")
    parser.add_argument("--steps", default="5", help="timed steps of each training")
    parser.add_argument("--wrap", default="", help="command that runs each measurement")
    parser.add_argument("--hosts", default="", help="two hosts, as A,B: settings of one rank on each")
    parser.add_argument("--network", action="append", default=[], help="with --hosts: command that sets up the links")
    parser.add_argument("--list", action="store_true", help="print the settings and end")
    args = parser.parse_args()
    hosts = args.hosts.split(",") if args.hosts else []
    if hosts and len(hosts) != 2 or args.network and not hosts:
        parser.error("--hosts takes two hosts, as A,B; --network needs it")
    chosen = [s for s in (settings_of_hosts(hosts) if hosts else settings()) if args.only in s[0]]
    if args.list:
        print("\n".join(s[0] for s in chosen))
        return
    wrap, results = shlex.split(args.wrap), []
    with tempfile.TemporaryDirectory() as cache:
        env = dict(os.environ, XDG_CACHE_HOME=cache)
        for network in args.network or [""]:
            if network:
                print(f"network: {network}", flush=True)
                subprocess.run(network, shell=True, check=True)
            results += compare(args, hosts, chosen, wrap, env, network)
    for name, rows in (("all", results), ("undisturbed", [r for r in results if not r["disturbed"]])):
        errors = [abs(r["predicted"] / r["measured"] - 1) for r in rows]
        if errors:
            within = [100 * sum(e <= limit for e in errors) / len(errors) for limit in (0.1, 0.2)]
            print(f"{name}: {len(errors)} predictions, {within[0]:.0f} % within 10 %, {within[1]:.0f} % within 20 %, "
                  f"worst {100 * max(errors):.0f} %")
    if args.out:
        with open(args.out, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
