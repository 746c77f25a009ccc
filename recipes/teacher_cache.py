"""What the teacher would have said next, everywhere in the stories, written down once.

The stories are divided into shards by a fixed shuffle. A shard holds its stories in our tokens, each after the end
token, and for every token after which the teacher can be asked (one of its tokens and one of ours end at the same
letter there) the likeliest ways to go on: the first piece of what comes next, in the teacher's tokens, and its chance
in float16. Only pieces that can begin one of our tokens are considered. Where the processor multiplies bfloat16, the
teacher is asked in it, which takes two thirds of the time: its chances move by half a percent (mean total variation
over 1,301 places: 0.0046). distil_stories.py asks while training.
"""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from distil_stories import NUCLEUS, OPENING, WARMTH
from graft_stories import BEGIN, pieces, stream
from numpy.typing import NDArray
from sample_stories import Teacher, teacher_files
from torch import Tensor

import cutaway
from cutaway.processor import multiplies_bfloat16
from cutaway.tasks import Language
from cutaway.train.data.held_out import mix
from cutaway.train.data.pieces import identity
from cutaway.train.data.records import records

HELD_OUT, SHARD = 400, 500
"""Stories that are never trained on, and stories in a shard."""
LIKELIEST = 64
"""So many ways to go on are kept at most."""


def divide(folder: str, held_out: int = HELD_OUT) -> tuple[list[str], list[str]]:
    """The stories to train on and those held out, which are the ones `cutaway train` would hold out, in its order."""
    texts = list(dict.fromkeys(str(record["text"]) for record, _ in records([folder], None, Language().fields)))
    keys = mix(np.array([identity(text.encode()) for text in texts], np.uint64), 0)
    order = np.argsort(keys, kind="stable")
    chosen = set(order[:held_out].tolist())
    return [text for place, text in enumerate(texts) if place not in chosen], [texts[n] for n in order[:held_out]]


@dataclass(frozen=True)
class Groups:
    """Our tokens by the piece that the teacher would begin them with."""

    firsts: NDArray[np.int64]  # the teacher's piece of each group
    group: NDArray[np.int64]  # of each of our tokens
    members: NDArray[np.int64]  # our tokens, group by group
    starts: NDArray[np.int64]  # where each group's begin, and after the last one their number

    @classmethod
    def of(cls, teacher: Teacher, tokenizer: cutaway.Tokenizer) -> Groups:
        known = [
            [BEGIN] if t == tokenizer.end else pieces(teacher, tokenizer.token_bytes(t)) for t in range(len(tokenizer))
        ]
        firsts, group = np.unique([one[0] for one in known], return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(np.bincount(group))])
        return cls(firsts, group, np.argsort(group, kind="stable"), starts)


@dataclass(frozen=True)
class Shard:
    """Stories, and how they may go on."""

    tokens: NDArray[np.uint16]  # each story after the end token
    counts: NDArray[np.uint8]  # how many ways to go on are known after each token; 0: the teacher was not asked
    which: NDArray[np.uint16]  # groups,
    chance: NDArray[np.float16]  # and their chances, for all tokens one after the other


