"""Recipes: everything that decides a training, as a typed TOML file. What is left out is chosen (see plan.py)."""

from __future__ import annotations

import json
import os
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from cutaway.errors import CutawayError, nearest

SCHEDULES = ("cosine", "linear", "constant", "wsd", "inverse_sqrt", "slanted")
OPTIMIZERS = ("adamw", "muon")
POSITIONS = ("absolute", "relative")
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Model:
    """`[model]`: the model to train."""

    from_: str = ""
    """The model to start from: builtin, a folder, or a name on the hub. Default: a new one."""
    kind: str = ""
    """The kind of a new model: gpt2, transformer, seq2seq, or another that is registered. Default: gpt2."""
    shape: Mapping[str, Any] = field(default_factory=dict)
    """More of a new model's shape, by the fields of its kind: `{ norm = "pre" }`, `{ cell = "lstm" }`."""
    layers: int = 0
    """The number of blocks. Default: chosen to fit the data and the time."""
    width: int = 0
    """The length of each token's vector. Default: chosen to fit."""
    heads: int = 0
    """The number of attention heads in each block. Default: one for every 64 of the width."""
    context: int = 0
    """The longest text the model can process, in tokens. Default: chosen to fit."""
    vocabulary: int = 0
    """The maximum size of a new vocabulary, including the end token. Default: chosen by the size of the data."""
    positions: str = ""
    """How a new model knows where tokens stand: absolute, as GPT-2 does, or relative. Default: absolute."""
    tokenizer: str = ""
    """Whose vocabulary to use: gpt2, a folder, or a model by name. Default: that of `from`, or a new one."""
    dropout: float = 0.0
    """The dropout rate in training. Default: higher, the smaller the data is for the model."""

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "context", "vocabulary"):
            require(f"model.{name}", getattr(self, name), getattr(self, name) >= 0, "1 or more")
        known = self.positions in ("", *POSITIONS)
        require("model.positions", self.positions, known, f"one of {', '.join(POSITIONS)}")
        require("model.dropout", self.dropout, 0 <= self.dropout < 1, "at least 0 and below 1")


@dataclass(frozen=True)
class Data:
    """`[data]`: the training data."""

    paths: tuple[str, ...] = ()
    """Files and folders, looked for beside the recipe file, then in the current folder, then in $CUTAWAY_DATA."""
    columns: Mapping[str, str | int] = field(default_factory=dict)
    """Where a record's fields are, if not under their own names: `{ source = "en", target = "fr" }`, or by number."""
    held_out: float | int = 0.01
    """The share of the documents, or their number, held out from training for evaluation."""
    validation: tuple[str, ...] = ()
    """Files and folders to evaluate on, in place of held-out documents; they are looked for as `paths` are."""
    seed: int = 0
    """Decides which documents are held out, independently of train.seed, so runs with different seeds compare."""
    cache: str = ""
    """The folder for the tokenized data. Default: in the user's cache folder."""

    def __post_init__(self) -> None:
        share = isinstance(self.held_out, int) or self.held_out < 1
        require(
            "data.held_out", self.held_out, self.held_out >= 0 and share, "a share below 1, or a number of documents"
        )
        require("data.seed", self.seed, self.seed >= 0, "0 or more")


@dataclass(frozen=True)
class Lora:
    """`[lora]`: with a rank, the weights are frozen and low-rank adapters are trained (see lora.py)."""

    rank: int = 0
    """The rank of the adapters; 0 trains all weights."""
    alpha: float = 0.0
    """The adapters are scaled by alpha / rank. Default: twice the rank."""

    def __post_init__(self) -> None:
        require("lora.rank", self.rank, self.rank >= 0, "0 or more")
        require("lora.alpha", self.alpha, self.alpha >= 0, "0 or more")


@dataclass(frozen=True)
class Teacher:
    """`[teacher]`: with one, a student learns from it, too, as DistilBERT did from BERT (see teacher.py)."""

    from_: str = ""
    """The teacher: builtin, a folder, or a name on the hub. A new student has its vocabulary. Default: none."""
    start: bool = False
    """Whether a new student begins as the teacher with fewer blocks (`model.layers`; half of them, if left out)."""
    temperature: float = 2.0
    """What both models' scores are divided by for the soft loss: the higher, the more the unlikely words count."""
    soft: float = 5.0
    """The weight of the soft loss, KL divergence from the teacher's chances; 0: without it."""
    hard: float = 2.0
    """The weight of the task's own loss."""
    cosine: float = 1.0
    """The weight of the cosine loss between the last block's vectors of the two; 0: without it."""
    weights: str = ""
    """A digest of the teacher's weights, so that a training goes on with the same teacher. Default: as it is now."""

    def __post_init__(self) -> None:
        for name in ("soft", "hard", "cosine"):
            value = getattr(self, name)
            require(f"teacher.{name}", value, 0 <= value < float("inf"), "a number of 0 or more")
        require("teacher.temperature", self.temperature, 0 < self.temperature < float("inf"), "a number above 0")
        if not (self.soft or self.hard or self.cosine):
            raise CutawayError("teacher.soft, teacher.hard and teacher.cosine are all 0: nothing would be learned.")


