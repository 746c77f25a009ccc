"""The story model's last lesson: not only the word that came next, but what else its teacher might have said.

    python recipes/graft_stories.py stories -o story-start
    cutaway train recipes/stories.toml -o story-middle
    torchrun --nproc-per-node 2 recipes/distil_stories.py stories --from story-middle -o story-later
    torchrun --nproc-per-node 2 recipes/distil_stories.py stories --from story-later -o story-model \\
        --steps 1580 --skip 19000

A story shows one token after each; the teacher that wrote it had a chance for every token. Where one of our tokens and
one of the teacher's end at the same letter, our model learns those chances; everywhere else, and at a story's
beginning, which may have been given to the teacher, it learns the story as it stands. The vocabularies differ: the
teacher says how likely the first piece of the next token is, the story which of the tokens that begin so it was. On
two cores two processes did about 1,000 tokens a second, one with two threads 920. Ctrl-C ends it early and saves.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import random
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.distributed as together
import torch.nn.functional as F
from graft_stories import BEGIN, Stories, pieces, stream
from sample_stories import Teacher, teacher_files
from torch import Tensor

import cutaway
from cutaway.models.gpt2.model import GPT
from cutaway.tasks import Language
from cutaway.train.learner import prepare_blocks
from cutaway.train.optimizer import clip, make_optimizer, set_learning_rate
from cutaway.train.recipe import Recipe, Train
from cutaway.train.start import prepare_data

STEPS, RATE = 900, 3e-4
LIKELIEST, WARMTH, NUCLEUS = 128, 0.95, 0.975
"""How sample_stories.py chose: among so many, at a temperature of 0.8 to 1.1, of so much probability."""
TAUGHT = 0.85
"""How much of what is learned of a word comes from the teacher's chances; the rest from the word itself."""
OPENING = 24
"""So many tokens of a story may have been given to the teacher: what it thinks of them is not how they came about."""
BEARINGS = 16
"""So many tokens after a cut through a story the teacher is not asked: it has not seen what came before."""


@dataclass(frozen=True)
class Lesson:
    """Windows of stories, and where the teacher can be asked about them."""

    inputs: Tensor
    targets: Tensor  # both [row, place]
    texts: list[list[int]]  # in the teacher's tokens
    where: Tensor  # which place of all the rows' places,
    text: Tensor  # which text,
    at: Tensor  # and which token of it ends there. Each [meeting]
    told: Tensor  # whether the teacher's chances are for what comes next


