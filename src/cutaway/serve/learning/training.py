"""A small GPT-2 that learns one text, a step when it is asked to, and remembers its weights after every step.

The pieces are those of every training: the model, the task's batch and loss, the optimizer with its schedule and its
clipping. What a step showed is computed again from the weights before it, to the bit: one thread, no dropout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from cutaway.decoding.generate import generate
from cutaway.decoding.settings import Settings
from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, rounded, token
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.torch_batch import torch_runtime
from cutaway.tasks.sequences import Language
from cutaway.tasks.task import Batch
from cutaway.text.tokenizer import Tokenizer
from cutaway.train.learner import Learner
from cutaway.train.optimizer import clip, learning_rate, make_optimizer, set_learning_rate
from cutaway.train.recipe import Train

LAYERS, WIDTH, HEADS = 2, 64, 4
VOCABULARY = 512
"""At most so many tokens are learned from the text: its bytes, and the pieces that repeat."""
WINDOW = 32
"""So many tokens are read at once; it is the model's context."""
ROWS = 16
"""So many windows make a step."""
STEPS = 400
MEMORY = 256 << 20
"""Bytes for the weights after every step: a larger model would have fewer steps."""
SHORTEST = 16
"""Tokens that a text must have to be worth a window."""
LONGEST = 20_000
"""Characters."""
SHOWN = 8
"""So many tokens of a distribution are told, besides the one wanted."""
BEGINNING = 3
"""A sample goes on from so many tokens of the text's beginning."""


def too_short(tokens: int) -> CutawayError:
    return CutawayError(
        f"The text has {tokens} tokens, and there must be {SHORTEST} for a window to slide over. Write a few sentences.",
        "learn_short",
        tokens=tokens,
        least=SHORTEST,
    )