@dataclass(frozen=True)
class Train:
    """`[train]`: how to train."""

    steps: int = 0
    """The number of training steps. Default: as many as the time allows, or as the data is good for."""
    time: str = ""
    """How long the whole run may take, as in 30m or 1h30m. Default: 10m, unless steps are given."""
    batch: int = 0
    """The batch size: windows of text, or records, in each step over all processes. Default: chosen to fit."""
    at_once: int = 0
    """How many of these go through the model at once; gradients are accumulated. Default: chosen to fit."""
    length: int = 0
    """The length of a window of text, in tokens. Default: the model's context."""
    optimizer: str = "adamw"
    """The optimizer: adamw, or muon, which learns more from the same data (see muon.py)."""
    learning_rate: float = 0.0
    """The peak learning rate. Default: chosen by the size of the model."""
    schedule: str = "cosine"
    """The learning-rate schedule after warm-up: cosine, linear, constant, wsd (warm-up, stable, decay), inverse_sqrt
    (the Transformer paper's: down with the root of the step), or slanted (ULMFiT's triangle: up from `final`, and down
    to it)."""
    warm_up: float = 0.02
    """The number of warm-up steps; below 1, a share of all steps."""
    decay: float = 0.2
    """The number of decay steps in wsd; below 1, a share of all steps."""
    final: float = 0.1
    """The final learning rate, as a share of the peak; not used by constant and inverse_sqrt."""
    layer_factor: float = 1.0
    """Discriminative rates: each layer learns at this share of the rate of the one above it; ULMFiT has 1 / 2.6."""
    unfreeze_every: float = 0.0
    """Gradual unfreezing: at first only what is above the blocks learns, after every N steps one layer more, from the
    top down; below 1, N is a share of all steps; 0: all learn from the beginning."""
    weight_decay: float = 0.1
    """Weight decay of the matrices; biases and norms are not decayed."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's decay rates for the running means of gradients and of their squares."""
    epsilon: float = 1e-8
    """AdamW's epsilon, which prevents division by zero."""
    clip: float = 1.0
    """The maximum gradient norm; longer gradients are clipped to it. 0: no clipping."""
    precision: str = "auto"
    """The type for matrix products: float32, bfloat16, or auto, whichever is faster here at this width."""
    threads: int = 0
    """The number of CPU threads; it affects the last digits of the result. Default: chosen by the shape."""
    compile: bool = False
    """Whether to compile the blocks (torch.compile): half a minute at the start, then faster steps."""
    recompute: bool = False
    """Activation checkpointing: keep only the blocks' inputs and recompute the rest; less memory, slower."""
    shard: bool = False
    """With several processes: whether to shard the weights (FSDP) or give each process a copy (DDP)."""
    seed: int = 0
    """Decides the initial weights, the order of the data, and dropout."""
    evaluate_every: int = 0
    """Evaluate on held-out data every N steps, and at the end. Default: 20 times in all; 0: at the end only."""
    evaluate_batches: int = 20
    """The number of batches in each of these evaluations; the last one uses all held-out data."""
    checkpoint_every: int = 0
    """Save a checkpoint every N steps. Default: ten times in all, or every two minutes if a time is given."""
    sample_every: int = 0
    """Generate a sample every N steps. Default: ten times in all; 0: never."""
    prompt: str = ""
    """The prompt for a language model's samples. Default: none, or the first words if there are few documents."""
    keep: str = "last"
    """Which weights to keep as the result: last, or best on held-out data."""
    patience: int = 0
    """Stop early, keeping the best weights, after N evaluations in a row without a lower held-out loss; 0: never."""
    tensorboard: bool = False
    """Whether to write metrics for TensorBoard, too (pip install tensorboard)."""

    def __post_init__(self) -> None:
        def check(name: str, fine: bool, what: str) -> None:
            require(f"train.{name}", getattr(self, name), fine, what)

        for name in (
            "steps",
            "batch",
            "at_once",
            "length",
            "evaluate_every",
            "checkpoint_every",
            "sample_every",
            "seed",
            "patience",
            "threads",
        ):
            check(name, getattr(self, name) >= 0, "0 or more")
        for name in ("learning_rate", "warm_up", "decay", "weight_decay", "clip", "unfreeze_every"):
            check(name, 0 <= getattr(self, name) < float("inf"), "a number of 0 or more")
        check("layer_factor", 0 < self.layer_factor <= 1, "above 0 and at most 1")
        check("final", 0 <= self.final <= 1, "between 0 and 1")
        check("epsilon", 0 < self.epsilon < 1, "above 0 and below 1")
        check("betas", all(0 <= beta < 1 for beta in self.betas), "two numbers of at least 0 and below 1")
        check("schedule", self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}")
        check("optimizer", self.optimizer in OPTIMIZERS, f"one of {', '.join(OPTIMIZERS)}")
        check("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")
        check("keep", self.keep in ("last", "best"), "last or best")
        check("evaluate_batches", self.evaluate_batches >= 1, "1 or more")
        if self.time:
            seconds(self.time)


