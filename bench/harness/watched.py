"""Runs a command and writes how much CPU time other processes used meanwhile: watched.py RESULT.json COMMAND...

other_cpu is a number of CPUs: 0.5 is half a core. Time that a hypervisor took (steal) counts.
"""
import json
import os
import resource
import subprocess
import sys
import time


def busy():
    """Seconds of all CPUs that are not idle, since boot."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def used():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


begin, before = time.perf_counter(), busy()
code = subprocess.run(sys.argv[2:]).returncode
wall = time.perf_counter() - begin
with open(sys.argv[1], "w") as out:
    json.dump({"wall_s": wall, "other_cpu": max(0.0, busy() - before - used()) / wall}, out)
sys.exit(code if code >= 0 else 128 - code)
