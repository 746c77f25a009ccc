"""What the verbs share on their command lines: the model, where a text comes from, JSON. Imports no torch by itself."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cutaway.cli import screen
from cutaway.errors import CutawayError
from cutaway.models.gpt2.shape import SIZES, Config

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel
    from cutaway.text.tokenizer import Tokenizer

CHOOSING = "How each token is chosen"


@dataclass(frozen=True)
class Option:
    """What stands on the command line after its name; a flag's `value` is empty."""

    names: tuple[str, ...]
    value: str
    help: str
    panel: str | None


@dataclass(frozen=True)
class Argument:
    """What stands on the command line by itself."""

    metavar: str
    help: str
    show_default: bool


def option(*names: str, value: str = "", help: str, panel: str | None = None) -> Any:  # noqa: A002
    """An option; `value` names what it takes, and a flag takes nothing."""
    return Option(names, value, help, panel)


def argument(metavar: str, help: str, show_default: bool = True) -> Any:  # noqa: A002
    return Argument(metavar, help, show_default)


Model = Annotated[
    str, option("--model", "-m", value="MODEL", help="builtin, a folder with a checkpoint, or a name on the hub.")
]
Encoder = Annotated[
    str,
    option(
        "--model", "-m", value="MODEL",
        help="A folder with a BERT, DistilBERT or MiniLM, or a name on the hub. "
        "[dim]\\[default: the small BERT included][/]",
    ),
]  # fmt: skip
TokenizerName = Annotated[
    str | None,
    option(
        "--tokenizer",
        value="NAME",
        help="gpt2, or a folder, instead of the model's own. [dim]\\[default: the one in the model's folder][/]",
    ),
]
AsJson = Annotated[bool, option("--json", help="Print only JSON.")]
Device = Annotated[
    str | None, option("--device", value="DEVICE", help="cpu, cuda or mps. [dim]\\[default: the fastest][/]")
]
Dtype = Annotated[
    str | None, option("--dtype", value="TYPE", help="float32, bfloat16 or float16. [dim]\\[default: float32][/]")
]
Engine = Annotated[
    str, option("--engine", value="ENGINE", help="Generate with torch, native, or auto (native on the CPU).")
]
Weights = Annotated[
    str | None,
    option("--weights", value="KIND", help="Pack the weights (native engine): float32, bfloat16, int8, int4."),
]
File = Annotated[Path | None, option("--file", "-f", value="FILE", help="Read the text from this file.")]
Special = Annotated[bool, option("--special", help="Read <|endoftext|> in the text as the end token, not as text.")]
Temperature = Annotated[
    float | None,
    option(
        "--temperature", "-t", value="N", panel=CHOOSING,
        help="Below 1 surer, above 1 wilder; 0 is greedy. [dim]\\[default: what the model recommends, or 1][/]",
    ),
]  # fmt: skip
TopK = Annotated[
    int | None,
    option(
        "--top-k", "-k", value="N", panel=CHOOSING,
        help="Among the N likeliest; 0: among all. [dim]\\[default: what the model recommends, or 40][/]",
    ),
]  # fmt: skip
Seed = Annotated[int | None, option("--seed", "-s", value="N", panel=CHOOSING, help="Same seed, same result.")]


def given_settings(
    temperature: float | None,
    top_k: int | None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
) -> dict[str, Any]:
    """The settings that stand on the command line; for the others a model may recommend something."""
    given = {"temperature": temperature, "top_p": top_p, "min_p": min_p, "repetition_penalty": repetition_penalty}
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return found if top_k is None else {**found, "top_k": top_k or None}


def load(
    model: str,
    device: str | None,
    dtype: str | None,
    engine: str = "auto",
    weights: str | None = None,
    tokenizer: str | None = None,
) -> LanguageModel:
    """The model by name, with a sign of life while it wakes up."""
    path = locate(model)  # with a bar, if it must be fetched
    with screen.working(f"waking {model}"):
        from cutaway.checkpoint.opened import open_checkpoint
        from cutaway.loading import load

        return load(open_checkpoint(path, model), device, dtype, weights, tokenizer, engine)


def load_tokenizer(model: str, tokenizer: str | None = None) -> Tokenizer:
    """Only a model's tokenizer, or the one that is named. That of OpenAI's four sizes ships with the package."""
    model = tokenizer or model
    if model in SIZES and not Path(model).is_dir():
        from cutaway.text.tokenizer import Tokenizer

        return Tokenizer.load("gpt2")
    from cutaway.checkpoint.opened import open_checkpoint

    return open_checkpoint(locate(model)).read_tokenizer()


def locate(model: str) -> Path:
    """The folder a model's name stands for; from the hub, if need be, with a progress bar."""
    from cutaway.checkpoint.locate import SHIPPED
    from cutaway.checkpoint.locate import locate as find

    if model in SHIPPED and (Path(model) / "config.json").is_file():
        screen.aside(f"{model} is the model included; the folder of that name here is --model ./{model}")
    if model in SHIPPED or Path(model).exists():
        return find(model)
    from cutaway.cli import progress

    with progress.files() as report:
        return find(model, report)


def read_config(model: str) -> Config:
    """Only a model's shape. Those of OpenAI's four sizes are known without their files."""
    if model in SIZES and not Path(model).is_dir():
        return SIZES[model]
    from cutaway import checkpoint

    return checkpoint.read_config(locate(model))


def read_bytes(text: str | None, file: Path | None) -> tuple[bytes, str]:
    """The text to work on and where it came from: the argument, the file, or standard input when it is piped."""
    if text is not None and file is not None:
        raise CutawayError("Give the text itself or --file, not both.")
    if text is not None:
        return os.fsencode(text), "The text"
    if file is not None:
        try:
            return file.read_bytes(), str(file)
        except OSError as error:
            raise CutawayError(f"{file} cannot be read: {error.strerror}.") from None
    if sys.stdin is None or sys.stdin.isatty():
        return b"", "The text"
    return sys.stdin.buffer.read(), "Standard input"


def read_text(text: str | None, file: Path | None) -> str:
    """Like `read_bytes`, as text. One line end at the end of a file or pipe belongs to the file, not to the text."""
    data, source = read_bytes(text, file)
    if text is None:
        data = data[:-2] if data.endswith(b"\r\n") else data.removesuffix(b"\n")
    return decode(data, source)


def decode(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CutawayError(
            f"{source} is not UTF-8: byte {data[error.start]:#04x} at position {error.start:,} is not valid there. "
            "Save it as UTF-8, or look at it with `cutaway tokens`, which reads any bytes."
        ) from None
