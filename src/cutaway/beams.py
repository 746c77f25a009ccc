"""Beam search: keep the few likeliest texts so far, extend each by every token, and keep the few likeliest again.

The rules are those of transformers' `generate(num_beams=...)`: a text's score is its log-probability over its length to
the power of the length penalty; twice as many candidates as beams are looked at, so that enough unended ones remain;
the search stops when as many texts have ended as there are beams and no open one can be expected to overtake the worst
of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from cutaway.errors import CutawayError
from cutaway.generate import Gate, Machine, Result, Settings
from cutaway.reading import open_batch
from cutaway.sampling import adjust

if TYPE_CHECKING:
    from cutaway.tokenizer import Tokenizer


@dataclass(frozen=True)
class Beam:
    """A text so far: its new ids, the model's log-probability of each, and their sum after bias and penalties."""

    ids: list[int]
    logprobs: list[float]
    total: float
    reason: str = ""

    def score(self, length_penalty: float) -> float:
        return self.total / max(1, len(self.ids)) ** length_penalty


@torch.inference_mode()
def search(model: Machine, tokenizer: Tokenizer, prompt: list[int], how: Settings) -> list[Result]:
    """The best texts found for one prompt, best first; as many as `how.best` asks for (one, if it is silent)."""
    config, width = model.config, how.beams or 1
    window = prompt or [config.end]
    if len(window) > config.context:
        raise CutawayError(
            f"The prompt is {len(window):,} tokens long and this model looks at {config.context:,}. Shorten it."
        )
    room = config.context - len(window)
    longest = room if how.max_tokens is None else min(room, how.max_tokens)
    open_beams, ended = [Beam([], [], 0.0)], list[Beam]()
    batch = open_batch(model)
    logits = batch.begin([window], room=len(window) + longest) if longest else torch.empty(0)

    for length in range(1, longest + 1):
        candidates, parents = extend(logits.float(), prompt or [config.end], open_beams, how)
        candidates = [mark_end(beam, length == longest, model, tokenizer, how) for beam in candidates]
        ended += [beam for beam in candidates[:width] if beam.reason]
        ended = sorted(ended, key=lambda beam: -beam.score(how.length_penalty))[:width]
        going_on = [(beam, parent) for beam, parent in zip(candidates, parents, strict=True) if not beam.reason][:width]
        open_beams = [beam for beam, _ in going_on]
        if not open_beams or settled(open_beams[0], ended, width, how.length_penalty):
            break
        batch.keep([parent for _, parent in going_on])
        logits = batch.step([beam.ids[-1] for beam in open_beams])

    found = ended or [Beam([], [], 0.0, "length")]
    return [finish(beam, prompt, model, tokenizer, how) for beam in found[: how.best or 1]]


def extend(logits: torch.Tensor, prompt: list[int], beams: list[Beam], how: Settings) -> tuple[list[Beam], list[int]]:
    """The likeliest one-token extensions of all beams [beam, vocabulary], best first, and the beam each comes from."""
    plain = logits.log_softmax(dim=-1)
    totals = adjust(plain, how, [prompt] * len(beams), [beam.ids for beam in beams])
    totals = totals + torch.tensor([beam.total for beam in beams], device=totals.device)[:, None]
    best = totals.flatten().topk(min(2 * (how.beams or 1), totals.numel()))
    candidates, parents = [], []
    for total, at in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        parent, token = divmod(at, logits.shape[-1])
        beam = beams[parent]
        candidates.append(Beam([*beam.ids, token], [*beam.logprobs, float(plain[parent, token])], total))
        parents.append(parent)
    return candidates, parents


def mark_end(beam: Beam, last: bool, model: Machine, tokenizer: Tokenizer, how: Settings) -> Beam:
    """The beam, with the reason for its end if its newest token ends it."""
    reason = "length" if last else ""
    if how.stop and any(stop in tokenizer.decode(beam.ids) for stop in how.stop):
        reason = "stop"
    if beam.ids[-1] == model.config.end:
        reason = "end"
    return Beam(beam.ids, beam.logprobs, beam.total, reason) if reason else beam


def settled(best_open: Beam, ended: list[Beam], width: int, length_penalty: float) -> bool:
    """Whether the search is over: enough texts have ended, and the best open one is behind the worst of them."""
    return len(ended) == width and best_open.score(length_penalty) <= ended[-1].score(length_penalty)


def finish(beam: Beam, prompt: list[int], model: Machine, tokenizer: Tokenizer, how: Settings) -> Result:
    gate = Gate(tokenizer, how.stop)
    ids = beam.ids[:-1] if beam.reason == "end" else beam.ids
    for token in ids:
        gate.add(token)
    gate.finish()
    full = how.max_tokens is None or len(ids) < how.max_tokens
    why = {
        "end": "The model wrote its end token.",
        "stop": f"The stop string {gate.found!r} came up.",
        "length": f"The context of {model.config.context:,} tokens is full."
        if full
        else f"It has the {how.max_tokens:,} tokens that were asked for.",
    }[beam.reason]
    return Result(
        text=gate.text, ids=ids, reason=beam.reason, why=why, logprobs=beam.logprobs[: len(ids)], prompt_ids=prompt,
        score=beam.score(how.length_penalty),
    )  # fmt: skip
