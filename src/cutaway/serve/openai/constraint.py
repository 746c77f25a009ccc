"""Answers that must have a form: JSON of a schema, or what a regular expression matches (llguidance).

Before each token is chosen, every token that could not go on to a whole answer is forbidden.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from cutaway.decoding.sampling import NEVER, Array
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.openai.requests import ResponseFormat
from cutaway.text.tokenizer import Tokenizer

COMPACT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON as Python writes it: a small model given free white space writes nothing else."""

_known: WeakKeyDictionary[Tokenizer, Any] = WeakKeyDictionary()


class Spelling:
    """A tokenizer as llguidance asks for one."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.eos_token_id, self.bos_token_id = tokenizer.end, None
        self.tokens = [tokenizer.token_bytes(token) for token in range(len(tokenizer))]
        self.special_token_ids = [tokenizer.end]

    def __call__(self, text: str | bytes) -> list[int]:
        return self.tokenizer.encode(text)


def guide(tokenizer: Tokenizer) -> Any:
    """The tokenizer's tokens as llguidance holds them; made once."""
    from llguidance import LLTokenizer, TokenizerWrapper

    if tokenizer not in _known:
        _known[tokenizer] = LLTokenizer(TokenizerWrapper(Spelling(tokenizer)))
    return _known[tokenizer]


class Constraint:
    """A logits processor for one text: forbids what the form does not allow next."""

    def __init__(self, tokenizer: Tokenizer, matcher: Any):
        from llguidance.numpy import allocate_token_bitmask

        self.tokenizer, self.matcher = tokenizer, matcher
        self.mask = allocate_token_bitmask(1, len(tokenizer))
        self.seen: int | None = None

    def __call__(self, ids: list[int], logits: Array) -> Array:
        from llguidance.numpy import fill_next_token_bitmask

        if self.seen is not None:
            self.matcher.consume_tokens(ids[self.seen :])
        self.seen = len(ids)
        if self.matcher.is_stopped():
            allowed = np.zeros(len(self.tokenizer), dtype=bool)
            allowed[self.tokenizer.end] = True
        else:
            fill_next_token_bitmask(self.matcher, self.mask, 0)
            bits = np.unpackbits(self.mask.view(np.uint8)[0], bitorder="little")
            allowed = bits[: len(self.tokenizer)].astype(bool)
        logits[: len(self.tokenizer)][~allowed] = NEVER
        logits[len(self.tokenizer) :] = NEVER
        return logits


def constraint(wanted: ResponseFormat, tokenizer: Tokenizer) -> Callable[[], Constraint] | None:
    """A function that makes the processor of one text, or None where any text will do."""
    if wanted.type == "text":
        return None
    try:
        from llguidance import LLMatcher
    except ImportError:
        said = "Constrained answers need llguidance on the server: pip install 'cutaway[constrain]'."
        raise ApiError(501, said, "response_format") from None
    if wanted.type == "regex":
        if not wanted.pattern:
            raise ApiError(400, "A response format of type regex needs a pattern.", "response_format")
        grammar = LLMatcher.grammar_from_regex(wanted.pattern)
    else:
        schema = {"type": "object"} if wanted.type == "json_object" else schema_of(wanted)
        grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), defaults=COMPACT)
    if problem := LLMatcher.validate_grammar(grammar, guide(tokenizer)):
        raise ApiError(400, f"This form cannot be followed: {problem}"[:500], "response_format")

    def make() -> Constraint:
        return Constraint(tokenizer, LLMatcher(guide(tokenizer), grammar))

    return make


def schema_of(wanted: ResponseFormat) -> Any:
    """The schema itself, as OpenAI wraps it: `{"name", "schema"}`."""
    given = wanted.json_schema or {}
    schema = given.get("schema")
    if not isinstance(schema, dict | bool):
        said = 'A response format of type json_schema needs {"json_schema": {"schema": ...}}.'
        raise ApiError(400, said, "response_format")
    return schema
