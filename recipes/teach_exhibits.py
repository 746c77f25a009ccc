"""Teach the model that ships: stories, as its teacher would have gone on with them, and exhibits (exhibits.py).

    python recipes/teach_exhibits.py stories --from exhibit-start -o exhibit-training --steps 4000

It can be ended at any moment and begun again with the same command: every few minutes all that is needed is written to
the folder, with the model as it is then in its `model` folder. The rate is constant until the last `--decay` steps, so
that `--steps` can be raised as long as those have not begun. The model that is kept is a running mean of the weights.

Two processes of one thread each share the weights. A step is a few pieces of work, which they take as they are free
(so neither waits long for the other on a busy machine); every piece leaves its gradients in a place of its own, and they
are added in a fixed order: what is learned depends on the number of steps, not on who was faster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import random
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as processes
from exhibits import documents
from numpy.typing import NDArray
from sample_stories import Teacher, teacher_files
from teacher_cache import Cache, Groups, Shard, divide
from torch import Tensor

import cutaway
from cutaway.config import Config
from cutaway.language_model import LanguageModel
from cutaway.model import GPT
from cutaway.train.learner import prepare_blocks
from cutaway.train.muon import MOMENTUM, SIZE, orthogonal

PIECE, PIECES = 1024, 4
"""Tokens in a piece of work, and pieces in a step."""
RATE, EMBEDDING_RATE = 6e-4, 1.2e-3
WARM_UP, MEAN = 50, 0.99
"""Steps until the rate is reached; and how much of the running mean of the weights stays in a step."""
BETAS, EPSILON = (0.9, 0.98), 1e-8
TAUGHT = 0.85
"""How much of what is learned of a word comes from the teacher's chances; the rest from the word itself."""
EXHIBITS, AT_FIRST, FIRST = 0.12, 0.25, 25
"""The share of tokens that are exhibits; and what it is in the first so many shards, while they are new to the model."""
JUMP = 0.3
"""How often a row begins with a document, in half of the cases without the end token before it."""


# What is learned from -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Rows of text, and what the teacher says of them."""

    ids: NDArray[np.int64]  # [row, place], one more than is read: the last is only predicted
    first: NDArray[np.int64]  # the position of each row's first token
    place: NDArray[np.int64]  # for everything the teacher says: after which of all the rows' tokens,
    which: NDArray[np.int64]  # the group that may come,
    chance: NDArray[np.float32]  # and its chance


