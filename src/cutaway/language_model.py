"""The front door: a model with its tokenizer, and what one does with them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from cutaway import checkpoint
from cutaway.checkpoint.locate import is_packed, locate
from cutaway.checkpoint.recommended import read_recommended
from cutaway.config import Config
from cutaway.engine.choice import choose
from cutaway.engine.library import check_kind
from cutaway.engine.native import Engine, Scores
from cutaway.engine.pack import numbers_in, unpack
from cutaway.errors import CutawayError, nearest
from cutaway.generate import Result, Settings, TextStream, generate
from cutaway.reading import Machine, open_batch
from cutaway.sampling import likeliest, softmax
from cutaway.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from cutaway.model import GPT
    from cutaway.trace import Replacement, Trace

DTYPES = ("float32", "bfloat16", "float16")
"""The number types that torch may be asked to compute in."""

Prompt = str | Sequence[int]


@dataclass(frozen=True)
class Prediction:
    """One candidate for the next token."""

    id: int
    text: str
    probability: float


class LanguageModel:
    """A model and its tokenizer: text in, predictions, text and every intermediate out.

    With `weights` (see engine/) texts are written by the native engine, on weights of that kind; traces, gradients and
    everything else stay with torch. Given an engine instead of a model, torch's model is made of the engine's weights
    when it is first asked for.
    """

    def __init__(self, model: GPT | Engine, tokenizer: Tokenizer, name: str = "model", weights: str | None = None):
        if len(tokenizer) > model.config.vocabulary:
            raise CutawayError(
                f"The tokenizer of {name} has {len(tokenizer):,} entries, the model only {model.config.vocabulary:,}: "
                "they do not belong together."
            )
        self.tokenizer, self.name, self.weights = tokenizer, name, weights
        self.recommended: dict[str, Any] = {}
        """Settings to write with where the caller says nothing else: what the model's generation_config.json says."""
        self.config: Config = model.config
        self._model = None if isinstance(model, Engine) else model.eval()
        self._engine = model if isinstance(model, Engine) else None
        self._packed_from: object = None

    @property
    def model(self) -> GPT:
        """The model that torch runs."""
        if self._model is None:
            import torch

            assert self._engine is not None
            with torch.inference_mode(False):  # a model like any other, whoever asks for it first
                self._model = unpack(self._engine.packed)
            self._packed_from = versions(self._model)
        return self._model

    @property
    def machine(self) -> Machine:
        """What writes texts: the native engine, if it was chosen, or the model itself."""
        if self._engine is None and self.weights is None:
            return self.model
        if self._engine is None or (self._model is not None and versions(self._model) != self._packed_from):
            from cutaway.engine.calibrate import pack_on_loading

            weights = self.weights or (self._engine.weights if self._engine else "float32")
            self._packed_from = versions(self.model)
            self._engine = Engine(pack_on_loading(self.model, self.tokenizer, weights))
        return self._engine

    @property
    def device(self) -> torch.device:
        import torch

        return torch.device("cpu") if self._model is None else self._model.token_embedding.weight.device

    def ids(self, text: Prompt) -> list[int]:
        """The tokens of a text; ids are checked and taken as they are."""
        if isinstance(text, str):
            return self.tokenizer.encode(text)
        given = text.tolist() if hasattr(text, "tolist") else list(text)
        try:
            ids = [operator.index(token) for token in given]  # numpy's whole numbers are as good as Python's
        except TypeError:
            raise CutawayError(f"A prompt is a text or a list of token ids, not {given!r:.80}.") from None
        for token in ids:
            if not 0 <= token < self.config.vocabulary:
                raise CutawayError(
                    f"There is no token {token:,}: the vocabulary has {self.config.vocabulary:,} entries."
                )
        return ids

    def logits(self, text: Prompt) -> Tensor:
        """A score for every entry of the vocabulary after every token: [tokens, vocabulary].

        An empty text is read as the end token, which every text begins after.
        """
        import torch

        with torch.inference_mode():
            return self.model(self.batch_of_one(text))[0].float()

    def next_scores(self, text: Prompt) -> Scores:
        """A score for every entry of the vocabulary after the last token only: [vocabulary]."""
        if self._engine is not None:
            return open_batch(self.machine).begin([self.ids(text) or [self.config.end]])[0]
        import torch

        with torch.inference_mode():  # one text is not worth packing weights for
            return self.model.score(self.model.read(self.batch_of_one(text))[:, -1])[0].float().cpu().numpy()

    def predict(self, text: Prompt, k: int = 10) -> list[Prediction]:
        """The k likeliest next tokens, likeliest first."""
        if k < 1:
            raise CutawayError(f"The number of predictions must be 1 or more, not {k}.")
        chances = softmax(self.next_scores(text))
        best = likeliest(chances, min(k, len(self.tokenizer)))
        return [
            Prediction(id=token, text=self.tokenizer.decode([token]), probability=chance)
            for token, chance in zip(best.tolist(), chances[best].tolist(), strict=True)
        ]

    @overload
    def generate(
        self,
        prompt: Prompt = "",
        max_tokens: int | None = None,
        *,
        samples: None = None,
        best: None = None,
        **settings: Any,
    ) -> Result: ...
    @overload
    def generate(
        self, prompt: Prompt | Sequence[Prompt], max_tokens: int | None = None, **settings: Any
    ) -> list[Result]: ...

    def generate(
        self, prompt: Prompt | Sequence[Prompt] = "", max_tokens: int | None = None, **settings: Any
    ) -> Result | list[Result]:
        """Continue a prompt; an empty one lets the model ramble. See `Settings` for what can be set.

        One prompt gives one result. A list of prompts gives a list; so does asking for several `samples`, or for the n
        `best` of a beam search.
        """
        how = self.settings(settings, max_tokens)
        many = isinstance(prompt, Sequence) and not isinstance(prompt, str) and any(
            isinstance(one, str | Sequence) for one in prompt
        )  # fmt: skip
        prompts = [self.ids(one) for one in (prompt if many else [prompt])]  # type: ignore[arg-type]
        if how.beams:
            from cutaway import beams

            results = beams.search(self.machine, self.tokenizer, prompts, how)
        else:
            results = generate(self.machine, self.tokenizer, prompts, how)
        return results if many or how.samples or how.best else results[0]

    def stream(self, prompt: Prompt = "", max_tokens: int | None = None, **settings: Any) -> TextStream:
        """Like `generate`, but gives the text piece by piece as it is written; `.result` holds the whole at the end."""
        how = self.settings(settings, max_tokens)
        if how.beams or how.samples:
            raise CutawayError("Only one text can be streamed: beams and samples are for generate().")
        return TextStream(self.machine, self.tokenizer, self.ids(prompt), how)

    def trace(
        self, text: Prompt, keep: str | Iterable[str] = "*", replace: Mapping[str, Replacement] | None = None
    ) -> Trace:
        """Run the text through the model and keep what it makes on its way, by name; see `Trace` for the patterns.

        The values have no batch dimension: `trace["blocks.0.attention.weights"]` is [head, query, key].
        """
        import torch

        from cutaway.trace import Trace

        trace = Trace(keep, replace)
        trace.check(self.config)
        with torch.inference_mode():
            self.model(self.batch_of_one(text), trace=trace)
            return trace.row(0)

    def save(self, folder: str | Path) -> None:
        """Write a folder that `cutaway.load` and Hugging Face's transformers both read."""
        checkpoint.write(self.model, self.tokenizer, Path(folder), recommended=self.recommended)

    def let_go(self) -> None:
        """Forget torch's model, of which the engine has all it needs; it is made again if it is asked for."""
        if self._engine is not None:
            self._model = None

    def batch_of_one(self, text: Prompt) -> Tensor:
        import torch

        return torch.tensor([self.ids(text) or [self.config.end]], device=self.device)  # [1, tokens]

    def settings(self, given: dict[str, Any], max_tokens: int | None) -> Settings:
        known = list(Settings.__dataclass_fields__)
        for name in given:
            if name not in known:
                raise CutawayError(f"There is no setting {name!r}.{nearest(name, known)}")
        if given.get("beams") or given.get("top_k") == 1 or given.get("temperature") == 0:  # nothing is drawn
            return Settings(max_tokens=max_tokens, **given)
        return Settings(max_tokens=max_tokens, **{**self.recommended, **given})