class Cache:
    """The shards of a folder, each made when it is first wanted."""

    def __init__(self, folder: pathlib.Path, stories: list[str], tokenizer: cutaway.Tokenizer, weights: pathlib.Path):
        self.folder, self.tokenizer, self.weights = folder, tokenizer, weights
        order = np.random.default_rng(7).permutation(len(stories))
        self.shards = [[stories[n] for n in order[start : start + SHARD]] for start in range(0, len(stories), SHARD)]
        self.words: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.shards)

    def path(self, number: int) -> pathlib.Path:
        return self.folder / f"shard-{number:04}.npz"

    def read(self, number: int) -> Shard:
        self.make(number)
        with np.load(self.path(number)) as kept:
            return Shard(kept["tokens"], kept["counts"], kept["which"], kept["chance"])

    def make(self, number: int) -> None:
        """Write a shard, unless it is there."""
        if self.path(number).exists():
            return
        shard = ask(self.teacher, self.groups, self.tokenizer, self.shards[number], self.words)
        self.write(self.path(number), **vars(shard))

    @cached_property
    def teacher(self) -> Teacher:
        return Teacher(teacher_files(self.weights), 1)

    @cached_property
    def groups(self) -> Groups:
        """Of the tokenizer's tokens; they are kept, too, so that the teacher is not needed to read shards."""
        path = self.folder / "groups.npz"
        if not path.exists():
            self.write(path, **vars(Groups.of(self.teacher, self.tokenizer)))
        with np.load(path) as kept:
            return Groups(kept["firsts"], kept["group"], kept["members"], kept["starts"])

    def write(self, path: pathlib.Path, **arrays: NDArray[Any]) -> None:
        """Whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.stem}.{os.getpid()}.npz")
        np.savez(partial, **arrays)
        partial.replace(path)


def teachers_ids(teacher: Teacher, text: str, words: dict[str, list[int]]) -> list[int]:
    ids = [BEGIN]
    for word in text.split(" "):  # the teacher's tokens never reach over a space
        if word not in words:
            words[word] = pieces(teacher, (" " + word).encode())
        ids += words[word]
    return ids


def ask(
    teacher: Teacher, groups: Groups, tokenizer: cutaway.Tokenizer, stories: list[str], words: dict[str, list[int]]
) -> Shard:
    ours = [[tokenizer.end, *ids] for ids in tokenizer.encode_batch(stories)]
    theirs = [teachers_ids(teacher, text, words)[: teacher.context] for text in stories]
    meetings = [meet(teacher, groups, tokenizer, a, b) for a, b in zip(ours, theirs, strict=True)]
    starts = np.cumsum([0, *map(len, ours)])
    counts = np.zeros(starts[-1], np.uint8)
    found: list[tuple[NDArray[Any], Tensor, Tensor]] = []
    outputs = teacher.embedding[torch.from_numpy(groups.firsts)]
    order = sorted(range(len(stories)), key=lambda n: len(theirs[n]))
    for begin in range(0, len(order), 8):  # texts of about the same length
        some = order[begin : begin + 8]
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(theirs[n]) for n in some], batch_first=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=multiplies_bfloat16()):
            *_, (_, _, last) = stream(teacher, ids)
        row = np.concatenate([np.full(len(meetings[n][0]), r) for r, n in enumerate(some)])
        at = np.concatenate([meetings[n][1] for n in some])
        vectors = F.rms_norm(
            last.float()[torch.from_numpy(row), torch.from_numpy(at)], (teacher.dim,), teacher.norm, 1e-5
        )
        which, chance = likeliest(vectors, outputs)
        found.append((np.concatenate([starts[n] + meetings[n][0] for n in some]), which, chance))
    places = np.concatenate([one[0] for one in found])
    which, chance = (
        torch.cat(column)[torch.from_numpy(np.argsort(places))] for column in zip(*(f[1:] for f in found), strict=True)
    )
    kept = (chance > 0).numpy()
    counts[np.sort(places)] = kept.sum(1)
    return Shard(
        np.concatenate(ours).astype(np.uint16), counts, which.numpy()[kept].astype(np.uint16),
        chance.numpy()[kept].astype(np.float16),
    )  # fmt: skip


def meet(
    teacher: Teacher, groups: Groups, tokenizer: cutaway.Tokenizer, ours: list[int], theirs: list[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """After which of our tokens the teacher is asked, and which of its tokens ends there."""
    ends = np.cumsum([1 if token < 259 else len(teacher.pieces[token]) for token in theirs[1:]])
    ended = 1 + np.cumsum([len(tokenizer.token_bytes(token)) for token in ours[1:]])  # theirs begins with a space
    at = np.searchsorted(ends, ended)
    met = ends[np.minimum(at, len(ends) - 1)] == ended
    met[:OPENING] = False
    places, at = 1 + np.nonzero(met)[0], at[met] + 1
    after = np.array([*theirs, BEGIN])[at + 1]  # BEGIN: the text ends here, as it does before another
    target = np.array([*ours[1:], tokenizer.end])[places]
    told = (after == groups.firsts[groups.group[target]]) & ((after != BEGIN) | (len(theirs) < teacher.context))
    return places[told], at[told]


def likeliest(vectors: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """How the teacher chose: the groups and their chances, likeliest first, 0 beyond the nucleus."""
    scores, which = (vectors @ outputs.T).topk(min(LIKELIEST, len(outputs)))
    likely = (scores / WARMTH).softmax(1)
    likely = likely * ((likely.cumsum(1) - likely) < NUCLEUS)
    return which, likely / likely.sum(1, keepdim=True)
