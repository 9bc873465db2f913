"""redco's order of examples (src/data/index/epoch_order.h), for peers that need the same batches."""
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(v):
    v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    v = (v ^ (v >> 27)) * 0x94D049BB133111EB & MASK
    return v ^ (v >> 31)


def epoch_order(n, seed, epoch):
    """The permutation of 0..n-1 of an epoch."""
    if n <= 1:
        return list(range(n))
    bits = (n - 1).bit_length()
    high_bits = bits // 2
    low_bits = bits - high_bits
    state, keys = mix(mix((seed + GOLDEN) & MASK) ^ ((epoch * GOLDEN + 1) & MASK)), []
    for _ in range(16):
        state = (state + GOLDEN) & MASK
        keys.append(mix(state))

    def at(v):
        while True:
            low, high = v & ((1 << low_bits) - 1), v >> low_bits
            for r in range(0, 16, 2):
                low ^= mix((high * GOLDEN + keys[r]) & MASK) >> (64 - low_bits)
                if high_bits:
                    high ^= mix((low * GOLDEN + keys[r + 1]) & MASK) >> (64 - high_bits)
            v = high << low_bits | low
            if v < n:
                return v

    return [at(i) for i in range(n)]


def batches(n, batch, seed, steps):
    """The examples of each step, over as many epochs as needed; the last step of an epoch takes the remainder."""
    epoch = 0
    while steps > 0:
        order = list(epoch_order(n, seed, epoch))
        for first in range(0, n, batch):
            if steps > 0:
                yield order[first:first + batch]
            steps -= 1
        epoch += 1
