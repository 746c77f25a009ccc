"""What a sweep measures: one number made from the logits, such as the lead of one token over another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import token
from cutaway.inspect.runs import token_id
from cutaway.parts.trace import within

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel


@dataclass(frozen=True)
class Metric:
    """One number from the logits [vocabulary] after one token (-1 is the last), or of all of them [token, vocabulary]
    where the position is None: then every token is scored, in every cell of a sweep.
    """

    position: int | None = field(default=-1, kw_only=True)

    def of(self, logits: Tensor) -> Any:
        """The number."""
        raise NotImplementedError

    def size(self, logits: Tensor, value: float) -> float:
        """How large the numbers are that this value is made of, which says how much of it may be rounding."""
        return abs(value)

    def measured_from(self, clean: Tensor) -> Metric:
        """The same for these logits of the clean run, where it is measured from them."""
        return self

    def describe(self, lm: LanguageModel) -> str:
        """What it is, for the title of a picture."""
        raise NotImplementedError


@dataclass(frozen=True)
class LogitDifference(Metric):
    """The logit of one token less that of another: by how much " ball" leads over " hat"."""

    token: int | str
    against: int | str

    def of(self, logits: Tensor) -> Any:
        return _entry(logits, self.token) - _entry(logits, self.against)

    def size(self, logits: Tensor, value: float) -> float:
        return max(abs(float(_entry(logits, one))) for one in (self.token, self.against))

    def describe(self, lm: LanguageModel) -> str:
        return f"the logit of {_shown(lm, self.token)} less that of {_shown(lm, self.against)}"


@dataclass(frozen=True)
class Probability(Metric):
    """How likely a token is as the next one."""

    token: int | str

    def of(self, logits: Tensor) -> Any:
        return _entry(logits.softmax(-1), self.token)

    def describe(self, lm: LanguageModel) -> str:
        return f"the probability of {_shown(lm, self.token)}"


@dataclass(frozen=True)
class Loss(Metric):
    """How much a token surprises as the next one, in nats: minus the logarithm of its probability."""

    token: int | str

    def of(self, logits: Tensor) -> Any:
        return -_entry(logits.log_softmax(-1), self.token)

    def describe(self, lm: LanguageModel) -> str:
        return f"the loss of {_shown(lm, self.token)}"


@dataclass(frozen=True)
class Rank(Metric):
    """The place of a token among all that may come next: 1 is the likeliest. It has no gradient."""

    token: int | str

    def of(self, logits: Tensor) -> Any:
        return 1 + int((logits > _entry(logits, self.token)).sum())

    def describe(self, lm: LanguageModel) -> str:
        return f"the rank of {_shown(lm, self.token)}"


@dataclass(frozen=True)
class KL(Metric):
    """How far the prediction is from the clean run's, in nats: KL(clean || this); 0 for the clean run itself.

    After one token, or with the position None the mean over all of them.
    """

    clean: Tensor | None = field(default=None, kw_only=True, repr=False, compare=False)

    def measured_from(self, clean: Tensor) -> Metric:
        return replace(self, clean=clean.detach().log_softmax(-1))

    def of(self, logits: Tensor) -> Any:
        assert self.clean is not None, "measured_from gives it the clean run"
        return (self.clean.exp() * (self.clean - logits.log_softmax(-1))).sum(-1).mean()

    def describe(self, lm: LanguageModel) -> str:
        return "the divergence (KL) from the clean prediction"


@dataclass(frozen=True)
class Own(Metric):
    """A function of one's own: of the logits [vocabulary] at one position, or, with None, of all [token, vocabulary].

    At one position a sweep is faster: the last block and the scores are computed there only.
    """

    function: Callable[[Tensor], Any]

    def of(self, logits: Tensor) -> Any:
        return self.function(logits)

    def describe(self, lm: LanguageModel) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))


def _entry(values: Tensor, token: int | str) -> Tensor:
    assert not isinstance(token, str), "as_metric looks texts up"
    return values[token]


def _shown(lm: LanguageModel, given: int | str) -> str:
    named = token(lm.tokenizer, token_id(lm, given))
    return repr(named.text) if named.text else f"id:{named.id}"


def as_metric(lm: LanguageModel, given: Metric | Callable[[Tensor], Any], tokens: int) -> Metric:
    """The metric for a text of so many tokens: its tokens as ids, its position counted from 0."""
    if not isinstance(given, Metric):
        if not callable(given):
            raise CutawayError(
                "A metric is LogitDifference(...), Probability(...), Loss(...), Rank(...), KL() or a function of the "
                f"logits, not {given!r:.80}."
            )
        given = Own(given, position=None)
    found: dict[str, Any] = {
        name: token_id(lm, getattr(given, name)) for name in ("token", "against") if hasattr(given, name)
    }
    if given.position is not None:
        found["position"] = within("token", given.position, tokens)
    elif not isinstance(given, Own | KL):
        raise CutawayError(f"{type(given).__name__} needs the logits after one token: name its position.")
    if isinstance(given, LogitDifference) and found["token"] == found["against"]:
        raise CutawayError(
            f"The metric is the lead of {_shown(lm, found['token'])} over itself, which is always 0: name two tokens."
        )
    return replace(given, **found)


def number(value: Any, where: str) -> float:
    """What a metric gave, as a number; refused if it is not one, or not a finite one."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        if math.prod(value.shape) != 1:
            raise CutawayError(
                f"The metric must give a single number, and gave the shape {list(value.shape)}{where}. "
                "Choose one entry of it, or take its mean."
            )
        value = value.item()
    if not isinstance(value, int | float):
        raise CutawayError(f"The metric must give a single number, and gave {value!r:.80}{where}.")
    if not math.isfinite(value):
        raise CutawayError(f"The metric gave {value}{where}: it must be a finite number everywhere.")
    return float(value)
