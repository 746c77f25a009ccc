"""An adapter that lets lm-eval, EleutherAI's evaluation harness, run any of its tasks on our models.

    from cutaway.evaluate.harness import harness_model
    lm_eval.simple_evaluate(model=harness_model(cutaway.load("gpt2")), tasks=["hellaswag"])

The three questions it asks are answered by plain functions, which need no lm-eval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cutaway.errors import CutawayError
from cutaway.evaluate.likelihood import Progress, Row, score
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import context_of
from cutaway.tasks.scores import library

MAX_TOKENS = 256
"""How much is written when a task does not say."""


def loglikelihoods(
    lm: LanguageModel, pairs: Sequence[tuple[str, str]], progress: Progress | None = None
) -> list[tuple[float, bool]]:
    """For each (context, continuation): the continuation's log-probability, and whether it is the model's own choice.

    An empty context is the end token. What does not fit is cut from the beginning of the context.
    """
    rows = [pair_row(lm, context, continuation) for context, continuation in pairs]
    scored = [number for number, row in enumerate(rows) if row is not None]
    found = score(lm.model, [row for row in rows if row is not None], progress=progress)
    answers = [(0.0, True)] * len(rows)  # nothing is certain to follow anything
    for number, scores in zip(scored, found, strict=True):
        answers[number] = float(scores.logprobs.sum()), bool(scores.likeliest.all())
    return answers


def pair_row(lm: LanguageModel, context: str, continuation: str) -> Row | None:
    """Context and continuation as tokens. They are cut as one text; spaces between them go to the continuation."""
    stem = context.rstrip()
    before = lm.tokenizer.encode(stem) if context else [lm.config.end]
    after = lm.tokenizer.encode(context + continuation)[len(before) if context else 0 :]
    if not after:
        return None
    before = before or [lm.config.end]
    longest = context_of(lm.config) + 1
    if len(after) >= longest:
        raise CutawayError(
            f"A continuation of {len(after):,} tokens does not fit a context of {context_of(lm.config):,}."
        )
    before = before[-(longest - len(after)) :]
    return Row([*before, *after], start=len(before))


def rolling_loglikelihoods(lm: LanguageModel, texts: Sequence[str], progress: Progress | None = None) -> list[float]:
    """The log-probability of each whole text after the end token, in windows as lm-eval cuts them."""
    rows, owners = [], []
    for number, text in enumerate(texts):
        for row in rolling_rows([lm.config.end, *lm.tokenizer.encode(text)], context_of(lm.config)):
            rows.append(row)
            owners.append(number)
    sums = [0.0] * len(texts)
    for number, scores in zip(owners, score(lm.model, rows, progress=progress), strict=True):
        sums[number] += float(scores.logprobs.sum())
    return sums


def rolling_rows(ids: list[int], context: int) -> Iterator[Row]:
    """Windows with no overlap, each as long as the model can predict; the last one reaches back as far as it can."""
    scored = 1
    while scored < len(ids):
        end = min(scored + context, len(ids))
        first = max(0, end - context - 1)
        yield Row(ids[first:end], start=scored - first)
        scored = end


def continuations(
    lm: LanguageModel, requests: Sequence[tuple[str, Mapping[str, Any]]], progress: Progress | None = None
) -> list[str]:
    """For each (context, settings): what the model writes up to one of the `until` strings, greedily unless told."""
    alike: dict[str, list[int]] = {}
    for number, (_, settings) in enumerate(requests):
        alike.setdefault(repr(sorted(settings.items())), []).append(number)
    answers = [""] * len(requests)
    done = 0
    for numbers in alike.values():
        ours = generation(requests[numbers[0]][1])
        room = context_of(lm.config) - ours["max_tokens"]
        if room < 1:
            raise CutawayError(
                f"The task asks for {ours['max_tokens']:,} new tokens, and the model's context is "
                f"{context_of(lm.config):,}."
            )
        prompts = [lm.ids(requests[number][0])[-room:] or [lm.config.end] for number in numbers]
        for number, result in zip(numbers, lm.generate(prompts, **ours), strict=True):
            answers[number] = result.text
        done += len(numbers)
        if progress:
            progress(done, len(requests))
    return answers


def generation(settings: Mapping[str, Any]) -> dict[str, Any]:
    """lm-eval's generation settings as ours."""
    until = settings.get("until") or ()
    stop = (until,) if isinstance(until, str) else tuple(one for one in until if one)
    tokens = next(
        (settings[key] for key in ("max_gen_toks", "max_new_tokens", "max_tokens") if key in settings), MAX_TOKENS
    )
    ours: dict[str, Any] = {"stop": stop, "max_tokens": int(tokens)}
    temperature = float(settings.get("temperature") or 0)
    if not settings.get("do_sample", temperature > 0) or not temperature:
        return {**ours, "top_k": 1}
    top_k = settings.get("top_k")
    return {**ours, "temperature": temperature, "top_k": top_k or None, "top_p": settings.get("top_p"), "seed": 0}


def adapter() -> Any:
    """The class of our models in lm-eval: an `lm_eval.api.model.LM`, made of a `LanguageModel`."""
    base = library("lm_eval.api.model", "lm-eval").LM

    class Adapter(base):  # type: ignore[misc, valid-type]
        def __init__(self, lm: LanguageModel, progress: Progress | None = None):
            super().__init__()
            self.lm, self.progress = lm, progress

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            return loglikelihoods(self.lm, [request.args for request in requests], self.progress)

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            return rolling_loglikelihoods(self.lm, [request.args[0] for request in requests], self.progress)

        def generate_until(self, requests: list[Any]) -> list[str]:
            return continuations(self.lm, [request.args for request in requests], self.progress)

        @property
        def tokenizer_name(self) -> str:
            return self.lm.name

    return Adapter


def harness_model(lm: LanguageModel, progress: Progress | None = None) -> Any:
    """The model as an `lm_eval.api.model.LM`, to be given to `lm_eval.simple_evaluate(model=...)`."""
    return adapter()(lm, progress)
