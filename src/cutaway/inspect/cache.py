"""What the cache saves: for each token written, what was computed, what was found, and the cost without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cutaway.decoding.sequence import Result
from cutaway.inspect.generation import Step, watch
from cutaway.inspect.numbers import Token, ViewResult, token
from cutaway.inspect.runs import check
from cutaway.models.gpt2.shape import Config

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt


@dataclass(frozen=True)
class CacheStep(ViewResult):
    """One token written: how many tokens went through the model for it, and how many only had to be looked up."""

    step: int
    token: Token | None
    """The token that was chosen; None where the text ended instead."""
    read: int
    reused: int
    bytes_written: int
    bytes_reused: int
    multiplications: int
    without: int
    """The multiplications it would have taken to read the whole text again."""


@dataclass(frozen=True)
class Total(ViewResult):
    """All steps together."""

    multiplications: int
    without: int
    bytes: int
    """What the cache held in the end."""


@dataclass(frozen=True)
class CacheSteps(ViewResult):
    """A generation, step by step, with what each computed and what it reused."""

    model: str
    prompt: tuple[Token, ...]
    text: str
    per_token_bytes: int
    """What one token takes in the cache: a key and a value for every layer."""
    steps: tuple[CacheStep, ...]
    told = ("total",)

    @property
    def multiplications(self) -> int:
        return sum(step.multiplications for step in self.steps)

    @property
    def without(self) -> int:
        return sum(step.without for step in self.steps)

    @property
    def total(self) -> Total:
        held = max((step.bytes_reused + step.bytes_written for step in self.steps), default=0)
        return Total(self.multiplications, self.without, held)


def multiplications(config: Config, read: int, reused: int = 0) -> int:
    """How many numbers are multiplied in the matrix products that read so many tokens and score the next one.

    Attention is counted as its table is drawn: every new token against every token, masked or not. Norms, softmax and
    the non-linearity are no matrix products and are left out.
    """
    width = config.width
    queries_keys_values, projection = 3 * width * width, width * width
    scores_and_sum = 2 * (read + reused) * width
    mlp = 2 * width * config.mlp_width
    return read * config.layers * (queries_keys_values + projection + scores_and_sum + mlp) + width * config.vocabulary


def cache(lm: LanguageModel, prompt: Prompt, max_tokens: int = 20, **settings: Any) -> CacheSteps:
    """Let the model write, and count what each step computed and what it found in the cache."""
    ids = lm.ids(prompt)
    check(lm, ids)
    return counted(lm, ids, *watch(lm, ids, max_tokens, [], (), settings))


def counted(lm: LanguageModel, prompt: Sequence[int], result: Result, steps: Sequence[Step]) -> CacheSteps:
    """What each step of a writing that was watched computed and found."""
    chosen: list[int | None] = [*result.ids, None]
    return CacheSteps(
        lm.name,
        tuple(token(lm.tokenizer, one) for one in prompt),
        result.text,
        per_token_bytes(lm),
        tuple(
            CacheStep(
                step=number,
                token=None if (new := chosen[number]) is None else token(lm.tokenizer, new),
                read=step.read,
                reused=step.reused,
                bytes_written=step.bytes_after - step.bytes_before,
                bytes_reused=step.bytes_before,
                multiplications=multiplications(lm.config, step.read, step.reused),
                without=multiplications(lm.config, step.read + step.reused),
            )
            for number, step in enumerate(steps)
        ),
    )


def per_token_bytes(lm: LanguageModel) -> int:
    return 2 * lm.config.layers * lm.config.width * lm.model.token_embedding.weight.element_size()