class Windows:
    """Stories end to end, cut into windows; now and then one begins with a story but without its end token."""

    def __init__(
        self,
        teacher: Teacher,
        tokenizer: cutaway.Tokenizer,
        data: Any,
        length: int,
        rank: int = 0,
        world: int = 1,
        skip: int = 0,
    ):
        self.stories = Stories(teacher, tokenizer, data, 11)
        self.order, self.next_story, self.world = self.stories.order, skip + rank, world
        self.length, self.end, self.left = length, tokenizer.end, list[int]()
        self.dice = random.Random(rank)
        known = [[BEGIN] if t == self.end else pieces(teacher, tokenizer.token_bytes(t)) for t in range(len(tokenizer))]
        self.firsts, group = np.unique([one[0] for one in known], return_inverse=True)
        self.group = torch.from_numpy(group)
        """Of each of our tokens: which of `firsts` the teacher would begin it with."""
        self.bytes = np.array([len(tokenizer.token_bytes(t)) if t != self.end else 0 for t in range(len(tokenizer))])

    def window(self, may_jump: bool = True) -> list[int]:
        while len(self.left) <= self.length:
            self.left += self.stories.data.train[self.order[self.next_story % len(self.order)]].tolist()
            self.next_story += self.world
        found, self.left = self.left[: self.length + 1], self.left[self.length :]
        if may_jump and self.end in found[: -self.length // 8] and self.dice.random() < 0.2:
            self.left = found[found.index(self.end) + 1 :] + self.left[1:]
            return self.window(may_jump=False)
        return found

    def lesson(self, rows: int) -> Lesson:
        both = np.array([self.window() for _ in range(rows)])
        inputs, targets = both[:, :-1], both[:, 1:]
        texts, meetings = [], []
        for row in range(rows):
            cuts = [-1, *np.nonzero(inputs[row] == self.end)[0].tolist(), self.length]
            for start, stop in pairwise(cuts):
                if stop - start > BEARINGS:
                    text, found = self.meet(inputs[row], targets[row], start, stop)
                    found[0] += row * self.length
                    meetings.append([*found[:1], np.full(len(found[0]), len(texts)), *found[1:]])
                    texts.append(text)
        where, text_of, at, told = (torch.from_numpy(np.concatenate(column)) for column in zip(*meetings, strict=True))
        return Lesson(torch.tensor(inputs), torch.tensor(targets), texts, where, text_of, at, told.bool())

    def meet(self, inputs: Any, targets: Any, start: int, stop: int) -> tuple[list[int], list[Any]]:
        """A story after the end token at `start` (-1: it is cut off there), in the teacher's tokens; and where both
        have a token that ends: the places, the teacher's token, and whether what it says next is how ours begins."""
        teacher, ids = self.stories.teacher, inputs[start + 1 : stop]
        text = self.stories.tokenizer.decode(ids.tolist())
        space = not text.startswith(" ")  # the teacher's texts begin with one
        theirs = self.stories.teachers(text if space else text[1:])[: teacher.context]
        ends = np.cumsum([1 if token < 259 else len(teacher.pieces[token]) for token in theirs[1:]])
        ours = space + np.cumsum(self.bytes[ids])
        at = np.searchsorted(ends, ours)
        met = ends[np.minimum(at, len(ends) - 1)] == ours
        met[: 1 if start >= 0 else BEARINGS] = False
        places, at = start + 1 + np.nonzero(met)[0], at[met] + 1
        after = np.array([*theirs, -1])[at + 1]  # -1: the text ends here
        told = np.where(after < 0, targets[places] == self.end, after == self.firsts[self.group[targets[places]]])
        return theirs, [places, at, told & ((start < 0) | (places - start > OPENING))]


def ask(teacher: Teacher, lesson: Lesson) -> Tensor:
    """The vectors from which the teacher chooses, after its last norm, wherever it tells us something. [told, width]"""
    text, at = lesson.text[lesson.told], lesson.at[lesson.told]
    found = torch.empty(len(at), teacher.dim)
    lengths = torch.tensor([len(one) for one in lesson.texts])
    for some in lengths.argsort().split(10):  # texts of about the same length
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(lesson.texts[one]) for one in some], batch_first=True)
        row_of = torch.full((len(lesson.texts),), -1)
        row_of[some] = torch.arange(len(some))
        here = (row_of[text] >= 0).nonzero()[:, 0]
        *_, (_, _, last) = stream(teacher, ids)
        found[here] = last[row_of[text[here]], at[here]]
    return F.rms_norm(found, (teacher.dim,), teacher.norm, 1e-5)


def chances(vectors: Tensor, outputs: Tensor) -> Tensor:
    """How the teacher chose, from its last vectors [meeting, width]; a column for each of `outputs` [first, width]."""
    scores, which = (vectors @ outputs.T).topk(min(LIKELIEST, len(outputs)))
    likely = (scores / WARMTH).softmax(1)
    likely *= (likely.cumsum(1) - likely) < NUCLEUS
    return vectors.new_zeros(len(vectors), len(outputs)).scatter_(1, which, likely / likely.sum(1, keepdim=True))


