"""What the peers' programs share: the memory of a process, the spread of the processes of a run, the JSON line."""
import json
import os
import resource
import statistics
import time


def peak_memory():
    """Bytes of the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory():
    """Bytes of the resident size now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def median_of(call, n, warmup=1):
    """Median of n timed calls after the warm-up calls."""
    for _ in range(warmup):
        call()
    return statistics.median(timed(call) for _ in range(n))


def report(**values):
    print(json.dumps(values), flush=True)