SECTIONS: dict[str, type[Any]] = {"model": Model, "data": Data, "teacher": Teacher, "lora": Lora, "train": Train}
CHOSEN = frozenset(
    f"model.{name}" for name in ("layers", "width", "heads", "context", "vocabulary", "dropout")
) | frozenset(
    f"train.{name}"
    for name in (
        "steps", "time", "batch", "at_once", "length", "learning_rate", "evaluate_every", "checkpoint_every",
        "sample_every", "threads",
    )
) | {"lora.alpha", "teacher.weights"}  # fmt: skip
"""The keys that are chosen to fit where they are left out."""


@dataclass(frozen=True)
class Recipe:
    """A whole recipe. Make one with `load` or `from_dict`, which remember what was said and what was left out."""

    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    task: Mapping[str, Any] = field(default_factory=lambda: {"name": "language"})
    teacher: Teacher = field(default_factory=Teacher)
    lora: Lora = field(default_factory=Lora)
    train: Train = field(default_factory=Train)
    set_keys: frozenset[str] = field(default=frozenset(), compare=False)
    """The keys, like `train.steps`, that were given and are not up for choice."""

    @classmethod
    def load(cls, path: Path | str, changes: Sequence[str] = ()) -> Recipe:
        """The recipe in a TOML file, with changes like `train.steps=100`. Only its own data is looked for beside it."""
        path = Path(path)
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise CutawayError(f"{path} is not valid TOML: {error}.") from None
        except OSError as error:
            raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
        try:
            recipe = cls.from_dict(given)
        except CutawayError as error:
            raise CutawayError(f"{path}: {error}") from None
        changed = recipe.changed(changes)
        anew = {change.partition("=")[0].strip() for change in changes}

        def found(key: str) -> tuple[str, ...]:
            given: tuple[str, ...] = getattr(changed.data, key)
            return given if f"data.{key}" in anew else tuple(located(one, path.parent) for one in given)

        data = replace(changed.data, paths=found("paths"), validation=found("validation"))
        return replace(changed, data=data)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Recipe:
        """A recipe of plain values, `{"train": {"steps": 100}, ...}`; a wrong one is refused by name."""
        return cls().but(given)

    def but(self, given: Mapping[str, Any]) -> Recipe:
        """The same recipe with these values in place of its own, as in `from_dict`."""
        new: dict[str, Any] = {}
        keys = set(self.set_keys)
        for section, values in given.items():
            if section not in (*SECTIONS, "task"):
                raise CutawayError(
                    f"A recipe has no [{section}].{hint(section)} It has {', '.join(SECTIONS)} and task."
                )
            if not isinstance(values, Mapping):
                raise CutawayError(f"[{section}] is a table, not {values!r}.{hint(section)}")
            if section == "task":
                same = values.get("name", self.task["name"]) == self.task["name"]
                new["task"] = {**(self.task if same else {}), **values}
            else:
                typed = {attribute(key): typed_value(section, key, value) for key, value in values.items()}
                new[section] = replace(getattr(self, section), **typed)
            keys |= {f"{section}.{key}" for key in values}
            for name in ("steps", "batch") if section == "train" else ():  # left out, each is chosen
                require(f"train.{name}", values.get(name), values.get(name) != 0, "1 or more")
        return replace(self, **new, set_keys=frozenset(keys))

    def changed(self, changes: Iterable[str]) -> Recipe:
        """The same recipe with changes as they are written on a command line: `train.steps=100`."""
        recipe = self
        for change in changes:
            name, found, text = change.partition("=")
            section, dot, key = name.strip().partition(".")
            if not (found and dot):
                raise CutawayError(f"{change!r} is not a setting: write it like train.steps=100.{hint(section)}")
            recipe = recipe.but({section: {key: parsed(section, key, text.strip())}})
        return recipe

    def decided(self, key: str) -> bool:
        """Whether a key like `train.steps` was given, or is not one that is chosen to fit."""
        return key in self.set_keys or key not in CHOSEN or self.get(key) != Recipe().get(key)

    def get(self, key: str) -> Any:
        """The value of a key like `train.steps`."""
        section, _, name = key.partition(".")
        return self.task.get(name) if section == "task" else getattr(getattr(self, section), attribute(name))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values that `from_dict` makes the same recipe of again; what is yet to be chosen is left out."""
        tables: dict[str, dict[str, Any]] = {}
        for section in ("model", "data", "task", "teacher", "lora", "train"):
            if section == "teacher" and not self.teacher.from_:
                continue
            part = (
                dict(self.task) if section == "task" else {key: self.get(f"{section}.{key}") for key in keys(section)}
            )
            tables[section] = {
                key: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
                for key, value in part.items()
                if value not in ("", (), {}, None) and (section == "task" or self.decided(f"{section}.{key}"))
            }
        return {section: table for section, table in tables.items() if table}

    def to_toml(self) -> str:
        """The recipe as a file."""
        tables = []
        for section, table in self.to_dict().items():
            lines = [f"{key} = {toml(value)}" for key, value in table.items()]
            tables.append("\n".join([f"[{section}]", *lines]))
        return "\n\n".join(tables) + "\n"


def keys(section: str) -> list[str]:
    """What a section of a recipe may have, as it is written there."""
    return [one.name.rstrip("_") for one in fields(SECTIONS[section])]


def attribute(key: str) -> str:
    return "from_" if key == "from" else key  # a word of Python's


def typed_value(section: str, key: str, value: Any) -> Any:
    """A value as the type of its key."""
    if key not in keys(section):
        elsewhere = [other for other in SECTIONS if key in keys(other)]
        there = f" It belongs in [{elsewhere[0]}]." if elsewhere else nearest(key, keys(section))
        raise CutawayError(f"[{section}] has no {key!r}.{there}")
    kind = typing.get_type_hints(SECTIONS[section])[attribute(key)]
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if bool not in kinds and isinstance(value, bool):
        pass
    elif kinds[0] is float and isinstance(value, int | float):
        return value if int in kinds else float(value)
    elif kind in (int, str, bool) and isinstance(value, kind):
        return value
    elif kind == tuple[str, ...] and isinstance(value, str):
        return (value,)
    elif kind == tuple[str, ...] and isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    elif kind == tuple[float, float] and isinstance(value, list | tuple) and len(value) == 2:
        if all(isinstance(one, int | float) for one in value):
            return tuple(float(one) for one in value)
    elif (
        typing.get_origin(kind) is not None
        and issubclass(typing.get_origin(kind), Mapping)
        and isinstance(value, Mapping)
    ):
        return dict(value)
    raise CutawayError(f"{section}.{key} must be {NAMES.get(kind, 'a table')}, not {value!r}.")


NAMES: dict[Any, str] = {
    int: "a whole number", float: "a number", float | int: "a number", str: "text", bool: "true or false",
    tuple[str, ...]: "a list of texts", tuple[float, float]: "two numbers",
}  # fmt: skip


def parsed(section: str, key: str, text: str) -> Any:
    """A value from the command line: as TOML if it is that, else as text."""
    if section in SECTIONS and key in keys(section) and typing.get_type_hints(SECTIONS[section])[attribute(key)] is str:
        return text.strip("\"'")
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def require(key: str, value: Any, fine: bool, what: str) -> None:
    if not fine:
        raise CutawayError(f"{key} must be {what}, not {value!r}.")


def hint(section: str) -> str:
    """For a table that is none: the nearest one, or the one that a key of that name belongs in."""
    home = [name for name in SECTIONS if section in keys(name)]
    return f" {section} belongs in [{home[0]}]." if home else nearest(section, [*SECTIONS, "task"])


def seconds(text: str) -> float:
    """How long 90s, 30m or 1h30m is."""
    number = r"(\d+(?:\.\d+)?)"
    parts = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?", text.replace(" ", ""))
    total = (
        sum(float(part or 0) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True)) if parts else 0
    )
    if not total:
        raise CutawayError(f"{text!r} is not a duration: write it like 90s, 30m or 1h30m.")
    return total


def located(path: str, beside: Path) -> str:
    """Where a recipe's file of data is: beside the recipe, here, in $CUTAWAY_DATA or ../shared/data."""
    wanted = Path(path).expanduser()
    places = [beside, Path(), *(Path(place) for place in (os.environ.get("CUTAWAY_DATA"), "../shared/data") if place)]
    for place in places:
        if (place / wanted).exists():
            return str((place / wanted).resolve())
    looked = ", ".join(str(place.resolve()) for place in dict.fromkeys(places))
    raise CutawayError(f"The recipe's data {path} does not exist. It was looked for in {looked}.")


def toml(value: Any) -> str:
    """A plain value as TOML writes it."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(str(key))} = {toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value) if isinstance(value, bool | int) else repr(float(value))
