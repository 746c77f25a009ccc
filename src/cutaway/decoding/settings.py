"""What a text is written by: how each token is chosen, how much is written and where it stops."""

from __future__ import annotations

from dataclasses import dataclass

from cutaway.decoding.sampling import Sampling, require
from cutaway.errors import CutawayError


@dataclass(frozen=True)
class Settings(Sampling):
    """How to choose each token (see Sampling), and how much to write."""

    max_tokens: int | None = None
    """Stop after this many; None writes until the end token or the end of the context."""
    stop: tuple[str, ...] = ()
    """Stop as soon as one of these stands in the text; it is left out of the text."""
    seed: int | None = None
    """The same seed gives the same text; None takes a new one, which the result names."""
    samples: int | None = None
    """How many texts to write for each prompt."""
    overflow: str = "stop"
    """At the end of the context: 'stop', or 'slide', which forgets the oldest quarter and goes on."""
    beams: int | None = None
    """Search for the likeliest whole text, keeping this many, instead of drawing tokens (see beams.py)."""
    length_penalty: float = 1.0
    """Beams only: a text's score is its log-probability divided by its length to this power."""
    best: int | None = None
    """Beams only: how many of the texts found to give back."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_numbers("max_tokens", "seed", "samples", "beams", "best", whole=True, optional=True)
        self.check_numbers("length_penalty")
        given: object = self.stop
        stop = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else (given,)
        require("stop strings", repr(given), all(isinstance(one, str) for one in stop), "a text or a list of texts")
        object.__setattr__(self, "stop", stop)
        require("number of new tokens", self.max_tokens, self.max_tokens is None or self.max_tokens >= 0, "0 or more")
        require("number of samples", self.samples, self.samples is None or self.samples >= 1, "1 or more")
        require("number of beams", self.beams, self.beams is None or self.beams >= 1, "1 or more")
        require("seed", self.seed, self.seed is None or self.seed >= 0, "0 or more")
        require("overflow rule", self.overflow, self.overflow in ("stop", "slide"), "'stop' or 'slide'")
        require("stop string", repr(""), "" not in self.stop, "at least one character")
        require(
            "number of best",
            self.best,
            self.best is None or 1 <= self.best <= (self.beams or 0),
            "between 1 and the number of beams",
        )
        if self.beams and (self.samples or self.overflow == "slide"):
            raise CutawayError(
                "Beam search gives the best of one search: it takes neither samples nor a sliding window."
            )
