"""What a request may say, as OpenAI's documents name it, and what of it becomes settings of ours."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cutaway.decoding.sampling import Sampling
from cutaway.decoding.settings import Settings
from cutaway.language_model import LanguageModel
from cutaway.serve.openai.errors import ApiError

LONGEST = 2_000_000
"""Characters or tokens a prompt may have before it is even looked at."""
TOP = 20
"""So many of the likeliest tokens are told at most."""
Ids = Annotated[list[int], Field(max_length=LONGEST)]
Text = Annotated[str, Field(max_length=LONGEST)]
ModelName = Annotated[str | None, Field(max_length=1_000, description="One of /v1/models; by default the first.")]
Texts = Text | Ids | Annotated[list[Text], Field(max_length=1_024)] | Annotated[list[Ids], Field(max_length=1_024)]


class Body(BaseModel):
    """Fields that are not known are passed over, as OpenAI does."""

    model_config = ConfigDict(protected_namespaces=(), allow_inf_nan=False)


class StreamOptions(Body):
    include_usage: bool = False


class ResponseFormat(Body):
    """What the answer must be: any text, any JSON, JSON of a schema, or what a regular expression matches."""

    type: Literal["text", "json_object", "json_schema", "regex"] = "text"
    json_schema: dict[str, Any] | None = None
    pattern: str | None = Field(None, max_length=10_000)


class Choosing(Body):
    """What completions and chat have in common."""

    model: ModelName = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1, le=1_000_000, description="Among so many; 0 or -1: among all.")
    min_p: float | None = Field(None, ge=0, le=1)
    presence_penalty: float = Field(0, ge=-2, le=2)
    frequency_penalty: float = Field(0, ge=-2, le=2)
    repetition_penalty: float = Field(1, gt=0, le=10)
    logit_bias: dict[int, Annotated[float, Field(ge=-100, le=100)]] | None = Field(None, max_length=10_000)
    n: int = Field(1, ge=1, le=128)
    stop: str | Annotated[list[str], Field(max_length=16)] | None = None
    seed: int | None = Field(None, ge=-(1 << 63), lt=1 << 63)
    stream: bool = False
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    explain: list[Annotated[str, Field(max_length=100)] | dict[str, Any]] = Field(
        default_factory=list,
        max_length=8,
        description='Views to give with every token of a stream: names, or {"view": name, parameters}. '
        "See /v1/explanations.",
    )
    changes: list[dict[str, Any]] = Field(
        default_factory=list,
        max_length=64,
        description="What is changed inside the model while this text is written: ablate, steer, patch.",
    )

    def settings(self, lm: LanguageModel, max_tokens: int | None, samples: int) -> Settings:
        """What the request does not say, the model recommends; else the model's own distribution is drawn from."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if "" in stop:
            raise ApiError(400, "A stop string must have at least one character.", "stop")
        asked: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p, "min_p": self.min_p}
        if self.top_k is not None:
            asked["top_k"] = self.top_k if self.top_k > 0 else len(lm.tokenizer)
        given = {name: value for name, value in asked.items() if value is not None}
        known = set(Sampling.__dataclass_fields__)
        usual = {name: value for name, value in lm.recommended.items() if name in known} if not given else {}
        return lm.settings(
            {
                "top_k": None, **usual, **given,
                "presence_penalty": self.presence_penalty, "frequency_penalty": self.frequency_penalty,
                **({} if self.repetition_penalty == 1 else {"repetition_penalty": self.repetition_penalty}),
                "logit_bias": self.logit_bias or {}, "stop": tuple(stop), "samples": samples,
                "seed": None if self.seed is None else self.seed % (1 << 64),
            },
            max_tokens,
        )  # fmt: skip


class CompletionBody(Choosing):
    """`POST /v1/completions`."""

    prompt: (
        Text | Ids | Annotated[list[Text], Field(max_length=1_024)] | Annotated[list[Ids], Field(max_length=1_024)]
    ) = ""
    max_tokens: int | None = Field(16, ge=0, le=1_000_000)
    best_of: int | None = Field(None, ge=1, le=128)
    logprobs: int | None = Field(None, ge=0, le=TOP)
    echo: bool = False
    suffix: str | None = None


class Part(Body):
    type: Literal["text"]
    text: Text


class Message(Body):
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[Part], Field(max_length=1_024)] | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content) if isinstance(self.content, list) else self.content or ""


class ChatBody(Choosing):
    """`POST /v1/chat/completions`."""

    messages: list[Message] = Field(min_length=1, max_length=10_000)
    max_tokens: int | None = Field(None, ge=0, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=0, le=1_000_000)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=TOP)


class EmbeddingBody(Body):
    """`POST /v1/embeddings`: of each text, the mean over its tokens of what leaves the model's final norm."""

    model: ModelName = None
    input: Texts
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class TokenizeBody(Body):
    model: ModelName = None
    prompt: Text = ""


class DetokenizeBody(Body):
    model: ModelName = None
    tokens: Ids
