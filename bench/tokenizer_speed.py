#!/usr/bin/env python3
"""Compares redco's tokenizer with Hugging Face's on the same CPUs, in alternating runs. Prints JSON.

    bench/tokenizer_speed.py --python VENV/bin/python --tokenizer DIR [--redco build/bin/redco] [--rounds 5] TEXT...

VENV has `tokenizers`; DIR has a tokenizer.json (`redco tokenizer train` makes one). Use other texts
than the training data of the tokenizer. They are split at line ends into documents of --document bytes. The time of
redco is that of `redco tokenizer encode` from JSON lines to JSON lines, minus its time for an empty input. The time of
Hugging Face is that of encode_batch alone, without reading and writing. Both start cold in each round, on --threads
CPUs.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def documents(paths, size):
    for path in paths:
        with open(path, encoding="utf-8", newline="") as lines:
            document, n = [], 0
            for line in lines:
                document.append(line)
                n += len(line.encode())
                if n >= size:
                    yield "".join(document)
                    document, n = [], 0
            if document:
                yield "".join(document)


def peer(tokenizer, path, ids_path):
    """One round of Hugging Face: {wall_s, cpu_s}. If a file is given, the ids are written to it."""
    from tokenizers import Tokenizer
    t = Tokenizer.from_file(os.path.join(tokenizer, "tokenizer.json"))
    with open(path, encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    wall, cpu = time.perf_counter(), time.process_time()
    encodings = t.encode_batch(texts)
    print(json.dumps({"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}))
    if ids_path:
        with open(ids_path, "w") as out:
            for e in encodings:
                out.write(json.dumps({"ids": e.ids}, separators=(",", ":")) + "\n")


def measured(command, env):
    """{wall_s, cpu_s} of a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall_s": wall, "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", metavar="TEXT")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has tokenizers")
    parser.add_argument("--redco", default=os.path.join(here, "..", "build", "bin", "redco"))
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--document", type=int, default=2000, help="bytes of a document, about")
    args = parser.parse_args()

    n_cpus = len(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:args.threads]))
    env = dict(os.environ, OMP_NUM_THREADS=str(args.threads), RAYON_NUM_THREADS=str(args.threads),
               TOKENIZERS_PARALLELISM="true")
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        n_bytes = n_documents = 0
        with open(at("texts.jsonl"), "w", encoding="utf-8") as out:
            for text in documents(args.texts, args.document):
                n_bytes += len(text.encode())
                n_documents += 1
                out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
        open(at("none.jsonl"), "w").close()

        def redco(name):
            return measured([args.redco, "tokenizer", "encode", args.tokenizer, "--input", at(name), "--output",
                             at("redco-ids.jsonl")], env)

        runs = {"redco": [], "huggingface": []}
        for k in range(args.rounds):
            empty, full = redco("none.jsonl"), redco("texts.jsonl")
            runs["redco"].append({key: max(1e-9, full[key] - empty[key]) for key in full})
            ids = at("hf-ids.jsonl") if k == 0 else ""
            done = subprocess.run([args.python, os.path.abspath(__file__), "--peer", args.tokenizer, at("texts.jsonl"),
                                   ids], env=env, check=True, stdout=subprocess.PIPE, text=True)
            runs["huggingface"].append(json.loads(done.stdout))
        with open(at("redco-ids.jsonl")) as a, open(at("hf-ids.jsonl")) as b:
            equal = a.read() == b.read()

    def rates(key):
        medians = {who: n_bytes / 1e6 / statistics.median(r[key] for r in rounds) for who, rounds in runs.items()}
        return {**{who: round(v, 2) for who, v in medians.items()},
                "ratio": round(medians["redco"] / medians["huggingface"], 2)}

    print(json.dumps({"bytes": n_bytes, "documents": n_documents, "threads": min(args.threads, n_cpus),
                      "rounds": args.rounds, "ids_equal": equal, "MB_per_s": rates("wall_s"),
                      "MB_per_cpu_s": rates("cpu_s")}, indent=2))
    return 0 if equal else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:5])
    else:
        sys.exit(main())
