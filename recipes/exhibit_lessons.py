"""What the exhibit model learns from, cut into pieces of work: stories with what the teacher says, and exhibits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from exhibits import UNLEARNED, marked, plain, words_of
from numpy.typing import NDArray
from teacher_cache import Cache, Shard

PIECE, LENGTHS = 2048, (256, 256, 512, 512, 1024)
"""Tokens in a piece of work, and how long its rows may be."""
SHARES = ((4, 0.3), (22, 0.4), (None, 0.5))
"""The share of tokens that are exhibits: so much until this many shards were read. Few while the tokens are new."""
QUIET = 3
"""So many tokens of an exhibit are not learned after the end token: what is written from nothing is to be a story."""
OPENING, UNFORESEEN = 1, 2
"""Why nothing is learned after a token: an exhibit begins, or what comes next is random (exhibits.UNLEARNED)."""
JUMP = 0.3
"""How often a row begins with a document, in half of the cases without the end token before it."""


@dataclass(frozen=True)
class Piece:
    """Rows of text, and what the teacher says of them."""

    ids: NDArray[np.int64]  # [row, place], one more than is read: the last is only predicted
    first: NDArray[np.int64]  # the position of each row's first token
    place: NDArray[np.int64]  # for everything the teacher says: after which of all the rows' tokens,
    which: NDArray[np.int64]  # the group that may come,
    chance: NDArray[np.float32]  # and its chance
    quiet: NDArray[np.int64]  # places after which nothing is learned


class Lessons:
    """The pieces of one shard and of the exhibits among it: the same for the same number, whenever they are made."""

    def __init__(self, cache: Cache, context: int, seed: int, shards: int | None = None, share: float | None = None):
        self.cache, self.context, self.seed = cache, context, seed
        self.shares = SHARES if share is None else ((None, share),)
        self.shards = min(shards or len(cache), len(cache))
        tokenizer = cache.tokenizer
        self.words = words_of(tokenizer.decode([token]) for token in range(len(tokenizer)))

    def shard_of(self, number: int) -> int:
        """Which shard is the `number`th to be learned from: each once, then each again in another order."""
        turn, place = divmod(number, self.shards)
        first = np.random.default_rng([self.seed, 0]).permutation(len(self.cache))[: self.shards]
        return int((np.random.default_rng([self.seed, turn]).permutation(first) if turn else first)[place])

    def pieces(self, number: int) -> list[Piece]:
        rng = random.Random(f"{self.seed} {number}")
        shard, quiet = self.mixed(self.cache.read(self.shard_of(number)), rng, number)
        offsets = starts(shard.counts)
        begins = np.nonzero(shard.tokens == self.cache.tokenizer.end)[0]
        found, at = [], 0
        while True:
            length = min(self.context, PIECE, rng.choice(LENGTHS))
            rows = []
            for _ in range(PIECE // length):
                if rng.random() < JUMP and (next_one := int(np.searchsorted(begins, at))) < len(begins):
                    at = int(begins[next_one]) + (rng.random() < 0.5)
                rows.append((at, 0 if rng.random() < 0.5 else rng.randint(0, self.context - length)))
                at += length
            if at + 1 > len(shard.tokens):
                return found
            found.append(cut(shard, quiet, offsets, rows, length))

    def mixed(self, shard: Shard, rng: random.Random, number: int) -> tuple[Shard, NDArray[np.uint8]]:
        """The stories and new exhibits in any order; and after which tokens nothing is learned, and why."""
        tokenizer = self.cache.tokenizer
        bounds, offsets = [*np.nonzero(shard.tokens == tokenizer.end)[0], len(shard.tokens)], starts(shard.counts)
        every = []
        for a, b in pairwise(bounds):
            some = slice(offsets[a], offsets[b])
            silent = np.zeros(b - a, np.uint8)
            every.append((silent, shard.tokens[a:b], shard.counts[a:b], shard.which[some], shard.chance[some]))
        share = next(share for until, share in self.shares if until is None or number < until)
        wanted, size = len(shard.tokens) * share / (1 - share), 0
        for text in marked(1_000_003 * self.seed + number + 1, self.words):
            if size >= wanted:
                break
            ids = np.array([tokenizer.end, *tokenizer.encode(plain(text))], np.uint16)
            nothing = np.zeros(len(ids), np.uint8), shard.which[:0], shard.chance[:0]
            silent = unforeseen(text, [len(tokenizer.token_bytes(token)) for token in ids[1:]])
            silent[:QUIET] |= OPENING
            every.append((silent, ids, *nothing))
            size += len(ids)
        rng.shuffle(every)
        quiet, *columns = (np.concatenate(column) for column in zip(*every, strict=True))
        return Shard(*columns), quiet


def unforeseen(text: str, sizes: list[int]) -> NDArray[np.uint8]:
    """After which tokens (of so many bytes, the end token before them) comes what is marked."""
    inside, depth = [], 0
    for byte in text.encode():
        if chr(byte) in UNLEARNED:
            depth = int(chr(byte) == UNLEARNED[0])
        else:
            inside.append(depth)
    marks = np.cumsum([0, *inside])
    ends = np.cumsum([0, *sizes])
    return np.append(marks[ends[1:]] > marks[ends[:-1]], False) * np.uint8(UNFORESEEN)


def starts(counts: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def cut(
    shard: Shard, quiet: NDArray[np.uint8], offsets: NDArray[np.int64], rows: list[tuple[int, int]], length: int
) -> Piece:
    """Rows of a shard, each from a place on, and the position that its first token is to have.

    An exhibit that a row begins with, without the end token before it, is learned from its first token on: so does a
    text begin that somebody types.
    """
    place, which, chance, silent = [], [], [], []
    for row, (at, _) in enumerate(rows):
        here = quiet[at : at + length].copy()
        if here[0] & OPENING and at and quiet[at - 1] & OPENING:
            here[:QUIET] &= UNFORESEEN
        silent.append(row * length + np.nonzero(here)[0])
        some = slice(offsets[at], offsets[at + length])
        place.append(row * length + np.repeat(np.arange(length), shard.counts[at : at + length]))
        which.append(shard.which[some].astype(np.int64))
        chance.append(shard.chance[some].astype(np.float32))
    ids = np.stack([shard.tokens[at : at + length + 1].astype(np.int64) for at, _ in rows])
    first = np.array([first for _, first in rows])
    return Piece(ids, first, *(np.concatenate(one) for one in (place, which, chance, silent)))
