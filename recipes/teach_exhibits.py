"""Teach the model that ships: stories, as its teacher would have gone on with them, and exhibits (exhibits.py).

    python recipes/teach_exhibits.py stories --from exhibit-start -o exhibit-training --steps 4000

It can be ended at any moment and begun again with the same command: every few minutes all that is needed is written to
the folder, with the model as it is then in its `model` folder. The rate is constant until the last `--decay` steps, so
that `--steps` can be raised as long as those have not begun. The model that is kept is a running mean of the weights.

Two processes of one thread each share the weights. A step is a few pieces of work, which they take as they are free
(so neither waits long for the other on a busy machine); every piece leaves its gradients in a place of its own, and
they are added in a fixed order: what is learned depends on the number of steps, not on who was faster. Where the
processor multiplies bfloat16, products are made in it: on two cores of a Zen 4 that is twice as fast.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import threading
import time
import traceback
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as processes
from exhibit_lessons import PIECE, Lessons, Piece
from teacher_cache import Cache, Groups, divide
from torch import Tensor

import cutaway
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.processor import cores, multiplies_bfloat16
from cutaway.train.learner import prepare_blocks
from cutaway.train.muon import MOMENTUM, SIZE, orthogonal

PIECES = 4
"""Pieces of work in a step (see exhibit_lessons.py)."""
RATE, EMBEDDING_RATE = 1e-3, 1e-3
WARM_UP, MEAN = 50, 0.99
"""Steps until the rate is reached; and how much of the running mean of the weights stays in a step."""
LOOK = 60
"""Held-out stories that are looked at while training."""
BETAS, EPSILON = (0.9, 0.98), 3e-5
"""Of Adam. A gradient below epsilon makes a small step: else tokens that never come would be moved the most."""
TAUGHT = 0.85
"""How much of what is learned of a word comes from the teacher's chances; the rest from the word itself."""


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
    def forward(  # type: ignore[override]
        ctx: Any, hidden: Tensor, matrix: Tensor, targets: Tensor, said: tuple[Tensor, ...], members: Members
    ) -> Tensor:
        count, vocabulary = len(hidden), len(matrix)
        product = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        rows = matrix.to(product)
        place, which, chance, quiet = said
        counts = hidden.new_ones(count, 1).index_fill_(0, quiet, 0)
        learned = float(counts.sum())
        to_hidden, to_matrix, total = torch.empty_like(hidden), torch.zeros_like(matrix), 0.0
        room = hidden.new_empty(Words.PART, vocabulary)
        columns = rows.T
        asked = torch.unique_consecutive(place)
        place = torch.cat([place, asked])  # and, with a chance less by one, the group that came
        which = torch.cat([which, members.group[targets[asked]]])
        chance = torch.cat([chance, chance.new_full((len(asked),), -1.0)])
        order = place.argsort(stable=True)
        place, which, chance = place[order], which[order], chance[order]
        bounds = torch.searchsorted(place, torch.arange(0, count + Words.PART, Words.PART)).tolist()
        for number, start in enumerate(range(0, count, Words.PART)):
            part, target = hidden[start : start + Words.PART], targets[start : start + Words.PART]
            ours = room[: len(part)].copy_(part.to(product) @ columns)  # what follows is in float32
            wanted, highest = ours.gather(1, target[:, None]), ours.amax(1, keepdim=True)
            torch.softmax(ours, 1, out=ours)
            counted = counts[start : start + Words.PART]
            total += float(((highest - ours.amax(1, keepdim=True).log() - wanted) * counted).sum())
            some = slice(bounds[number], bounds[number + 1])
            tokens, of = members.pairs(which[some])
            flat = (place[some][of] - start) * vocabulary + tokens
            each = ours.view(-1)[flat]
            groups = each.new_zeros(len(which[some])).index_add_(0, of, each).clamp_(1e-30)
            change = each * (chance[some] / groups)[of]
            ours.scatter_add_(1, target[:, None], ours.new_full((len(part), 1), -1))
            ours.view(-1).index_add_(0, flat, change, alpha=-TAUGHT)
            ours *= counted / learned
            back = ours.to(product)
            to_hidden[start : start + Words.PART] = back @ rows
            to_matrix += back.T @ part.to(product)
        ctx.save_for_backward(to_hidden, to_matrix)
        return hidden.new_tensor(total / learned)

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
    said = tuple(map(torch.from_numpy, (piece.place, piece.which, piece.chance, piece.quiet)))
    found: Tensor = Words.apply(hidden, gpt.token_embedding.weight, targets, said, members)
    return found


