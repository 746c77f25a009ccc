"""Records as people keep them for fine-tuning through an API: a prompt and its completion, or a list of messages.

    completion   prompt completion <|endoftext|>
    chat         <|system|> text <|user|> text <|assistant|> answer <|endoftext|> <|user|> text <|assistant|> answer ...

Only what is to be answered counts in the loss: the completion, or every answer of the assistant, each with its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cutaway.atomic import write_text
from cutaway.checkpoint.files import read_json
from cutaway.errors import CutawayError, nearest
from cutaway.tasks.sequences import Written
from cutaway.tasks.task import Arrays, Example, LeftOut, Record, require_limit, text, token

if TYPE_CHECKING:
    from torch import nn

    from cutaway.text.tokenizer import Tokenizer

ROLES = {"system": "<|system|>", "developer": "<|system|>", "user": "<|user|>", "assistant": "<|assistant|>"}
"""Who may speak in a conversation, and the token that stands before what they say."""
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + ('system' if message['role'] == 'developer' else message['role']) + '|>' + message['content'] | trim }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
"""The same form for transformers' apply_chat_template and what is built on it."""


@dataclass(frozen=True)
class Completion(Written):
    """`prompt completion <|endoftext|>`; the completion and the end token count in the loss.

    Both texts are taken as they are: white space between them belongs to one of them. A pair longer than the limit is
    left out and counted.
    """

    limit: int | None = None
    """The longest a prompt and its completion may be together, in tokens; None takes the model's context."""

    name: ClassVar[str] = "completion"
    fields: ClassVar[tuple[str, ...]] = ("prompt", "completion")

    def __post_init__(self) -> None:
        require_limit(self, least=3)

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        before = self.prompt(record, tokenizer)
        text(record, "completion", self)  # refuses what is no text
        ids = [*before, *tokenizer.encode(record["completion"]), tokenizer.end]
        if self.limit is not None and len(ids) > self.limit:
            raise LeftOut(f"Prompt and completion are {len(ids):,} tokens long, and at most {self.limit:,} fit.")
        return [Example(ids, {"answer": [len(before)]})]

    def prompt(self, record: Record, tokenizer: Tokenizer) -> list[int]:
        """The prompt; an empty one is the end token, which every text begins after."""
        if record.get("prompt") != "":
            text(record, "prompt", self)
        return tokenizer.encode(record["prompt"]) or [tokenizer.end]


@dataclass(frozen=True)
class Chat(Written):
    """A conversation in `messages`, each with `role` and `content`; every answer of the assistant counts in the loss,
    with the end token after it, unless its `weight` is 0. Of one that is too long the last turns are cut off; one whose
    first answer does not fit is left out."""

    limit: int | None = None
    """The longest a conversation may be, in tokens, with its separators; None takes the model's context."""

    name: ClassVar[str] = "chat"
    fields: ClassVar[tuple[str, ...]] = ("messages",)
    specials: ClassVar[tuple[str, ...]] = tuple(dict.fromkeys(ROLES.values()))
    arrays: ClassVar[Mapping[str, str]] = {"counted": "u1"}
    verb: ClassVar[str] = "generate --special '<|user|>Hello.<|assistant|>'"

    def __post_init__(self) -> None:
        require_limit(self, least=5)

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        turns = self.turns(record, tokenizer)
        while turns and not any(turns[-1][1]):  # what nobody answers teaches nothing
            turns.pop()
        if not turns:
            raise CutawayError("There is no answer of the assistant in these messages, so there is nothing to learn.")
        whole = sum(len(ids) for ids, _ in turns)
        while self.limit is not None and turns and (sum(map(length, turns)) > self.limit or not any(turns[-1][1])):
            turns.pop()
        if not turns:
            raise LeftOut(f"The conversation's first answer ends beyond the {self.limit:,} tokens that fit.")
        ids = [one for part, _ in turns for one in part]
        counted = [one for _, part in turns for one in part]
        return [Example(ids, {"counted": counted}, whole - len(ids))]

    def question(self, example: Arrays) -> tuple[list[int], list[int]] | None:
        ids, first = example["ids"].tolist(), int(example["counted"].argmax())  # of many answers, the first
        return ids[:first], ids[first:]

    def save(self, model: nn.Module, tokenizer: Tokenizer, folder: Path) -> None:
        super().save(model, tokenizer, folder)
        save_chat_template(folder)

    def prompt(self, record: Record, tokenizer: Tokenizer) -> list[int]:
        """The conversation so far, and the sign that the assistant is to speak."""
        ids = [one for part, _ in self.turns(record, tokenizer) for one in part]
        return [*ids, token(tokenizer, ROLES["assistant"], self)]

    def turns(self, record: Record, tokenizer: Tokenizer) -> list[tuple[list[int], list[bool]]]:
        """Each message in tokens, and which of these count."""
        turns = []
        for number, message in enumerate(messages_of(record, self)):
            role, content, weight = spoken(message, number)
            ids = [token(tokenizer, ROLES[role], self), *tokenizer.encode(content)]
            answers = role == "assistant"
            if answers:
                ids.append(tokenizer.end)
            turns.append((ids, [False, *[answers and weight > 0] * (len(ids) - 1)]))
        return turns


def save_chat_template(folder: Path) -> None:
    """Tell other programs, in `tokenizer_config.json`, how a conversation becomes one text."""
    path = folder / "tokenizer_config.json"
    config = read_json(path) | {"chat_template": TEMPLATE}
    try:
        write_text(path, json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CutawayError(f"{path} cannot be written: {error.strerror or error}.") from error


def length(turn: tuple[list[int], list[bool]]) -> int:
    return len(turn[0])


def messages_of(record: Record, task: Chat) -> Sequence[Any]:
    given = record.get("messages")
    if given is None:
        text(record, "messages", task)
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or not given:
        raise CutawayError("The field 'messages' must be a list like [{'role': 'user', 'content': 'Hello'}, ...].")
    return given


def spoken(message: object, number: int) -> tuple[str, str, float]:
    """A message's role, its text without the white space around it, and its weight."""
    where = f"messages[{number}]"
    if not isinstance(message, Mapping) or "role" not in message:
        raise CutawayError(f"{where} must have a role and a content, and is {message!r:.60}.")
    role, content, weight = message["role"], message.get("content"), message.get("weight", 1)
    if role not in ROLES:
        raise CutawayError(f"{where} has the role {role!r}; known are {', '.join(ROLES)}.{nearest(str(role), ROLES)}")
    if isinstance(content, Sequence) and not isinstance(content, str):  # in parts, as some write it
        parts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
        if not all(isinstance(part, str) for part in parts):
            raise CutawayError(f"{where} has parts that are not text, and this model reads only text.")
        content = "".join(map(str, parts))
    if not isinstance(content, str) or not content.strip():
        raise CutawayError(f"{where} has no text in its content ({content!r:.40}).")
    if isinstance(weight, bool) or weight not in (0, 1):
        raise CutawayError(f"{where} has the weight {weight!r}: it must be 0 (left out of the loss) or 1.")
    return role, content.strip(), float(weight)