class Words(torch.autograd.Function):
    """The mean loss of the next tokens, and both gradients, a piece at a time.

    Tokens that the teacher would begin alike are a group. With p our chance of a token, P of its group and T the
    teacher's of that group, the gradient to a token's score is p - T p / P; in the group that came it is p / P more,
    less one for the token that came. The group is learned from the teacher, the token within it from the story.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, hidden: Tensor, matrix: Tensor, targets: Tensor, asked: Tensor, told: Tensor, windows: Windows,
        outputs: Tensor,
    ) -> Tensor:  # fmt: skip
        group, count = windows.group, len(hidden)
        to_hidden, to_matrix, total = torch.empty_like(hidden), torch.zeros_like(matrix), 0.0
        meeting = torch.full((count,), -1)
        meeting[asked] = torch.arange(len(asked))
        for start in range(0, count, 512):
            piece, target = hidden[start : start + 512], targets[start : start + 512]
            logs = (piece @ matrix.T).log_softmax(1)
            total -= float(logs.gather(1, target[:, None]).sum())
            ours = logs.exp_()
            errors = ours.clone()
            errors[torch.arange(len(target)), target] -= 1
            row = (meeting[start : start + 512] >= 0).nonzero()[:, 0]
            if len(row):
                ours, came, each = ours[row], target[row], torch.arange(len(row))
                teachers = chances(told[meeting[start : start + 512][row]], outputs)
                grouped = torch.zeros_like(teachers).scatter_add_(1, group.expand(len(row), -1), ours).clamp_(1e-12)
                share = teachers / grouped
                share[each, group[came]] -= 1 / grouped[each, group[came]]
                taught = ours - ours * share[:, group]
                taught[each, came] -= 1
                errors[row] = torch.lerp(errors[row], taught, TAUGHT)
            errors /= count
            to_hidden[start : start + 512] = errors @ matrix
            to_matrix.addmm_(errors.T, piece)
        ctx.save_for_backward(to_hidden, to_matrix)
        return hidden.new_tensor(total / count)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override]
        to_hidden, to_matrix = ctx.saved_tensors
        return to_hidden * gradient, to_matrix * gradient, None, None, None, None, None


def learn(teacher: Teacher, gpt: GPT, windows: Windows, rows: int, outputs: Tensor) -> float:
    """One lesson: leaves its gradients, and gives the mean loss of the words."""
    lesson = windows.lesson(rows)
    words: Tensor = Words.apply(
        gpt.read(lesson.inputs).flatten(0, 1), gpt.token_embedding.weight, lesson.targets.flatten(),
        lesson.where[lesson.told], ask(teacher, lesson), windows, outputs,
    )  # fmt: skip
    words.backward()
    return float(words.detach())


def rate(step: int, steps: int) -> float:
    """Up within twenty steps, and down to a fiftieth at the end."""
    return RATE * min(1, step / 20) * (1 - 0.98 * step / steps)


def distil(
    teacher: Teacher,
    lm: cutaway.LanguageModel,
    folder: str,
    steps: int,
    rows: int,
    rank: int = 0,
    world: int = 1,
    skip: int = 0,
) -> None:
    """Teach the model for so many steps of `rows` windows, beginning after `skip` stories; Ctrl-C ends it early."""
    gpt, tokenizer = lm.model.train().requires_grad_(), lm.tokenizer
    recipe = Recipe.from_dict({"data": {"paths": [folder], "held_out": 400}})
    data = prepare_data(recipe, Language(), tokenizer, lambda _: None)
    windows = Windows(teacher, tokenizer, data, gpt.config.context, rank, world, skip)
    outputs = teacher.embedding[torch.from_numpy(windows.firsts)]
    prepare_blocks(gpt, compiled=False, recompute=False)
    optimizer = make_optimizer(gpt, Train(steps=steps, optimizer="muon", weight_decay=0.01))
    parameters, begun = list(gpt.parameters()), time.monotonic()
    try:
        for step in range(1, steps + 1):
            words = learn(teacher, gpt, windows, rows // world, outputs)
            if world > 1:
                share_gradients(parameters)
            set_learning_rate(optimizer, rate(step, steps))
            clip(parameters, 5.0)
            optimizer.step()
            optimizer.zero_grad()
            if step % 20 == 0 and rank == 0:
                left = math.ceil((time.monotonic() - begun) / step * (steps - step) / 60)
                print(f"{step}/{steps}: loss {words:.3f}, {left} min left", flush=True)
    except KeyboardInterrupt:
        print("Stopped; what has been learned is saved.")


def share_gradients(parameters: list[torch.nn.Parameter]) -> None:
    """Every process goes on with the mean of all."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    together.all_reduce(flat)
    flat /= together.get_world_size()
    for gradient, mean in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", help="folder of stories, as sample_stories.py writes them")
    parser.add_argument("--from", dest="start", default="story-middle", help="the model to begin with")
    parser.add_argument("-o", "--out", required=True, help="folder for the model")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--skip", type=int, default=0, help="stories to begin after: those an earlier lesson was about")
    parser.add_argument("--rows", type=int, default=8, help="windows in a step, of all processes together")
    parser.add_argument("--teacher", default="~/.cache/stories15M", help="where the teacher is kept")
    given = parser.parse_args()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if given.rows % world:
        parser.error(f"{given.rows} rows cannot be shared evenly by {world} processes")
    if world > 1:
        torch.set_num_threads(1)
        together.init_process_group("gloo")
    teacher = Teacher(teacher_files(pathlib.Path(given.teacher).expanduser()), 1)
    lm = cutaway.load(given.start)
    distil(teacher, lm, given.stories, given.steps, given.rows, rank, world, given.skip)
    if rank == 0:
        lm.save(given.out)


if __name__ == "__main__":
    main()
