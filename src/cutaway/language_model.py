"""The front door: a model with its tokenizer, and what one does with them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from cutaway import checkpoint
from cutaway.checks import check_count, is_id
from cutaway.decoding.generate import TextStream, generate
from cutaway.decoding.prediction import Prediction
from cutaway.decoding.runtime import Runtime, Scores
from cutaway.decoding.sampling import likeliest, softmax
from cutaway.decoding.sequence import Result
from cutaway.decoding.settings import Settings
from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import (
    UNLIMITED,
    architecture,
    cached,
    context_of,
    count_parameters,
    encoder,
    places,
    start_of,
)
from cutaway.models.gpt2.shape import Config
from cutaway.parts.sentence import Sentence
from cutaway.parts.versions import versions
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.ngrams import NGrams
from cutaway.runtime.native.pack import Packed, pack, unpack
from cutaway.text.no_tokenizer import NoTokenizer
from cutaway.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from cutaway.decoding.async_stream import AsyncTextStream
    from cutaway.inspect.change import Change
    from cutaway.inspect.metric import Metric
    from cutaway.inspect.sweep import Sweep
    from cutaway.inspect.sweeps import Sweeps
    from cutaway.models.gpt2.model import GPT
    from cutaway.parts.trace import Replacement, Trace
    from cutaway.runtime.encoding import Gap
    from cutaway.runtime.scoring import Score
    from cutaway.runtime.trace_store import TraceStore

Prompt = str | Sequence[int]
Prompts = Iterable[Prompt]
"""Several: a list, a tuple, a generator."""
UNORDERED = (set, frozenset, Mapping)
"""What is neither a text of ids nor several texts, though it can be gone through."""

WITHOUT_END = 1_024
"""So many tokens a model writes at most that has no context to fill, if nobody says how many."""


WORTH_PACKING = 2_048
"""For more tokens than this an encoder's matrices are put in order first (see runtime/packed_linear.py)."""