class Training:
    """One training. `done` steps were taken; `kept[n]` are all weights after n of them, `kept[0]` the random ones."""

    def __init__(self, text: str, seed: int = 0, steps: int = STEPS, memory: int = MEMORY):
        if len(text) > LONGEST:
            raise CutawayError(
                f"The text has {len(text):,} characters, and {LONGEST:,} can be learned here. Take a part of it.",
                "learn_long",
                most=LONGEST,
            )
        if not text.strip():
            raise too_short(0)
        self.tokenizer = Tokenizer.train([text], VOCABULARY)
        self.task, self.seed = Language(), seed
        self.ids = np.asarray(self.task.examples({"text": text}, self.tokenizer)[0].ids)
        if len(self.ids) <= SHORTEST:
            raise too_short(len(self.ids) - 1)
        self.length = min(WINDOW, len(self.ids) - 1)
        torch.manual_seed(seed)
        self.model = GPT(Config(len(self.tokenizer), WINDOW, WIDTH, LAYERS, HEADS, end_token=self.tokenizer.end))
        self.names = {name: one.shape for name, one in self.model.named_parameters()}
        size = sum(one.numel() for one in self.model.parameters())
        self.steps = max(1, min(steps, memory // (4 * size) - 1))
        self.settings = Train(steps=self.steps, batch=ROWS, length=self.length, learning_rate=1.5e-3, warm_up=10)
        self.learner = Learner(self.model.train(), self.task)
        self.optimizer = make_optimizer(self.learner, self.settings)
        self.kept: Array = np.empty((self.steps + 1, size), np.float32)  # the system gives memory as it is written
        self.done = 0
        self.curve: list[dict[str, float]] = []
        self.kept[0] = self.weights_now()
        self.shown = GPT(self.model.config).eval()
        """Another one, to look at any step's weights with."""

    # --- a step

    def starts(self, step: int) -> list[int]:
        """Where the windows of a step begin, drawn by a generator of its own: any step can be looked at again."""
        drawn = np.random.default_rng([self.seed, step]).integers(0, len(self.ids) - self.length, ROWS)
        found: list[int] = drawn.tolist()
        return found

    def batch(self, step: int) -> Batch:
        """The windows of a step: what is read, and what is wanted after each token of it."""
        windows = [{"ids": self.ids[start : start + self.length + 1]} for start in self.starts(step)]
        return self.task.collate(windows)

    def step(self) -> None:
        """Up, back, and one update of every weight."""
        number, batch = self.done + 1, self.batch(self.done + 1)
        rate = learning_rate(number, self.settings)
        set_learning_rate(self.optimizer, rate)
        loss, _ = self.learner(batch.tensors, 1 / batch.count)
        loss.backward()
        norm = clip(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.kept[number] = self.weights_now()
        self.curve.append({"step": number, "loss": loss.item(), "rate": rate, "norm": norm})
        self.done = number

    def advance(self, to: int) -> None:
        while self.done < min(to, self.steps):
            self.step()

    def weights_now(self) -> Array:
        with torch.no_grad():
            flat: Array = torch.cat([one.reshape(-1) for one in self.model.parameters()]).numpy()
        return flat

    # --- looking

    def at(self, step: int) -> GPT:
        """The model as it was after a step, to be looked at."""
        if not 0 <= step <= self.done:
            raise CutawayError(f"There is no step {step}: {self.done} were taken.")
        torch.nn.utils.vector_to_parameters(torch.from_numpy(self.kept[step]), self.shown.parameters())
        return self.shown

    def about(self) -> dict[str, Any]:
        """What does not change: the text in tokens, the shape, and how far it can go."""
        config = self.model.config
        return {
            "tokens": [token(self.tokenizer, int(one)).to_dict() for one in self.ids],
            "shape": {"layers": config.layers, "heads": config.heads, "width": config.width,
                      "vocabulary": config.vocabulary, "context": config.context},
            "parameters": self.kept.shape[1], "steps": self.steps, "length": self.length, "rows": ROWS,
            "memory": self.kept.nbytes,
            "matrices": [{"name": name, "shape": list(shape)} for name, shape in self.names.items() if len(shape) > 1],
        }  # fmt: skip

    def show(self, step: int, row: int = 0, position: int = 0) -> dict[str, Any]:
        """One step: where its windows lay, and what one position of one of them was taught.

        Before the first step: what its windows will be, and what the random model says of them.
        """
        number = max(1, step)
        batch = self.batch(number)
        inputs, targets = batch.tensors["inputs"][row : row + 1], batch.tensors["targets"][row]
        logs = {at: self.log_chances(at, inputs) for at in {0, number - 1, step}}
        before, wanted = logs[number - 1], int(targets[position])
        chances = before[position].exp()
        best = chances.topk(min(SHOWN, len(chances))).indices.tolist()
        named = best if wanted in best else [*best[:-1], wanted]
        losses = -before.gather(1, targets[:, None])[:, 0]
        random, after = logs[0][position].exp(), logs[step][position].exp()
        return {
            "step": step,
            "done": self.done,
            "starts": self.starts(number),
            "losses": rounded(losses.numpy()),
            "wanted": token(self.tokenizer, wanted).to_dict(),
            "loss": rounded(losses[position].item()),
            "rows": [
                {
                    "token": token(self.tokenizer, one).to_dict(),
                    "predicted": rounded(chances[one].item()),
                    "wanted": float(one == wanted),
                    "error": rounded(chances[one].item() - (one == wanted)),
                    "after": rounded(after[one].item()),
                    "random": rounded(random[one].item()),
                }
                for one in named
            ],
        }

    @torch.no_grad()
    def log_chances(self, step: int, inputs: Tensor) -> Tensor:
        """The logarithm of what is predicted after each token of one row: [token, vocabulary]."""
        return self.at(step)(inputs)[0].log_softmax(-1)

    def sample(self, step: int) -> list[dict[str, Any]]:
        """What the model writes after a step: the text's first tokens, and what it makes of them, with one luck."""
        given = self.ids[1 : 1 + BEGINNING].tolist()
        without_end = {self.tokenizer.end: -float("inf")}
        settings = Settings(max_tokens=WINDOW - len(given), temperature=0.8, seed=1, logit_bias=without_end)
        with torch.no_grad():
            [found] = generate(torch_runtime(self.at(step)), self.tokenizer, [given], settings)
        return [token(self.tokenizer, one).to_dict() for one in [*given, *found.ids]]

    def matrix(self, step: int, name: str, kind: str = "value") -> Array:
        """One matrix after a step: its values, what has changed since the random ones, the last update, or the gradient
        that was followed."""
        if kind == "gradient":
            return self.gradient(step)[name]
        now = self.part(step, name)
        since = {"value": None, "change": 0, "update": max(0, step - 1)}[kind]
        return now if since is None else now - self.part(since, name)

    def part(self, step: int, name: str) -> Array:
        if name not in self.names or len(self.names[name]) < 2:
            raise CutawayError(f"There is no matrix {name} in this model.")
        if not 0 <= step <= self.done:
            raise CutawayError(f"There is no step {step}: {self.done} were taken.")
        sizes = [shape.numel() for shape in self.names.values()]
        at = list(self.names).index(name)
        start = sum(sizes[:at])
        return self.kept[step, start : start + sizes[at]].reshape(self.names[name])

    def gradient(self, step: int) -> dict[str, Array]:
        """The gradient of the step's loss, as long as the optimizer got it; before the first step, the coming one's."""
        number = max(1, step)
        model, batch = self.at(number - 1), self.batch(number)
        loss, _ = Learner(model, self.task)(batch.tensors, 1 / batch.count)
        loss.backward()
        clip(model.parameters(), self.settings.clip)
        found = {name: one.grad.numpy() for name, one in model.named_parameters() if one.grad is not None}
        model.zero_grad()
        return found

    def cell(self, step: int, name: str, row: int, column: int) -> dict[str, Any]:
        """One weight in one step: what it was, the gradient there, by how much it was moved, and what it became."""
        now, before = self.part(step, name), self.part(max(0, step - 1), name)
        if not (0 <= row < now.shape[0] and 0 <= column < now.shape[1]):
            raise CutawayError(f"There is no cell {row}, {column} in {name}.")
        return {
            "random": rounded(float(self.part(0, name)[row, column])),
            "before": rounded(float(before[row, column])),
            "gradient": rounded(float(self.gradient(step)[name][row, column])),
            "rate": rounded(learning_rate(max(1, step), self.settings)),
            "update": rounded(float(now[row, column] - before[row, column])),
            "after": rounded(float(now[row, column])),
        }  # fmt: skip
