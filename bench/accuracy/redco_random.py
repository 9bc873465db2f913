"""redco's random draws (src/ops/create.h), for peers that need the same noise: Philox4x32-10 (Salmon et al. 2011)."""
import numpy as np

from redco_order import GOLDEN, MASK

LOW = np.uint64(0xFFFFFFFF)


def mix(v):
    v = (v + GOLDEN) & MASK
    v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    v = (v ^ (v >> 27)) * 0x94D049BB133111EB & MASK
    return v ^ (v >> 31)


def hash_text(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def key(seed, step, site, scope=""):
    """Context::key(site) in a step."""
    return mix(mix(mix(seed) ^ step) ^ mix(hash_text(scope)) ^ (hash_text(site) * GOLDEN & MASK))


def words(key, shape, first_row):
    """Words 0 and 1 of each element; its counter is its coordinates, aligned to the right in four numbers."""
    at = np.indices(shape, dtype=np.uint64)
    c = [np.zeros(shape, np.uint64)] * (4 - len(shape)) + [at[0] + np.uint64(first_row), *at[1:]]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), q & LOW, (p >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p & LOW]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0], c[1]


def uniform(key, shape, first_row=0):
    """random_uniform(): in [0, 1), fp32."""
    return ((words(key, shape, first_row)[0] >> np.uint64(8)).astype(np.float64) * 2.0 ** -24).astype(np.float32)


def normal(key, shape, first_row=0):
    """random_normal(), fp32."""
    first, second = words(key, shape, first_row)
    u, angle = (first.astype(np.float64) + 0.5) * 2.0 ** -32, second.astype(np.float64) * (2 * np.pi * 2.0 ** -32)
    return (np.sqrt(-2 * np.log(u)) * np.cos(angle)).astype(np.float32)