def load(
    name: str | Path = "builtin",
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    engine: str = "auto",
    weights: str | None = None,
) -> LanguageModel:
    """A model by name: "builtin", a folder with a checkpoint, a file of packed weights, or a model on the hub.

    `engine` says what writes texts: "torch", "native" (compiled kernels, on the processor), or "auto": native for
    packed weights and for float32 on a processor (up to 1 GiB of it), torch for all others. `weights` packs them:
    "float32", "bfloat16", "int8" or "int4".
    """
    if isinstance(dtype, str) and dtype not in DTYPES:
        raise CutawayError(f"Unknown number type {dtype!r}. Known: {', '.join(DTYPES)}.")
    path = locate(name)
    if is_packed(path):
        return load_packed(path, name, device, dtype, engine, weights)
    numbers = None if dtype is None else number_type(dtype)
    place = find_device("cpu" if device is None and (weights or engine == "native") else device)
    float32 = numbers is None or str(numbers) == "torch.float32"
    kind = choose(engine, weights, place.type, float32, size=4 * numbers_in(checkpoint.read_config(path)))
    lm = LanguageModel(checkpoint.read(path, place, numbers), Tokenizer.load(path), str(name), kind)
    lm.recommended = read_recommended(path)
    if kind in (None, "float32"):  # packed when the first text is written
        return lm
    assert lm.machine is not lm.model
    lm.let_go()
    return lm


def load_packed(
    path: Path,
    name: str | Path,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    engine: str,
    weights: str | None,
) -> LanguageModel:
    """A file that `cutaway convert --to cutaway-int8` wrote; where the native engine is not wanted, torch runs it."""
    from cutaway.engine import stored

    packed, tokenizer = stored.read(path), Tokenizer.load(path)
    if weights is not None and check_kind(weights) != packed.weights:
        raise CutawayError(
            f"{path} holds {packed.weights} weights. Leave `weights` away, or load the model they are of."
        )
    place = "cpu" if device is None or str(device) == "cpu" else find_device(device).type
    if engine == "auto" and (place != "cpu" or dtype is not None):
        engine = "torch"
    if choose(engine, None if engine == "torch" else packed.weights, place, dtype is None) is None:
        model = unpack(packed).to(find_device(device or "cpu"), None if dtype is None else number_type(dtype))
        lm = LanguageModel(model, tokenizer, str(name))
    else:
        lm = LanguageModel(Engine(packed), tokenizer, str(name))
    lm.recommended = stored.read_recommended(path)
    return lm


def number_type(dtype: str | torch.dtype) -> torch.dtype:
    """A number type of torch's, by its name."""
    import torch

    found: torch.dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    return found


def versions(model: GPT) -> object:
    """Changes whenever the weights do: a model that is trained on must not be run on weights packed before."""
    return [(id(parameter), 0 if parameter.is_inference() else parameter._version) for parameter in model.parameters()]


def find_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or the fastest there is; refused in plain words if this machine has no such thing."""
    import torch

    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise CutawayError(
            f"This machine has no device {str(device)!r} to compute on. Try cpu, or name none."
        ) from None
    return torch.device(device)
