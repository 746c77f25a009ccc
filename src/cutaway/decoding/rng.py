"""Random numbers, the same for the same seed: those of numpy's `default_rng`, without its random part.

`numpy.random` takes 6 MB and brings all of OpenSSL; a text needs one number a token. This is its PCG64 (O'Neill's
permuted congruential generator, XSL-RR), seeded by its SeedSequence.
"""

from __future__ import annotations

from collections.abc import Sequence

_32, _64, _128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


class Random:
    """`Random(seed).random()` gives what `numpy.random.default_rng(seed).random()` gives."""

    def __init__(self, seed: Sequence[int]):
        words = _spread(_mixed([word for number in seed for word in _words(int(number))]), 8)
        one, two, three, four = (words[i] | words[i + 1] << 32 for i in range(0, 8, 2))
        self._step = ((three << 64 | four) << 1 | 1) & _128
        self._state = ((self._step + (one << 64 | two)) * _MULTIPLIER + self._step) & _128

    def random(self) -> float:
        """Uniform in [0, 1)."""
        self._state = state = (self._state * _MULTIPLIER + self._step) & _128
        folded, turn = (state >> 64 ^ state) & _64, state >> 122
        return (((folded >> turn | folded << 64 - turn) & _64) >> 11) * 2.0**-53


def _words(number: int) -> list[int]:
    """The 32 bits at a time of a number, the lowest first."""
    return [number >> shift & _32 for shift in range(0, max(1, number.bit_length()), 32)]


def _mixed(entropy: list[int]) -> list[int]:
    """Four words that every word given has a part in."""
    factor = 0x43B0D7E5

    def hashed(word: int) -> int:
        nonlocal factor
        word ^= factor
        factor = factor * 0x931E8875 & _32
        word = word * factor & _32
        return word ^ word >> 16

    def mix(into: int, word: int) -> int:
        mixed = (into * 0xCA01F9DD - hashed(word) * 0x4973F715) & _32
        return mixed ^ mixed >> 16

    pool = [hashed(word) for word in [*entropy, 0, 0, 0, 0][:4]]
    for source in range(4):
        for into in range(4):
            if source != into:
                pool[into] = mix(pool[into], pool[source])
    for word in entropy[4:]:
        pool = [mix(into, word) for into in pool]
    return pool


def _spread(pool: list[int], count: int) -> list[int]:
    """As many words as are asked for, made of the pool."""
    words, factor = [], 0x8B51F9DD
    for i in range(count):
        word = pool[i % len(pool)] ^ factor
        factor = factor * 0x58F38DED & _32
        word = word * factor & _32
        words.append(word ^ word >> 16)
    return words
