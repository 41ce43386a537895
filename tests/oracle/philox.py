"""Is the twin of core/random.{h,cpp} in numpy: it gives the same bits for the same key and counter."""

import numpy as np

_CHUNK = 1 << 20  # Blocks drawn at a time, so that a large parameter needs little memory.


def stream_of(name):
    """Returns the 64-bit FNV-1a hash of a name."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def philox(counter, key):
    """Computes Philox4x32-10. counter: four arrays of uint64 that hold 32-bit words; key: two integers."""
    c = [np.asarray(word, np.uint64) for word in counter]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for turn in range(10):
        k0 = np.uint64(key[0] + turn * 0x9E3779B9 & 0xFFFFFFFF)
        k1 = np.uint64(key[1] + turn * 0xBB67AE85 & 0xFFFFFFFF)
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ k0, p1 & low, (p0 >> shift) ^ c[3] ^ k1, p0 & low]
    return c


class RandomStream:
    """Gives one sequence of draws, addressed by index; see core/random.h."""

    def __init__(self, seed, stream, sub=0):
        self.key = (seed & 0xFFFFFFFF, seed >> 32)
        self.stream = stream
        self.sub = sub

    def bits(self, count, first=0):
        """Returns the draws first .. first + count - 1, as uint32."""
        out = np.empty(count, np.uint32)
        begin, end = first // 4, (first + count + 3) // 4
        for chunk in range(begin, end, _CHUNK):
            number = np.arange(chunk, min(chunk + _CHUNK, end), dtype=np.uint64)
            words = philox(
                (
                    number & np.uint64(0xFFFFFFFF),
                    (number >> np.uint64(32)) ^ np.uint64(self.stream >> 32),
                    np.uint64(self.stream & 0xFFFFFFFF) + 0 * number,
                    np.uint64(self.sub) + 0 * number,
                ),
                self.key,
            )
            lanes = np.stack(words, axis=1).astype(np.uint32).reshape(-1)
            offset = chunk * 4 - first  # Place of lanes[0] in out; below 0 if first is amid a block.
            skip = max(-offset, 0)
            part = lanes[skip : skip + count - max(offset, 0)]
            out[max(offset, 0) : max(offset, 0) + part.size] = part
        return out

    def uniform(self, count, first=0):
        """Returns draws in [0, 1), as float32."""
        return (self.bits(count, first) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)

    def below(self, count, bound, first=0):
        """Returns draws in [0, bound)."""
        return (self.bits(count, first).astype(np.uint64) * np.uint64(bound)) >> np.uint64(32)


def known_answers():
    """Checks against the answers that the authors publish with Random123 (kat_vectors)."""
    ones = 0xFFFFFFFF
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    for counter, key, answer in (
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ones,) * 4, (ones,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (*pi, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ):
        words = " ".join("%08x" % int(word) for word in philox(counter, key))
        assert words == answer, (counter, key, words)


known_answers()
