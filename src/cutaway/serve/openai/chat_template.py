"""How a conversation becomes one text: by the task the model was trained for, or by the template in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from cutaway.checkpoint.locate import locate
from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.serve.openai.errors import ApiError
from cutaway.tasks import load_task
from cutaway.tasks.conversation import Chat

Conversation = Sequence[dict[str, str]]
Form = Callable[[Conversation], list[int]]


def chat_form(name: str, source: str, lm: LanguageModel) -> Form:
    """A function from messages to the tokens of a prompt; refused for a model that was not made for conversations."""
    folder, task = locate(source), None
    with suppress(CutawayError):  # no task of ours may lie there
        task = load_task(folder)
    if isinstance(task, Chat):
        chat = task  # contents are encoded as text: nobody can speak for another
        return lambda messages: chat.prompt({"messages": list(messages)}, lm.tokenizer)
    template = None
    if folder.is_dir():
        if (own := folder / "chat_template.jinja").is_file():
            template = own.read_text(encoding="utf-8")
        elif (described := folder / "tokenizer_config.json").is_file():
            template = json.loads(described.read_text(encoding="utf-8")).get("chat_template")
    if not isinstance(template, str):
        raise ApiError(
            400,
            f"The model {name} has no chat template: it continues texts and was not trained for conversations. "
            "Use /v1/completions, or a model trained with the task chat.",
            "model",
            "no_chat_template",
        )
    return rendered(template, lm)


def rendered(template: str, lm: LanguageModel) -> Form:
    try:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ApiError(501, "This model's chat template needs jinja2 on the server: pip install jinja2.") from None
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    end = lm.tokenizer.decode([lm.tokenizer.end])

    def refuse(message: str) -> None:
        raise ApiError(400, f"The chat template refuses this conversation: {message}", "messages")

    environment.globals["raise_exception"] = refuse

    def form(messages: Conversation) -> list[int]:
        for message in messages:
            text = message["content"]
            if lm.tokenizer.encode(text) != lm.tokenizer.encode(text, special=True):
                raise ApiError(400, "A message must not contain the names of special tokens.", "messages")
        given: dict[str, Any] = {"messages": list(messages), "add_generation_prompt": True}
        try:
            made = environment.from_string(template).render(**given, eos_token=end, bos_token=end)
        except TemplateError as error:
            raise ApiError(400, f"The chat template of this model cannot be used: {error}.", "messages") from None
        return lm.tokenizer.encode(made, special=True)

    return form