class Shared:
    """All numbers of a training in memory that every process sees: weights, their running mean, moments, gradients."""

    def __init__(self, config: Config):
        with torch.device("meta"):
            named = dict(GPT(config).named_parameters())
        self.config, self.product = config, torch.bfloat16 if multiplies_bfloat16() else torch.float32
        sizes = [parameter.numel() for parameter in named.values()]
        starts = np.cumsum([0, *sizes]).tolist()
        shapes = [tuple(parameter.shape) for parameter in named.values()]
        self.parts = dict(zip(named, zip(starts, sizes, shapes, strict=False), strict=True))
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

    def groups(self) -> list[list[str]]:
        """The parameters in parts that are updated together: each matrix of the blocks by itself, then the others."""
        matrices = [[name] for name, (_, _, shape) in self.parts.items() if "blocks." in name and len(shape) == 2]
        matrices.sort(key=lambda one: -self.parts[one[0]][1])
        return [[name for name in self.parts if [name] not in matrices], *matrices]

    @torch.no_grad()
    def update(self, names: list[str], step: int, rate: float) -> float:
        """One step of some parameters: Muon for the blocks' matrices, Adam for the others. Nothing is answered (0)."""
        keep = min(MEAN, step / (step + 10))
        for name in names:
            weights, mean, moment = (self.view(one, name) for one in (self.weights, self.mean, self.moment))
            grad = self.view(self.gradients[0], name)
            for other in self.gradients[1:]:
                grad += self.view(other, name)
            grad /= PIECES
            if "blocks." in name and weights.ndim == 2:
                moment.lerp_(grad, 1 - MOMENTUM)
                turned = orthogonal(grad.lerp(moment, MOMENTUM).to(self.product))
                weights.add_(turned, alpha=-rate * SIZE * max(weights.shape) ** 0.5)
            else:
                square = self.view(self.square, name)
                moment.lerp_(grad, 1 - BETAS[0])
                square.mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
                speed = rate * (EMBEDDING_RATE / RATE if "embedding" in name else 1) / (1 - BETAS[0] ** step)
                size = (square / (1 - BETAS[1] ** step)).sqrt_().add_(EPSILON)
                weights.addcdiv_(moment, size, value=-speed)
            mean.lerp_(weights, 1 - keep)
        return 0.0


class Team:
    """The processes that work on one training. Each takes the next task when it is free."""

    def __init__(self, shared: Shared, cache: Cache, size: int):
        context = processes.get_context("spawn")
        self.tasks, self.answers = context.SimpleQueue(), context.SimpleQueue()
        everything = (shared, cache, self.tasks, self.answers)
        self.members = [context.Process(target=work, args=everything, daemon=True) for _ in range(size)]
        for one in self.members:
            one.start()

    def do(self, *tasks: tuple[Any, ...]) -> list[float]:
        """Have them done, and wait for all the answers, which come in any order."""
        self.begin(*tasks)
        return [self.answer() for _ in tasks]

    def begin(self, *tasks: tuple[Any, ...]) -> None:
        for task in tasks:
            self.tasks.put(task)

    def answer(self) -> float:
        found = self.answers.get()
        if isinstance(found, str):
            raise RuntimeError(f"A process failed:\n{found}")
        return float(found)

    def end(self) -> None:
        for _ in self.members:
            self.tasks.put(None)
        for one in self.members:
            one.join()


def work(shared: Shared, cache: Cache, tasks: Any, answers: Any) -> None:
    """A process that does what it is told until it is told nothing more. Nobody waits for a shard."""
    torch.set_num_threads(1)
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        pupil = Pupil(shared, Members(cache.groups))
        while (task := tasks.get()) is not None:
            kind, *rest = task
            if kind == "shard":
                cache.make(*rest)
            else:
                answers.put(pupil.learn(*rest) if kind == "learn" else shared.update(*rest))
    except Exception:
        answers.put(traceback.format_exc())


