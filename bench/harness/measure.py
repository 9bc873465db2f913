"""Runs the programs of a row alternately and keeps what they print."""
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(BENCH, "peers")


class Failed(Exception):
    pass


def last_json(text):
    """The JSON object at the end of an output, which may span lines."""
    for start in reversed([i for i, c in enumerate(text) if c == "{" and (i == 0 or text[i - 1] == "\n")]):
        try:
            return json.loads(text[start:])
        except ValueError:
            continue
    raise ValueError("no JSON object")


def train_result(work, started):
    """What a `redco train` in this folder tells: medians over its logged steps, without the first two."""
    with open(os.path.join(work, "run", "metrics.jsonl")) as lines:
        steps = [r for r in map(json.loads, lines) if "step_s" in r]
    timed = steps[2:] or steps
    result = {k: statistics.median(r[k] for r in timed) for k, v in timed[-1].items()
              if isinstance(v, (int, float)) and all(r.get(k) is not None for r in timed)}
    result["peak_memory_bytes"] = max(r["peak_memory_bytes"] for r in steps)
    result["first_step_s"] = steps[0]["time"] - started
    if len(timed) > 1:
        pairs = list(zip(timed, timed[1:]))
        # Between two steps a checkpoint is saved, if the job asks for it. step_s does not count that time.
        result["save_s"] = statistics.median(b["time"] - a["time"] - b["step_s"] * (b["step"] - a["step"])
                                             for a, b in pairs)
        if "env_steps" in timed[-1]:
            result["env_steps_per_s"] = statistics.median((b["env_steps"] - a["env_steps"]) / (b["time"] - a["time"])
                                                          for a, b in pairs)
    return result


class Runner:
    """How programs are started. home: the folder of `setup`. wrap: a command that precedes every program. A run during
    which other processes used more than `quiet` CPUs is repeated, at most `tries` times in all."""

    def __init__(self, redco, home, wrap="", quiet=0.1, tries=3, timeout=1800):
        self.redco, self.home, self.wrap = os.path.abspath(redco), home, shlex.split(wrap)
        self.quiet, self.tries, self.timeout = quiet, tries, timeout

    def quietest(self, program):
        """The first quiet run, else the quietest."""
        best = None
        for _ in range(self.tries):
            sample = self.run(program)
            if best is None or sample["other_cpu"] < best["other_cpu"]:
                best = sample
            if best["other_cpu"] <= self.quiet:
                break
        return best

    def run(self, program):
        """The fields that the program prints, and `other_cpu` (watched.py); or Failed."""
        with tempfile.TemporaryDirectory(prefix="redco-compare-") as work:
            watched = os.path.join(work, "watched.json")
            command = [w.replace("@work", work) for w in self.command(program)]
            started = [*self.wrap, sys.executable, os.path.join(BENCH, "harness", "watched.py"), watched, *command]
            try:
                done = subprocess.run(started, env=self.environment(program), cwd=work, text=True, timeout=self.timeout,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            except subprocess.TimeoutExpired:
                raise Failed(f"{program.name}: no result after {self.timeout} s") from None
            if done.returncode:
                raise Failed(f"{program.name}: exit code {done.returncode} of {shlex.join(command)}\n"
                             + done.stderr[-2000:])
            with open(watched) as f:
                about = json.load(f)
            try:
                found = train_result(work, os.stat(watched).st_mtime - about["wall_s"]) if program.kind == "train" \
                    else last_json(done.stdout)
            except (OSError, ValueError):
                raise Failed(f"{program.name}: no result in its output\n" + done.stdout[-500:]) from None
            return {**found, **about}

    def command(self, program):
        words = [self.resolved(w) for w in program.arguments]
        python = os.path.join(self.home, "jax" if program.kind == "jax" else "torch", "bin", "python")
        if program.kind == "redco":
            return [self.redco, "bench", os.path.join(BENCH, words[0] + ".yaml"), "--json", *words[1:]]
        if program.kind == "train":
            return [self.redco, "train", os.path.join(BENCH, "..", words[0]), "workdir=@work/run", *words[1:]]
        if program.kind == "llama.cpp":
            return [python, os.path.join(PEERS, "llama_cpp_generate.py"), *words, "--threads", str(program.threads)]
        script = [os.path.join(PEERS, words[0]), *words[1:]]
        if program.kind == "torchrun":
            return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *script]
        return [python, *script]

    def resolved(self, word):
        """@NAME is a file of `inputs`, also as a value: key=@NAME. @work is the program's own folder."""
        if word.startswith("@") and not word.startswith("@work"):
            return os.path.join(self.home, "inputs", word[1:])
        return re.sub(r"(?<=[= ])@(?!work)", os.path.join(self.home, "inputs", ""), word)

    @staticmethod
    def environment(program):
        env = dict(os.environ)
        for name in ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
            env.pop(name, None)  # each program decides
        if program.kind not in ("redco", "train"):
            env.update(OMP_NUM_THREADS=str(program.threads), TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
        return env


def derived(sample):
    """Memory beyond what the work needs by its definition. A peer's libraries don't count."""
    n = sample.get("parameters")
    if n and "peak_memory_bytes" in sample and sample.get("mode", "train") == "train":
        used = sample["peak_memory_bytes"] - sample.get("libraries_bytes", 0)
        sample["beyond_state_bytes"] = used - 16 * n  # fp32 weights, gradients, two moments
        sample["beyond_base_bytes"] = used - 2 * n  # frozen weights in bf16
    return sample


def measure(rows, runner, rounds, only, log, keep):
    """Runs every row `rounds` times, its programs one after the other in each round. keep(row, program, sample)."""
    for row in rows:
        broken = set()
        for k in range(rounds):
            for program in row.programs:
                ours = program.kind in ("redco", "train")
                if program.name in broken or (only == "redco" and not ours) or (only == "peers" and ours):
                    continue
                try:
                    sample = derived(runner.quietest(program))
                except Failed as e:
                    broken.add(program.name)
                    log(f"{row.name}: {e}")
                    continue
                values = ", ".join(f"{m.field} {sample[m.field]:.4g}" + (f" ({sample[m.share]:.0%})" if m.share in sample else "")
                                   for m in row.metrics if sample.get(m.field) is not None)
                disturbed = f"; other processes used {sample['other_cpu']:.2f} CPUs" if sample["other_cpu"] > runner.quiet else ""
                log(f"{row.name} round {k + 1}: {program.name}: {values}{disturbed}")
                keep(row, program, sample)