class LanguageModel:
    """A model and its tokenizer: text in, predictions, text and every intermediate out.

    With `weights` (see engine/) texts are written by the native engine, on weights of that kind; traces, gradients and
    everything else stay with torch. Given an engine instead of a model, torch's model is made of the engine's weights
    when it is first asked for.
    """

    def __init__(self, model: GPT | Engine, tokenizer: Tokenizer, name: str = "model", weights: str | None = None):
        if len(tokenizer) > model.config.vocabulary:
            raise CutawayError(
                f"The tokenizer for {name} has {len(tokenizer):,} entries, the model only {model.config.vocabulary:,}: "
                "they do not belong together."
            )
        self.tokenizer, self.name, self.weights = tokenizer, name, weights
        self.recommended: dict[str, Any] = {}
        """Settings to write with where the caller says nothing else: what the model's generation_config.json says."""
        self.ngrams: NGrams | None = None
        """What usually follows in its texts, for the native engine to guess ahead: only the speed changes."""
        self.sentence = Sentence()
        """Of an encoder: how the vectors of a text's tokens become one."""
        self.config: Config = model.config
        self._model = None if isinstance(model, Engine) else model.eval()
        self._engine = model if isinstance(model, Engine) else None
        self._packed_from: object = None
        self._reader: tuple[object, Any] | None = None

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
    def runtime(self) -> Runtime:
        """What writes texts: the native engine, if it was chosen, or torch."""
        self.refuse_encoder("write")
        if self._engine is None and self.weights is None:
            from cutaway.runtime.torch_batch import torch_runtime

            return torch_runtime(self.model)
        if self._engine is None or (self._model is not None and versions(self._model) != self._packed_from):
            weights = self.weights or (self._engine.weights if self._engine else "float32")
            self._packed_from = versions(self.model)
            self._engine = Engine(self._pack_int4() if weights == "int4" else pack(self.model, weights))
        self._engine.ngrams = self._engine.ngrams or self.ngrams
        return self._engine

    def _pack_int4(self) -> Packed:
        """Calibrated, where that does not keep anyone waiting; else rounded plainly."""
        from cutaway.runtime.native.calibrate import QUICK, pack_calibrated

        quick = count_parameters(self.config) <= QUICK
        return pack_calibrated(self.model, self.tokenizer) if quick else pack(self.model, "int4")

    @property
    def device(self) -> torch.device:
        import torch

        return torch.device("cpu") if self._model is None else next(self._model.parameters()).device

    def ids(self, text: Prompt, special: bool = False) -> list[int]:
        """The tokens of a text (with `special`, names of special tokens in it are these); ids are checked and taken as
        they are.

        To a model that reads one text and writes another, a text is the source: the target is what comes next.
        """
        if isinstance(text, str | bytes):
            if self.reads_both_ways:
                return self.sentences([text])[0]
            return [*self.tokenizer.encode(text, special), *getattr(self.config, "between", ())]
        given = text.tolist() if hasattr(text, "tolist") else text
        try:
            if isinstance(given, UNORDERED):
                raise TypeError
            ids = [operator.index(token) for token in given]  # numpy's whole numbers are as good as Python's
        except TypeError:
            raise CutawayError(f"A prompt is a text or a list of token ids, not {given!r:.80}.") from None
        for token in ids:
            if not 0 <= token < self.config.vocabulary:
                raise CutawayError(
                    f"There is no token {token:,}: the vocabulary has {self.config.vocabulary:,} entries."
                )
        return ids

    @property
    def reads_both_ways(self) -> bool:
        """Whether it is an encoder: it reads a text whole, in both directions, and writes none."""
        return encoder(architecture(self.config.kind))

    def sentences(self, texts: Sequence[str | bytes]) -> list[list[int]]:
        """Texts as an encoder reads them: `[CLS] text [SEP]`; the names of special tokens in them are these tokens."""
        whole = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in texts]
        pieces = self.tokenizer.encode_batch(whole, special=True)
        return [self.tokenizer.frame(one) for one in pieces] if hasattr(self.tokenizer, "frame") else pieces

    def refuse_encoder(self, doing: str) -> None:
        """Refuse what is asked of a model that writes."""
        if self.reads_both_ways:
            title = architecture(self.config.kind).title
            spelled = hasattr(self.tokenizer, "read_as")  # words by their characters, and no [MASK]
            gaps = "" if spelled else "fills in [MASK] (cutaway fill, lm.fill) and "
            raise CutawayError(
                f"{self.name} is a {title}: it reads a text in both directions at once and has no next token, so it "
                f"cannot {doing}. It {gaps}makes vectors of texts "
                "(cutaway embed, lm.embed). To write, choose a GPT-2."
            )

    def pair(self, source: str, target: str = "") -> list[int]:
        """The ids of two texts, for a model that reads one and writes another: `source <start> target`."""
        if start_of(self.config) is None:
            title = architecture(self.config.kind).title
            raise CutawayError(f"{title} reads one text, not two: give it as one.")
        return [*self.ids(source), *self.tokenizer.target.encode(target)]

    def several(self, given: Prompt | Prompts) -> tuple[list[list[int]], bool]:
        """The ids of every text given, and whether they came as a list (an empty one is a list of no texts)."""
        texts: Any = given
        if hasattr(texts, "tolist"):
            texts = texts.tolist()
        elif isinstance(texts, Iterable) and not isinstance(texts, (str, bytes, *UNORDERED)):
            texts = list(texts)
        if isinstance(texts, list | tuple) and not (texts and all(map(is_id, texts))):
            return [self.ids(one) for one in texts], True
        return [self.ids(texts)], False

    @overload
    def logits(self, text: Prompt) -> Tensor: ...  # type: ignore[overload-overlap]
    @overload
    def logits(self, text: Sequence[Prompt]) -> list[Tensor]: ...

    def logits(self, text: Prompt | Sequence[Prompt]) -> Tensor | list[Tensor]:
        """A score for every entry of the vocabulary after every token: [tokens, vocabulary]; of several texts, a list.

        An empty text is read as the end token, which every text begins after. Texts of unequal length are read
        together, and give what each gives alone.
        """
        import torch

        from cutaway.runtime.torch_texts import halves, read_texts

        if "logits" not in places(self.config):
            raise CutawayError(f"{self.name} has no scores over the vocabulary: its vectors are those of lm.embed.")
        texts, listed = self.several(text)
        _, score = halves(self.model)
        with torch.inference_mode(False), torch.no_grad():  # plain tensors, whoever asks
            found = [score(one).float() for one in read_texts(self.model, texts)]
        return found if listed else found[0]

    @overload
    def score(self, text: Prompt, k: int = 5) -> Score: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, text: Sequence[Prompt], k: int = 5) -> list[Score]: ...

    def score(self, text: Prompt | Sequence[Prompt], k: int = 5) -> Score | list[Score]:
        """How likely the model finds a text: the log-probability of every token, and the k likeliest in its place.

        The first token is scored after the end token, which every text begins after. A list of texts gives a list.
        """
        from cutaway.runtime.scoring import score

        self.refuse_encoder("score a text token by token")
        texts, listed = self.several(text)
        found = score(self, texts, check_count(k, 0))
        return found if listed else found[0]

    def embed(self, texts: Prompt | Sequence[Prompt], cut: bool = False) -> Tensor:
        """One vector a text: the mean over its tokens of what leaves the last layer; its length is not made 1.

        Of an encoder whose folder says otherwise (see `sentence`), what that says. One text gives [width], a list of
        texts [texts, width]. A text that is too long for an encoder is refused, or with `cut` read as far as it goes.
        """
        import torch

        if self.reads_both_ways:
            return self._embed_sentences(texts, cut)
        from cutaway.runtime.torch_texts import read_texts

        if not cached(self.model):
            title = architecture(self.config.kind).title
            raise CutawayError(f"A text's vector is the mean of what `read` gives, and {title} does not declare one.")
        several, listed = self.several(texts)
        with torch.inference_mode(False), torch.no_grad():  # plain tensors, whoever asks
            found = [one.float().mean(dim=0) for one in read_texts(self.model, several)]
            vectors = torch.stack(found) if found else torch.empty(0, self.config.width)
        return vectors if listed else vectors[0]

    def _embed_sentences(self, texts: Prompt | Sequence[Prompt], cut: bool) -> Tensor:
        """The vectors of texts that an encoder reads."""
        import torch

        from cutaway.runtime.encoding import encode, fitting

        plain = isinstance(texts, list | tuple) and bool(texts) and all(isinstance(one, str | bytes) for one in texts)
        rows, listed = (self.sentences(texts), True) if plain else self.several(texts)  # type: ignore[arg-type]
        context = context_of(self.config)
        rows = fitting(rows, min(self.sentence.limit or context, context), cut, self.name)
        reader = self._packed_reader() if sum(map(len, rows)) > WORTH_PACKING else self.model
        with torch.inference_mode():
            vectors = encode(reader, rows, self.sentence, self.device)  # type: ignore[arg-type]
        vectors = vectors.clone()  # a plain tensor, whoever asks
        return vectors if listed else vectors[0]

    def _packed_reader(self) -> Any:
        """The model with its matrices put in order for many products, made again when its weights have changed."""
        from cutaway.runtime.packed_linear import packed

        now = versions(self.model)
        if self._reader is None or self._reader[0] != now:
            self._reader = now, packed(self.model)
        return self._reader[1]

    def fill(self, text: Prompt, k: int = 5) -> list[Gap]:
        """The k likeliest words for every `[MASK]` of a text, by what stands before it and after it."""
        import torch

        from cutaway.runtime.encoding import fill, fitting

        if not self.reads_both_ways:
            title = architecture(self.config.kind).title
            raise CutawayError(
                f"{self.name} is a {title}: it reads from left to right and knows no [MASK]. What may come next is "
                "said by cutaway predict (lm.predict); to fill in a gap, choose a BERT with a masked-word head."
            )
        [ids] = fitting([self.ids(text)], context_of(self.config), False, self.name)
        with torch.inference_mode():
            return fill(self.model, self.tokenizer, ids, check_count(k, 1), self.name, self.device)  # type: ignore[arg-type]

    def next_scores(self, text: Prompt) -> Scores:
        """A score for every entry of the vocabulary after the last token only: [vocabulary]."""
        self.refuse_encoder("say what comes next")
        if self._engine is not None:
            return self.runtime.open().add([self.ids(text) or [self.config.end]])[0]
        import torch

        from cutaway.runtime.torch_texts import halves

        read, score = halves(self.model)
        with torch.inference_mode():  # one text is not worth packing weights for
            return score(read(self.batch_of_one(text))[:, -1])[0].float().cpu().numpy()

    def predict(self, text: Prompt, k: int = 10) -> list[Prediction]:
        """The k likeliest next tokens, likeliest first."""
        chances = softmax(self.next_scores(text))[: len(self.tokenizer)]
        best = likeliest(chances, check_count(k, 1))
        return [
            Prediction(id=token, text=self.text_of(token), probability=chance)
            for token, chance in zip(best.tolist(), chances[best].tolist(), strict=True)
        ]

    def shown(self, ids: Sequence[int]) -> str:
        """The text of these tokens, to be looked at: without a tokenizer their ids in brackets."""
        if isinstance(self.tokenizer, NoTokenizer):
            return "".join(self.tokenizer.token_bytes(token).decode() for token in ids)
        return self.tokenizer.decode(ids)

    def text_of(self, token: int) -> str:
        """The text of one token; empty without a tokenizer."""
        return "" if isinstance(self.tokenizer, NoTokenizer) else self.tokenizer.decode([token])

    @overload
    def generate(
        self,
        prompt: Prompt = "",
        max_tokens: int | None = None,
        *,
        changes: Sequence[Change] = (),
        samples: None = None,
        best: None = None,
        **settings: Any,
    ) -> Result: ...
    @overload
    def generate(
        self,
        prompt: Prompt | Prompts,
        max_tokens: int | None = None,
        *,
        changes: Sequence[Change] = (),
        **settings: Any,
    ) -> list[Result]: ...

    def generate(
        self,
        prompt: Prompt | Prompts = "",
        max_tokens: int | None = None,
        *,
        changes: Sequence[Change] = (),
        **settings: Any,
    ) -> Result | list[Result]:
        """Continue a prompt; an empty one lets the model ramble. See `Settings` for what can be set.

        One prompt gives one result. A list of prompts gives a list; so does asking for several `samples`, or for the n
        `best` of a beam search. With `changes` (see cutaway.inspect.change) every token is written under them.
        """
        chosen = self.settings(settings, max_tokens)
        prompts, listed = self.several(prompt)
        if changes:
            alone = ((self.changed(changes, ids, chosen), [ids]) for ids in prompts)  # each has positions of its own
            results = [result for runtime, own in alone for result in self.write(runtime, own, chosen)]
        else:
            results = self.write(self.runtime, prompts, chosen) if prompts else []
        return results if listed or chosen.samples or chosen.best else results[0]

    def write(self, runtime: Runtime, prompts: list[list[int]], settings: Settings) -> list[Result]:
        """Continue every prompt, by drawing tokens or by a beam search."""
        if not settings.beams:
            return generate(runtime, self.tokenizer, prompts, settings)
        from cutaway.decoding.beams import search

        return search(runtime, self.tokenizer, prompts, settings)

    def stream(
        self, prompt: Prompt = "", max_tokens: int | None = None, *, changes: Sequence[Change] = (), **settings: Any
    ) -> TextStream:
        """Like `generate`, but gives the text piece by piece as it is written; `.result` holds the whole at the end.

        `.tokens()` gives it token by token instead, each with its log-probability.
        """
        chosen = self.settings(settings, max_tokens)
        if chosen.beams or chosen.samples:
            raise CutawayError("Only one text can be streamed: beams and samples are for generate().")
        ids = self.ids(prompt)
        runtime = self.changed(changes, ids, chosen) if changes else self.runtime
        return TextStream(runtime, self.tokenizer, ids, chosen)

    def astream(
        self, prompt: Prompt = "", max_tokens: int | None = None, *, changes: Sequence[Change] = (), **settings: Any
    ) -> AsyncTextStream:
        """`stream` for `async for`: the model runs in a thread, and stops when the task is cancelled."""
        from cutaway.decoding.async_stream import AsyncTextStream

        return AsyncTextStream(self.stream(prompt, max_tokens, changes=changes, **settings))

    def changed(self, changes: Sequence[Change], ids: list[int], settings: Settings) -> Runtime:
        """What writes after this prompt under these changes: torch, which knows every intermediate by its name."""
        self.check_unpacked("Changes are made")
        from cutaway.inspect.generation import under_changes

        return under_changes(self, changes, ids, settings)

    def check_unpacked(self, doing: str) -> None:
        """Refuse what is done by torch where texts are written with rounded weights: it would explain another model."""
        kind = self.weights or (self._engine.weights if self._engine else "float32")
        if kind != "float32":
            raise CutawayError(
                f"{doing} by torch, and {self.name} has weights packed to {kind}: "
                "load it without `weights`, or the model that the file was made of."
            )

    def trace(
        self,
        text: Prompt,
        keep: str | Iterable[str] = "*",
        replace: Mapping[str, Replacement] | None = None,
        gradient: bool = False,
    ) -> Trace:
        """Run the text through the model and keep what it makes on its way, by name; see `Trace` for the patterns.

        The values have no batch dimension: `trace["blocks.0.attention.weights"]` is [head, query, key]. The model runs
        as far as the last of them. They carry no gradient, unless one is asked for.
        """
        from cutaway.parts.trace import TextTrace

        trace, ids = TextTrace(places(self.config), keep, replace, gradient), self.ids(text)
        trace.follow(lambda: self.model(self.batch_of_one(ids), trace=trace))
        return trace

    @overload
    def traces(self, texts: Prompts, keep: str | Iterable[str] = "*") -> list[Trace]: ...
    @overload
    def traces(
        self,
        texts: Prompts,
        keep: str | Iterable[str] = "*",
        *,
        to: str | Path,
        progress: Callable[[int], object] | None = None,
    ) -> TraceStore: ...

    def traces(
        self,
        texts: Prompts,
        keep: str | Iterable[str] = "*",
        *,
        to: str | Path | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> list[Trace] | TraceStore:
        """A trace of each of several texts, which are read together; no padding is left in them.

        With `to`, a folder, they are written there as they are made (the texts may come one by one, and more of them
        than memory holds), and what comes back reads them when they are asked for. Given the same folder again, it
        goes on where it ended. `progress` is told how many texts are done.
        """
        if to is not None:
            from cutaway.runtime.trace_store import store_traces

            if isinstance(texts, str):
                raise CutawayError("Several texts are traced: give a list of them, or anything that gives one by one.")
            return store_traces(self.model, (self.ids(text) for text in texts), keep, to, progress)
        from cutaway.runtime.torch_texts import trace_texts

        return trace_texts(self.model, self.several(texts)[0], keep)

    def sweep(
        self,
        clean: Prompt,
        corrupted: Prompt | None = None,
        what: str = "residual",
        *,
        metric: Metric | Callable[[Tensor], Any],
        how: str = "patch",
        over: Sequence[Prompt] = (),
        layers: Sequence[int] | None = None,
        units: Sequence[int] | None = None,
        exact: bool = True,
        batch: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Sweep:
        """Replace one piece of a run at a time, for every layer and piece, and measure each time.

        `what` is "residual", "attention", "mlp", "head", "attention pattern" or "neuron"; `how` is "patch" (the clean
        run's piece in the corrupted run), "resample" (the other way round), "zero" or "mean" (over the texts `over`).
        Without `exact`, one backward pass estimates all cells. `.values` is the metric of each run: [layer, token],
        [layer, head] or [layer, neuron]. See cutaway.inspect.sweep.
        """
        from cutaway.inspect.sweep import sweep

        return sweep(
            self, clean, corrupted, what, metric=metric, how=how, over=over, layers=layers, units=units, exact=exact,
            batch=batch, progress=progress,
        )  # fmt: skip

    def sweeps(
        self,
        pairs: Iterable[tuple[Prompt, Prompt]],
        what: str = "head",
        *,
        metric: Metric | Callable[[Tensor], Any] | Sequence[Metric | Callable[[Tensor], Any]],
        **given: Any,
    ) -> Sweeps:
        """The same sweep over a data set of pairs: `.mean` and `.margin` (95 %) of each cell's effect.

        The metric is one for all pairs, or a list of one for each; the other settings are those of `sweep`.
        """
        from cutaway.inspect.sweeps import sweeps

        return sweeps(self, pairs, what, metric=metric, **given)

    def save(self, folder: str | Path) -> None:
        """Write a folder that `cutaway.load` and Hugging Face's transformers both read."""
        checkpoint.write_model(self.model, self.tokenizer, Path(folder), recommended=self.recommended)
        if self.reads_both_ways:
            from cutaway.checkpoint.sentence import write_sentence

            write_sentence(self.sentence, self.config.width, Path(folder))

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
        if max_tokens is None and context_of(self.config) == UNLIMITED:
            max_tokens = WITHOUT_END
        drawn = not (given.get("beams") or given.get("top_k") == 1 or given.get("temperature") == 0)
        settings = Settings(max_tokens=max_tokens, **{**(self.recommended if drawn else {}), **given})
        if settings.stop:
            self.tokenizer.encode(settings.stop[0])  # stop strings are text
        for token in settings.logit_bias:
            if not 0 <= token < len(self.tokenizer):
                raise CutawayError(f"A logit bias names token {token:,}: there are {len(self.tokenizer):,} tokens.")
        return settings

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle holds; weights that can be packed again as they are, from the model, are not."""
        state = vars(self) | {"_reader": None}
        current = self._model is not None and versions(self._model) == self._packed_from
        if self._model is not None and self._engine is not None and self._engine.weights == "float32":
            state["_engine"] = None
        return state | {"_packed_from": current}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._packed_from = versions(self._model) if self._model is not None and state["_packed_from"] else None