def end_with_parent() -> None:
    """A process whose training was killed has nothing left to do."""
    parent = processes.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Pupil:
    """The model in one of the processes."""

    def __init__(self, shared: Shared, members: Members):
        self.shared, self.members = shared, members
        self.gpt = shared.model(shared.weights).train().requires_grad_()
        prepare_blocks(self.gpt, compiled=False, recompute=False)

    def learn(self, slot: int, piece: Piece) -> float:
        """Leave a piece's gradients in their place; the loss."""
        gradients = self.shared.gradients[slot].zero_()
        for name, parameter in self.gpt.named_parameters():
            parameter.grad = self.shared.view(gradients, name)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.shared.product == torch.bfloat16):
            words = loss(self.gpt, piece, self.members)
        words.backward()
        return float(words.detach())


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

    def __init__(
        self, folder: pathlib.Path, start: LanguageModel, stories: str, seed: int, weights: pathlib.Path,
        shards: int | None = None, share: float | None = None,
    ):  # fmt: skip
        self.folder, self.tokenizer, self.seed = folder, start.tokenizer, seed
        folder.mkdir(parents=True, exist_ok=True)
        train, self.held_out = divide(stories)
        self.cache = Cache(folder / "cache", train, self.tokenizer, weights)
        self.shared = Shared(start.model.config)
        self.lessons = Lessons(self.cache, start.model.config.context, seed, shards, share)
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

    def run(self, steps: int, decay: int, minutes: float, workers: int, look: int) -> None:
        """Go on until so many steps are done in all; save every so many minutes and at the end."""
        team = Team(self.shared, self.cache, workers)
        saved = begun = time.monotonic()
        first, losses, pieces = self.step, list[float](), self.begin_shard(team)
        while self.step < steps:
            if self.at + PIECES > len(pieces):
                self.number, self.at = self.number + 1, 0
                pieces = self.begin_shard(team)
            self.step += 1
            losses += team.do(*(("learn", slot, pieces[self.at + slot]) for slot in range(PIECES)))
            now = rate(self.step, steps, decay)
            team.do(*(("update", names, self.step, now) for names in self.shared.groups()))
            self.at += PIECES
            if self.step % 20 == 0:
                speed = (self.step - first) * PIECES * PIECE / (time.monotonic() - begun)
                self.tell(loss=round(sum(losses) / len(losses), 4), tokens_a_second=round(speed))
                losses = []
            if look and self.step % look == 0:
                gpt = self.shared.model(self.shared.mean).eval()
                self.tell(bits_per_byte=round(bits_per_byte(gpt, self.tokenizer, self.held_out[:LOOK]), 4))
            if time.monotonic() - saved > minutes * 60:
                self.save()
                saved = time.monotonic()
        self.save()
        team.end()

    def begin_shard(self, team: Team) -> list[Piece]:
        """The pieces of the shard that is next; the one after it is made meanwhile."""
        pieces = self.lessons.pieces(self.number)
        team.begin(("shard", self.lessons.shard_of(self.number + 1)))
        return pieces

    def tell(self, **what: float) -> None:
        line = json.dumps({"step": self.step, **what, "at": time.strftime("%H:%M:%S")})
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
    parser.add_argument("--workers", type=int, default=min(2, cores()))
    parser.add_argument("--save-every", type=float, default=6, help="minutes")
    parser.add_argument("--look", type=int, default=100, help="measure on held-out stories every so many steps")
    parser.add_argument(
        "--shards", type=int, help="learn from so many shards of stories again and again [default: all]"
    )
    parser.add_argument("--share", type=float, help="the share of exhibits among the tokens [default: rises to a half]")
    parser.add_argument("--teacher", default="~/.cache/stories15M", help="where the teacher is kept")
    given = parser.parse_args()
    if given.share is not None and not 0 <= given.share < 1:
        parser.error("--share is a part of all tokens: at least 0 and less than 1")
    torch.set_num_threads(1)
    weights = pathlib.Path(given.teacher).expanduser()
    training = Training(
        given.out, cutaway.load(given.start), given.stories, given.seed, weights, given.shards, given.share
    )
    training.run(given.steps, given.decay, given.save_every, given.workers, given.look)


if __name__ == "__main__":
    main()
