"""The whole search tree of a beam search: every candidate that was looked at, kept or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cutaway.codec import Codec
from cutaway.decoding.beams import Beam, Search, begin, results, run_searches
from cutaway.decoding.sequence import Result
from cutaway.decoding.settings import Settings
from cutaway.inspect.numbers import Token, ViewResult, token
from cutaway.inspect.runs import check
from cutaway.runtime.torch_batch import torch_runtime
from cutaway.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt


@dataclass(frozen=True)
class Node(ViewResult):
    """A text that was looked at, by its newest token and the node it continues."""

    id: int
    parent: int | None
    depth: int
    token: Token | None
    """None at the root, which is the prompt."""
    logprob: float
    """The model's log-probability of the token."""
    total: float
    """The sum along the way, after bias and penalties."""
    score: float
    """The total over the length to the power of the length penalty: what texts are compared by."""
    kept: bool
    """Whether the search went on from here, or ended here, rather than dropping it."""
    reason: str = ""
    """Why the text ended here: 'end', 'stop' or 'length'; empty while it goes on."""
    result: int | None = None
    """Its place among the texts found; 0 is the best."""


@dataclass(frozen=True)
class Found(ViewResult):
    """A text that the search found."""

    text: str
    ids: list[int]
    reason: str
    score: float | None
    node: int | None


@dataclass(frozen=True)
class Tree(ViewResult):
    """A beam search from its prompt to its results, in the order of the search."""

    model: str
    prompt: tuple[Token, ...]
    beams: int
    nodes: tuple[Node, ...]
    results: tuple[Result, ...]
    told = ("results=found",)

    @property
    def found(self) -> tuple[Found, ...]:
        """The results, each with its node."""
        nodes = {node.result: node.id for node in self.nodes if node.result is not None}
        return tuple(
            Found(one.text, one.ids, one.reason, one.score, nodes.get(place)) for place, one in enumerate(self.results)
        )


class Recorded(Search):
    """A search that remembers every candidate it was given."""

    def __init__(self, plain: Search):
        super().__init__(plain.prompt, plain.limits, plain.longest)
        self.nodes = [Node(0, None, 0, None, 0.0, 0.0, 0.0, kept=True)]
        self.found: dict[tuple[int, ...], int] = {(): 0}  # the new ids of a text -> its node

    def go_on(self, candidates: list[Beam], codec: Codec[str], settings: Settings) -> None:
        super().go_on(candidates, codec, settings)
        assert isinstance(codec, Tokenizer)
        kept = {tuple(beam.ids) for beam in (*self.open, *self.ended)}
        for beam in candidates:
            beam = self.mark_end(beam, codec, settings)
            *before, newest = beam.ids
            node = Node(
                len(self.nodes), self.found[tuple(before)], len(beam.ids), token(codec, newest), beam.logprobs[-1],
                beam.total, beam.score(settings.length_penalty), tuple(beam.ids) in kept, beam.reason,
            )  # fmt: skip
            self.found[tuple(beam.ids)] = node.id
            self.nodes.append(node)


def tree(lm: LanguageModel, prompt: Prompt, beams: int = 3, max_tokens: int = 10, **settings: Any) -> Tree:
    """Search as `lm.generate(prompt, beams=...)` does, and keep every candidate it looked at."""
    ids = lm.ids(prompt)
    check(lm, ids)
    chosen = lm.settings({"best": beams, **settings, "beams": beams}, max_tokens)
    runtime = torch_runtime(lm.model)
    search = Recorded(begin(ids, runtime.config, chosen))
    if search.longest:
        run_searches(runtime, lm.tokenizer, [search], chosen)
    nodes = search.nodes
    for place, beam in enumerate(search.ended[: chosen.best]):
        at = search.found[tuple(beam.ids)]
        nodes[at] = replace(nodes[at], result=place)
    found = results(search, lm.tokenizer, chosen)
    return Tree(lm.name, tuple(token(lm.tokenizer, one) for one in ids), beams, tuple(nodes), tuple(found))