class Lessons:
    """The pieces of work of one shard and the exhibits among it: the same for the same number, whenever they are made."""

    def __init__(self, cache: Cache, context: int, seed: int):
        self.cache, self.context, self.seed = cache, context, seed

    def shard_of(self, number: int) -> int:
        """Which shard is the `number`th to be learned from: each once, then each again in another order."""
        turn, place = divmod(number, len(self.cache))
        return int(np.random.default_rng([self.seed, turn]).permutation(len(self.cache))[place])

    def pieces(self, number: int) -> list[Piece]:
        rng = random.Random(f"{self.seed} {number}")
        shard = self.mixed(self.cache.read(self.shard_of(number)), rng, number)
        tokens, end = shard.tokens.astype(np.int64), self.cache.tokenizer.end
        offsets = np.concatenate([[0], np.cumsum(shard.counts.astype(np.int64))])
        begins = np.nonzero(tokens == end)[0]
        found, at = [], 0
        while True:
            length = min(self.context, rng.choice([256, 256, 512, 512, 1024]))
            rows = []
            for _ in range(PIECE // length):
                if rng.random() < JUMP and (next_one := int(np.searchsorted(begins, at))) < len(begins):
                    at = int(begins[next_one]) + (rng.random() < 0.5)
                first = 0 if rng.random() < 0.5 else rng.randint(0, self.context - length)
                rows.append((at, first))
                at += length
            if at + 1 > len(tokens):
                return found
            found.append(cut(shard, offsets, rows, length))

    def mixed(self, shard: Shard, rng: random.Random, number: int) -> Shard:
        """The stories and new exhibits in any order."""
        tokenizer = self.cache.tokenizer
        bounds = [*np.nonzero(shard.tokens == tokenizer.end)[0].tolist(), len(shard.tokens)]
        parts = [(start, stop) for start, stop in zip(bounds, bounds[1:], strict=False)]
        share = AT_FIRST if number < FIRST else EXHIBITS
        wanted, size, texts = len(shard.tokens) * share / (1 - share), 0, list[list[int]]()
        for text in documents(1_000_003 * self.seed + number + 1):
            if size >= wanted:
                break
            texts.append([tokenizer.end, *tokenizer.encode(text)])
            size += len(texts[-1])
        offsets = np.concatenate([[0], np.cumsum(shard.counts.astype(np.int64))])
        nothing = shard.which[:0], shard.chance[:0]
        every = [
            (shard.tokens[a:b], shard.counts[a:b], shard.which[offsets[a] : offsets[b]], shard.chance[offsets[a] : offsets[b]])
            for a, b in parts
        ] + [(np.array(ids, np.uint16), np.zeros(len(ids), np.uint8), *nothing) for ids in texts]  # fmt: skip
        rng.shuffle(every)
        return Shard(*(np.concatenate(column) for column in zip(*every, strict=True)))


def cut(shard: Shard, offsets: NDArray[np.int64], rows: list[tuple[int, int]], length: int) -> Piece:
    place, which, chance = [], [], []
    for row, (at, _) in enumerate(rows):
        some = slice(offsets[at], offsets[at + length])
        place.append(row * length + np.repeat(np.arange(length), shard.counts[at : at + length]))
        which.append(shard.which[some].astype(np.int64))
        chance.append(shard.chance[some].astype(np.float32))
    ids = np.stack([shard.tokens[at : at + length + 1].astype(np.int64) for at, _ in rows])
    first = np.array([first for _, first in rows])
    return Piece(ids, first, np.concatenate(place), np.concatenate(which), np.concatenate(chance))


# The loss -------------------------------------------------------------------------------------------------------------


class Members:
    """Our tokens by the teacher's pieces, as tensors."""

    def __init__(self, groups: Groups):
        self.group, self.members, self.starts = map(torch.from_numpy, (groups.group, groups.members, groups.starts))

    def pairs(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """For groups: every token of each, and which of the given groups it is of."""
        sizes = self.starts[which + 1] - self.starts[which]
        of = torch.repeat_interleave(torch.arange(len(which)), sizes)
        within = torch.arange(len(of)) - (sizes.cumsum(0) - sizes)[of]
        return self.members[self.starts[which][of] + within], of


class Words(torch.autograd.Function):
    """The mean loss of the next tokens, and both gradients, a part at a time.

    With p our chance of a token, P of its group and T the teacher's of that group, the gradient to a token's score is
    p - T p / P; in the group that came it is p / P more, less one for the token that came. The group is learned from
    the teacher, the token within it from the text. Where the teacher says nothing, all is learned from the text.
    """

    PART = 256

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, matrix: Tensor, targets: Tensor, said: tuple[Tensor, Tensor, Tensor], members: Members) -> Tensor:  # type: ignore[override]  # fmt: skip
        count, vocabulary = len(hidden), len(matrix)
        place, which, chance = said
        to_hidden, to_matrix, total = torch.empty_like(hidden), torch.zeros_like(matrix), 0.0
        room = hidden.new_empty(Words.PART, vocabulary)
        asked = torch.unique_consecutive(place)
        place = torch.cat([place, asked])  # and, with a chance less by one, the group that came
        which = torch.cat([which, members.group[targets[asked]]])
        chance = torch.cat([chance, chance.new_full((len(asked),), -1.0)])
        order = place.argsort(stable=True)
        place, which, chance = place[order], which[order], chance[order]
        bounds = torch.searchsorted(place, torch.arange(0, count + Words.PART, Words.PART)).tolist()
        for number, start in enumerate(range(0, count, Words.PART)):
            part, target = hidden[start : start + Words.PART], targets[start : start + Words.PART]
            ours = torch.mm(part, matrix.T, out=room[: len(part)])
            wanted, highest = ours.gather(1, target[:, None]), ours.amax(1, keepdim=True)
            torch.softmax(ours, 1, out=ours)
            total += float((highest - ours.amax(1, keepdim=True).log() - wanted).sum())
            some = slice(bounds[number], bounds[number + 1])
            tokens, of = members.pairs(which[some])
            flat = (place[some][of] - start) * vocabulary + tokens
            each = ours.view(-1)[flat]
            groups = each.new_zeros(len(which[some])).index_add_(0, of, each).clamp_(1e-12)
            change = each * (chance[some] / groups)[of]
            ours.scatter_add_(1, target[:, None], ours.new_full((len(part), 1), -1))
            ours.view(-1).index_add_(0, flat, change, alpha=-TAUGHT)
            ours /= count
            torch.mm(ours, matrix, out=to_hidden[start : start + Words.PART])
            to_matrix.addmm_(ours.T, part)
        ctx.save_for_backward(to_hidden, to_matrix)
        return hidden.new_tensor(total / count)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        to_hidden, to_matrix = ctx.saved_tensors
        return to_hidden, to_matrix, None, None, None


def loss(gpt: GPT, piece: Piece, members: Members) -> Tensor:
    ids = torch.from_numpy(piece.ids)
    inputs, targets = ids[:, :-1], ids[:, 1:].flatten()
    positions = torch.from_numpy(piece.first)[:, None] + torch.arange(inputs.shape[1])
    residual = gpt.token_embedding(inputs) + gpt.position_embedding(positions)
    for block in gpt.blocks:
        residual = block(residual)
    hidden = gpt.final_norm(residual).flatten(0, 1)
    said = tuple(map(torch.from_numpy, (piece.place, piece.which, piece.chance)))
    found: Tensor = Words.apply(hidden, gpt.token_embedding.weight, targets, said, members)
    return found


# Two processes, one model ---------------------------------------------------------------------------------------------


class Shared:
    """All numbers of a training in memory that every process sees: weights, their running mean, moments, gradients."""

    def __init__(self, config: Config):
        with torch.device("meta"):
            named = dict(GPT(config).named_parameters())
        self.config = config
        sizes = [parameter.numel() for parameter in named.values()]
        starts = np.cumsum([0, *sizes]).tolist()
        self.parts = {name: (at, size, tuple(named[name].shape)) for name, at, size in zip(named, starts, sizes, strict=False)}  # fmt: skip
        total = sum(sizes)
        self.weights, self.mean, self.moment, self.square = (torch.zeros(total).share_memory_() for _ in range(4))
        self.gradients = torch.zeros(PIECES, total).share_memory_()

    def view(self, of: Tensor, name: str) -> Tensor:
        at, size, shape = self.parts[name]
        return of[at : at + size].view(shape)

    def model(self, of: Tensor) -> GPT:
        """A model whose weights are these numbers, not a copy."""
        with torch.device("meta"):
            gpt = GPT(self.config)
        gpt.load_state_dict({name: self.view(of, name) for name in self.parts}, assign=True)
        return gpt

    def fill(self, gpt: GPT) -> None:
        for name, parameter in gpt.named_parameters():
            self.view(self.weights, name).copy_(parameter.detach())
        self.mean.copy_(self.weights)

    @property
    def state(self) -> dict[str, Tensor]:
        return {"weights": self.weights, "mean": self.mean, "moment": self.moment, "square": self.square}

    def whole(self) -> list[list[str]]:
        """The parameters in parts that are updated together: each matrix of the blocks by itself, then the others."""
        matrices = [[name] for name, (_, _, shape) in self.parts.items() if "blocks." in name and len(shape) == 2]
        matrices.sort(key=lambda one: -self.parts[one[0]][1])
        return [[name for name in self.parts if [name] not in matrices], *matrices]

    @torch.no_grad()
    def update(self, names: list[str], step: int, rate: float) -> None:
        keep = min(MEAN, step / (step + 10))
        for name in names:
            weights, mean, moment = (self.view(one, name) for one in (self.weights, self.mean, self.moment))
            grad = self.view(self.gradients[0], name)
            for other in self.gradients[1:]:
                grad += self.view(other, name)
            grad /= PIECES
            if "blocks." in name and weights.ndim == 2:
                moment.lerp_(grad, 1 - MOMENTUM)
                weights.add_(orthogonal(grad.lerp(moment, MOMENTUM)), alpha=-rate * SIZE * max(weights.shape) ** 0.5)
            else:
                square = self.view(self.square, name)
                moment.lerp_(grad, 1 - BETAS[0])
                square.mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
                speed = rate * (EMBEDDING_RATE / RATE if "embedding" in name else 1) / (1 - BETAS[0] ** step)
                size = (square / (1 - BETAS[1] ** step)).sqrt_().add_(EPSILON)
                weights.addcdiv_(moment, size, value=-speed)
            mean.lerp_(weights, 1 - keep)


def end_with_parent() -> None:
    """A worker whose training was killed has nothing left to do."""
    parent = processes.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def work(shared: Shared, cache: Cache, tasks: Any, answers: Any) -> None:
    """A process that does what it is told until it is told nothing more."""
    torch.set_num_threads(1)
    threading.Thread(target=end_with_parent, daemon=True).start()
    members = Members(Groups.of(Teacher(teacher_files(cache.weights), 1), cache.tokenizer))
    gpt = shared.model(shared.weights).train().requires_grad_()
    prepare_blocks(gpt, compiled=False, recompute=False)
    while (task := tasks.get()) is not None:
        kind, *rest = task
        if kind == "learn":
            slot, piece = rest
            gradients = shared.gradients[slot]
            gradients.zero_()
            for name, parameter in gpt.named_parameters():
                parameter.grad = shared.view(gradients, name)
            words = loss(gpt, piece, members)
            words.backward()
            answers.put(("learn", float(words.detach())))
        elif kind == "update":
            shared.update(*rest)
            answers.put(("update", 0.0))
        else:
            cache.make(rest[0])


def rate(step: int, steps: int, decay: int) -> float:
    """Up over the warm-up, level, and down to a fiftieth over the last steps."""
    falling = min(1.0, max(0.0, (step - (steps - decay)) / decay)) if decay else 0.0
    return RATE * min(1.0, step / WARM_UP) * (1 - 0.98 * falling)


def bits_per_byte(gpt: GPT, tokenizer: cutaway.Tokenizer, texts: list[str]) -> float:
    """Each text after the end token, by itself; its own end is not counted."""
    nats = 0.0
    with torch.inference_mode():
        for text in texts:
            ids = torch.tensor([[tokenizer.end, *tokenizer.encode(text)][: gpt.config.context]])
            logs = gpt(ids[:, :-1]).log_softmax(-1)
            nats -= float(logs.gather(-1, ids[:, 1:, None]).sum())
    return nats / math.log(2) / sum(len(text.encode()) for text in texts)


class Training:
    """The whole training, and the folder it lives in."""

    def __init__(self, folder: pathlib.Path, start: LanguageModel, stories: str, seed: int, weights: pathlib.Path):
        self.folder, self.tokenizer, self.seed = folder, start.tokenizer, seed
        folder.mkdir(parents=True, exist_ok=True)
        train, self.held_out = divide(stories)
        self.cache = Cache(folder / "cache", train, self.tokenizer, weights)
        self.shared = Shared(start.model.config)
        self.lessons = Lessons(self.cache, start.model.config.context, seed)
        self.step = self.number = self.at = 0
        if (folder / "state.pt").exists():
            kept = torch.load(folder / "state.pt", weights_only=True)
            self.step, self.number, self.at = kept["step"], kept["number"], kept["at"]
            for name, one in self.shared.state.items():
                one.copy_(kept[name])
        else:
            self.shared.fill(start.model)

    def save(self) -> None:
        partial = self.folder / ".state.pt"
        torch.save({"step": self.step, "number": self.number, "at": self.at, **self.shared.state}, partial)
        partial.replace(self.folder / "state.pt")
        LanguageModel(self.shared.model(self.shared.mean), self.tokenizer).save(self.folder / "model")

    def run(self, steps: int, decay: int, every: float, workers: int, look: int) -> None:
        context = processes.get_context("spawn")
        tasks, answers = context.SimpleQueue(), context.SimpleQueue()
        team = [context.Process(target=work, args=(self.shared, self.cache, tasks, answers), daemon=True) for _ in range(workers)]  # fmt: skip
        for one in team:
            one.start()
        saved, begun, done = time.monotonic(), time.monotonic(), 0
        losses: list[float] = []
        self.cache.make(self.lessons.shard_of(self.number))
        pieces = self.lessons.pieces(self.number)
        tasks.put(("shard", self.lessons.shard_of(self.number + 1)))
        while self.step < steps:
            if self.at + PIECES > len(pieces):
                self.number, self.at = self.number + 1, 0
                pieces = self.lessons.pieces(self.number)
                tasks.put(("shard", self.lessons.shard_of(self.number + 1)))
            self.step += 1
            for slot in range(PIECES):
                tasks.put(("learn", slot, pieces[self.at + slot]))
            losses += [answers.get()[1] for _ in range(PIECES)]
            groups = self.shared.whole()
            for names in groups:
                tasks.put(("update", names, self.step, rate(self.step, steps, decay)))
            for _ in groups:
                answers.get()
            self.at, done = self.at + PIECES, done + PIECES * PIECE
            if self.step % 20 == 0:
                speed = done / (time.monotonic() - begun)
                self.tell(
                    {"step": self.step, "loss": round(sum(losses) / len(losses), 4), "tokens_a_second": round(speed)}
                )
                losses = []
            if look and self.step % look == 0:
                gpt = self.shared.model(self.shared.mean).eval()
                self.tell(
                    {
                        "step": self.step,
                        "bits_per_byte": round(bits_per_byte(gpt, self.tokenizer, self.held_out[:60]), 4),
                    }
                )
            if time.monotonic() - saved > every * 60:
                self.save()
                saved = time.monotonic()
        self.save()
        for _ in team:
            tasks.put(None)

    def tell(self, what: dict[str, Any]) -> None:
        line = json.dumps({**what, "at": time.strftime("%H:%M:%S")})
        print(line, flush=True)
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", help="folder of stories, as sample_stories.py writes them")
    parser.add_argument("--from", dest="start", required=True, help="the model to begin with (exhibit_start.py)")
    parser.add_argument("-o", "--out", type=pathlib.Path, required=True, help="folder for the training")
    parser.add_argument("--steps", type=int, default=4000, help=f"steps of {PIECES} x {PIECE} tokens")
    parser.add_argument("--decay", type=int, default=1000, help="over so many steps, the last, the rate falls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--save-every", type=float, default=6, help="minutes")
    parser.add_argument("--look", type=int, default=100, help="measure on held-out stories every so many steps")
    parser.add_argument("--teacher", default="~/.cache/stories15M", help="where the teacher is kept")
    given = parser.parse_args()
    torch.set_num_threads(1)
    weights = pathlib.Path(given.teacher).expanduser()
    training = Training(given.out, cutaway.load(given.start), given.stories, given.seed, weights)
    training.run(given.steps, given.decay, given.save_every, given.workers, given.look)


if __name__ == "__main__":
    main()
