"""A request on its way: what it asks of a model, its job, and the texts that come of it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from cutaway.decoding.sequence import Sequence, sequences
from cutaway.models.architecture import context_of
from cutaway.serve.explorer import read_changes
from cutaway.serve.openai.choice import Choice, Told
from cutaway.serve.openai.constraint import constraint
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.openai.explain import Explainer, Following, check_explain
from cutaway.serve.openai.requests import Choosing
from cutaway.serve.pool import Awake
from cutaway.serve.writer import Job, Writer


@dataclass
class News:
    """What a step lets out of one text."""

    choice: Choice
    text: str
    told: list[Told]
    explained: dict[str, Any] | None = None
    finish_reason: str | None = None
    """How the text ended, if this is the end of it: what comes in one piece with it may have come before."""


@dataclass
class Asked:
    """One request for texts, from its beginning to its end."""

    body: Choosing
    model: Awake
    prompts: list[list[int]]
    max_tokens: int | None
    explainer: Explainer
    kind: str
    samples: int = 1
    top: int | None = None
    echo: bool = False
    held: AsyncExitStack = field(default_factory=AsyncExitStack)
    """What is given back when the request has ended."""
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        self.id = f"{self.kind}-{secrets.token_hex(12)}"
        self.choices: list[Choice] = []
        self.following: list[Following] = []
        self.job: Job | None = None

    @property
    def usage(self) -> dict[str, int]:
        read, written = sum(map(len, self.prompts)), sum(one.count for one in self.choices)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    async def submit(self) -> None:
        """Hand it to the model's thread; refused here, if at all."""
        body, lm = self.body, self.model.lm
        context = context_of(lm.config)
        for ids in self.prompts:
            if len(ids) > context or (len(ids) == context and self.max_tokens != 0 and not self.scored):
                raise ApiError(
                    400,
                    f"The prompt is {len(ids):,} tokens long and this model's context is {context:,}, which the "
                    "answer must fit into as well. Shorten the prompt.",
                    "prompt",
                    "context_length_exceeded",
                )
        check_explain(body.explain, lm)
        settings = body.settings(lm, self.max_tokens, self.samples)
        wanted = body.response_format
        form = await asyncio.to_thread(constraint, wanted, lm.tokenizer) if wanted is not None else None
        texts = sequences(self.prompts, lm.tokenizer, settings)
        if form is not None:
            texts = [remade(one, logits_processors=(form(),)) for one in texts]
        changes = read_changes(body.changes)
        runtime = None
        if changes:
            if len(self.prompts) > 1 or self.scored:
                raise ApiError(400, "Changes are made at positions: ask for one prompt at a time.", "changes")
            runtime = await asyncio.to_thread(lm.changed, changes, self.prompts[0], settings)
        targets: dict[Sequence, list[int]] = {}
        if self.scored:
            texts, targets = scored(texts, context)
        self.choices = [Choice(lm.tokenizer, index) for index in range(len(texts))]
        self.following = [Following(self.explainer, lm, one.prompt, changes, body.explain) for one in texts]
        self.job = Job(texts, self.top, runtime, targets=targets)
        self.writer.submit(self.job)

    @property
    def scored(self) -> bool:
        """Whether the prompt's own tokens are told with their log-probabilities."""
        return self.echo and self.top is not None

    @property
    def writer(self) -> Writer:
        return self.model.changed if self.job is not None and self.job.runtime is not None else self.model.writer

    async def news(self) -> AsyncIterator[list[News]]:
        """What is written, as it is written."""
        assert self.job is not None
        started: set[int] = set()
        ended = False
        try:
            async for steps in self.job.steps():
                found = []
                for step in steps:
                    if step.error is not None:
                        raise step.error
                    choice, text = self.choices[step.index], ""
                    told: list[Told] = []
                    if self.echo and step.index not in started:
                        started.add(step.index)
                        text, told = self.echoed(step.index)
                    if self.unwritten(step.index):
                        choice.reason = "length"
                    else:
                        more, tokens = choice.add(step)
                        text, told = text + more, told + tokens
                    explained = None
                    if self.body.explain and step.token is not None and step.reason != "end":
                        explained = await self.following[step.index].explain(step.token)
                    found.append(News(choice, text, told, explained, choice.finish_reason))
                yield found
            ended = True
        finally:
            if not ended:
                self.writer.cancel(self.job)

    def unwritten(self, index: int) -> bool:
        """Whether a text is read for its prompt's sake only: the token after it is not told."""
        assert self.job is not None
        text = self.job.sequences[index]
        return self.max_tokens == 0 or len(self.job.targets.get(text, [])) > len(text.prompt)

    def echoed(self, index: int) -> tuple[str, list[Told]]:
        assert self.job is not None
        text = self.job.sequences[index]
        ids = self.job.targets.get(text, text.prompt)
        return self.choices[index].echo(ids, self.job.prompt_scores.get(text))

    async def all(self) -> list[list[dict[str, Any]]]:
        """Wait for the whole; gives what was explained of each text."""
        explained: list[list[dict[str, Any]]] = [[] for _ in self.choices]
        async for some in self.news():
            for one in some:
                if one.explained is not None:
                    explained[one.choice.index].append(one.explained)
        return explained


def remade(one: Sequence, **changes: Any) -> Sequence:
    """The same text with other settings."""
    return Sequence(one.prompt, replace(one.settings, **changes), one.codec, one.seed, one.sample)


def scored(texts: list[Sequence], context: int) -> tuple[list[Sequence], dict[Sequence, list[int]]]:
    """Texts whose prompts are scored. Where nothing is to be written, the last token of the prompt need not be read."""
    found, targets = [], {}
    for one in texts:
        settings, prompt = one.settings, one.prompt
        if settings.max_tokens == 0 or len(prompt) >= context:
            settings, prompt = replace(settings, max_tokens=1), prompt[:-1]
        made = Sequence(prompt, settings, one.codec, one.seed, one.sample, score_prompt=True)
        targets[made] = one.prompt
        found.append(made)
    return found, targets
