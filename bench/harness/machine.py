"""Which machine, which day, which versions."""
import datetime
import json
import os
import platform
import subprocess


def cpu_flags():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("flags"):
                return set(line.split(":")[1].split())
    return set()


def first_of(path, key):
    with open(path) as lines:
        for line in lines:
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    return "unknown"


def versions(home):
    """Versions of the peers' packages, of both environments."""
    code = ("import importlib.metadata as m, json, sys\n"
            "def v(n):\n try: return m.version(n)\n except m.PackageNotFoundError: return None\n"
            "print(json.dumps({n: v(n) for n in sys.argv[1:] if v(n)}))")
    found = {}
    for env, names in {"torch": ["torch", "transformers", "peft", "llama-cpp-python"],
                       "jax": ["jax", "flax", "optax", "redco"]}.items():
        python = os.path.join(home, env, "bin", "python")
        if os.path.exists(python):
            out = subprocess.run([python, "-c", code, *names], text=True, capture_output=True, check=True).stdout
            found.update({("RedCoast" if n == "redco" else n): v for n, v in json.loads(out).items()})
    return found


def describe(redco, home):
    env = json.loads(subprocess.run([redco, "env", "--json"], text=True, capture_output=True, check=True).stdout)
    flags = cpu_flags()
    sets = [n for n in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16") if n in flags]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "cpu": first_of("/proc/cpuinfo", "model name"),
        "family": f"family {first_of('/proc/cpuinfo', 'cpu family')}, model {first_of('/proc/cpuinfo', 'model	')}",
        "instruction_sets": sets,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "redco": env,
        "versions": versions(home),
    }
