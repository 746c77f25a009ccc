"""`POST /v1/completions` and `POST /v1/chat/completions`: texts, whole or as they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import JSONResponse, Response

from cutaway.language_model import LanguageModel
from cutaway.serve.openai.asked import Asked, News
from cutaway.serve.openai.chat_template import Form, chat_form
from cutaway.serve.openai.choice import Choice
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.openai.events import DONE, EventStream, event, unless_gone
from cutaway.serve.openai.explain import Explainer
from cutaway.serve.openai.requests import ChatBody, CompletionBody
from cutaway.serve.part import Part
from cutaway.serve.pool import Awake, ModelPool

LONG = 20_000
"""Longer texts are cut into tokens in a thread: others are answered meanwhile."""
Spoken = Callable[[Asked, News, bool], dict[str, Any]]


class Completions(Part):
    """Texts that continue a prompt, or answer in a conversation."""

    def __init__(self, pool: ModelPool, explainer: Explainer):
        self.pool, self.explainer = pool, explainer
        self.forms: dict[str, Form] = {}
        pool.forgotten.append(lambda name: self.forms.pop(name, None) and None)

    def mount(self, app: FastAPI) -> None:
        api = APIRouter(prefix="/v1", tags=["completions"])

        @api.post("/completions", response_model=None)
        async def completions(body: CompletionBody, request: Request) -> Response:
            """Continue one or several prompts."""
            if body.suffix:
                raise ApiError(400, "These models continue texts and cannot fill gaps: leave `suffix` out.", "suffix")
            best = body.best_of or body.n
            if best < body.n:
                raise ApiError(400, "best_of must be at least n.", "best_of")
            if body.stream and best > body.n:
                raise ApiError(400, "The best of several is known at the end: it cannot be streamed.", "best_of")

            def ask(model: Awake, prompts: list[list[int]], held: AsyncExitStack) -> Asked:
                return Asked(
                    body, model, prompts, body.max_tokens, self.explainer, "cmpl", best, body.logprobs, body.echo, held
                )

            return await self.answer(request, body, lambda model: read_prompts(model.lm, body.prompt), ask, piece)

        @api.post("/chat/completions", response_model=None)
        async def chat(body: ChatBody, request: Request) -> Response:
            """Answer in a conversation, by a model that has a chat template."""
            most = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
            top = (body.top_logprobs or 0) if body.logprobs else None

            def ask(model: Awake, prompts: list[list[int]], held: AsyncExitStack) -> Asked:
                return Asked(body, model, prompts, most, self.explainer, "chatcmpl", body.n, top, held=held)

            async def prompts(model: Awake) -> list[list[int]]:
                messages = [{"role": one.role, "content": one.text} for one in body.messages]
                form = await asyncio.to_thread(self.form, model)
                return [await asyncio.to_thread(form, messages)]

            return await self.answer(request, body, prompts, ask, delta)

        app.include_router(api)

    def form(self, model: Awake) -> Form:
        if model.offer.name not in self.forms:
            self.forms[model.offer.name] = chat_form(model.offer.name, model.offer.source, model.lm)
        return self.forms[model.offer.name]

    async def answer(self, request: Request, body: Any, prompts: Any, ask: Any, spoken: Spoken) -> Response:
        """Have a request answered, and give back what it held, however it ends."""
        async with AsyncExitStack() as held:
            model = await held.enter_async_context(self.pool.use(body.model))
            asked: Asked = ask(model, await prompts(model), held)
            await asked.submit()
            if not body.stream:
                return JSONResponse(await unless_gone(request, whole(asked, body)))
            asked.held = held.pop_all()
            return EventStream(stream(asked, spoken))

    async def end(self) -> None:
        self.explainer.close()


async def read_prompts(lm: LanguageModel, given: str | Sequence[Any]) -> list[list[int]]:
    """The tokens of one prompt or several; ids are taken as they are."""
    if isinstance(given, list) and not given:
        raise ApiError(400, "There is no prompt: give a text, or a list of texts.", "prompt")
    long = len(given) > LONG or (isinstance(given, list) and sum(map(size, given)) > LONG)
    texts, _ = await asyncio.to_thread(lm.several, given) if long else lm.several(given)
    return texts


def size(one: object) -> int:
    return len(one) if isinstance(one, str | list) else 1


async def whole(asked: Asked, body: CompletionBody | ChatBody) -> dict[str, Any]:
    """The answer in one piece; of several texts for a prompt, the best."""
    explained = await asked.all()
    choices = best_choices(asked, body.n)
    chat = isinstance(body, ChatBody)
    found = []
    for index, choice in enumerate(choices):
        logprobs = None
        if asked.top is not None:
            logprobs = choice.chat_logprobs(choice.told) if chat else choice.completion_logprobs(choice.told)
        message = {"role": "assistant", "content": choice.text, "refusal": None}
        said: dict[str, Any] = {"message": message} if chat else {"text": choice.text}
        more = {"explain": explained[choice.index]} if body.explain else {}
        found.append({"index": index, **said, "logprobs": logprobs, "finish_reason": choice.finish_reason, **more})
    kind = "chat.completion" if chat else "text_completion"
    return {**head(asked, kind), "choices": found, "usage": asked.usage}


def best_choices(asked: Asked, n: int) -> list[Choice]:
    """For each prompt the n texts that are likeliest, token for token, in the order they were drawn in."""
    found = []
    for first in range(0, len(asked.choices), asked.samples):
        own = asked.choices[first : first + asked.samples]
        best = sorted(own, key=lambda one: -one.mean_logprob)[:n] if n < asked.samples else own
        found += best
    return found


async def stream(asked: Asked, spoken: Spoken) -> AsyncIterator[bytes]:
    """The answer in pieces, one for each token that lets out text, and at the end what it took, if that was asked."""
    options = asked.body.stream_options
    tell_usage = options is not None and options.include_usage
    begun: set[int] = set()
    usage: dict[str, Any] = {"usage": None} if tell_usage else {}
    async with asked.held:
        async for some in asked.news():
            parts = []
            for one in some:
                first = one.choice.index not in begun
                if not (one.text or one.told or one.finish_reason or one.explained is not None or first):
                    continue
                begun.add(one.choice.index)
                parts.append(event({**spoken(asked, one, first), **usage}))
            if parts:
                yield b"".join(parts)
        if tell_usage:
            kind = "text_completion" if asked.kind == "cmpl" else "chat.completion.chunk"
            yield event({**head(asked, kind), "choices": [], "usage": asked.usage})
        yield DONE


def head(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": asked.id, "object": kind, "created": asked.created, "model": asked.model.offer.name}


def piece(asked: Asked, news: News, first: bool) -> dict[str, Any]:
    """One piece of a completion."""
    choice = news.choice
    logprobs = choice.completion_logprobs(news.told) if asked.top is not None and news.told else None
    said = {"index": choice.index, "text": news.text, "logprobs": logprobs, "finish_reason": news.finish_reason}
    return {**head(asked, "text_completion"), "choices": [said | explained(news)]}


def delta(asked: Asked, news: News, first: bool) -> dict[str, Any]:
    """One piece of an answer in a conversation."""
    choice = news.choice
    logprobs = choice.chat_logprobs(news.told) if asked.top is not None and news.told else None
    own = {"role": "assistant", "content": news.text} if first else {"content": news.text} if news.text else {}
    said = {"index": choice.index, "delta": own, "logprobs": logprobs, "finish_reason": news.finish_reason}
    return {**head(asked, "chat.completion.chunk"), "choices": [said | explained(news)]}


def explained(news: News) -> dict[str, Any]:
    return {} if news.explained is None else {"explain": news.explained}
