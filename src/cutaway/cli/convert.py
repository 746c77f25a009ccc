"""`cutaway convert`: a model from any source, written for another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from cutaway.atomic import written_beside
from cutaway.cli import options, screen
from cutaway.cli.options import option
from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import architecture

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

PACKED = ("cutaway-int8", "cutaway-int4", "cutaway-bfloat16", "cutaway-float32")
DRAFT = "draft"
KINDS = ("huggingface", "gguf-f32", "gguf-f16", "gguf-q8_0", "gguf-q4_0", "onnx", *PACKED, DRAFT)
TYPES = ("float32", "bfloat16", "float16")


def convert(
    output: Annotated[Path, option("--output", "-o", value="OUT", help="The folder (huggingface) or file to write.")],
    to: Annotated[str, option("--to", value="KIND", help=f"{', '.join(KINDS)}.")],
    source: Annotated[str | None, options.argument(metavar="MODEL", help="The model; the same as --model.")] = None,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    dtype: Annotated[
        str | None, option("--dtype", value="TYPE", help="huggingface: store as float32, bfloat16 or float16.")
    ] = None,
    text: Annotated[
        Path | None,
        option(
            "--text",
            value="FILE",
            help="cutaway-...: measure the cost of rounding on this text, not on generated text. draft: make it of it.",
        ),
    ] = None,
    force: Annotated[bool, option("--force", help="Overwrite an existing output.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a model as a Hugging Face folder, GGUF, ONNX or packed for the native engine.

    GGUF is what llama.cpp runs, ONNX what onnxruntime does. A packed model is one file, NAME.cutaway.

    A draft is a table of what usually follows in texts like yours: as draft.npy in the model's folder (as
    NAME.draft.npy beside NAME.cutaway) it lets the native engine guess ahead. Texts stay the same and come sooner.

    The model may also be a folder with OpenAI's original TensorFlow files.

    Example: cutaway convert gpt2 --to gguf-q8_0 -o gpt2.gguf
    """
    if source is not None and model not in ("builtin", source):
        raise CutawayError(f"Two models were named, {source} and {model}: one is converted at a time.")
    check(output, to, dtype, force)
    if to == DRAFT and text is None:
        raise CutawayError("A draft is made of text like what the model will write: name a file with --text.")
    if text is not None and to not in (*PACKED, DRAFT):
        raise CutawayError(f"--text is for packed models ({', '.join(PACKED)}): {to} rounds nothing that is measured.")
    given = None if text is None else options.read_text(None, text)
    lm = options.load(source or model, device="cpu", dtype=None, tokenizer=tokenizer)
    kind, cost = architecture(lm.config.kind), None
    if to != "huggingface" and not (kind.native if to in (*PACKED, DRAFT) else kind.kind == "gpt2"):
        raise CutawayError(f"{to} is for GPT-2 and {lm.name} is a {kind.title}. A huggingface folder holds any model.")
    if to in PACKED:
        cost = convert_packed(source or model, lm, output, to, given, text)
    elif to == DRAFT:
        write_draft(lm, given or "", output)
    else:
        write_foreign(source or model, lm, output, to, dtype)
    if to in (*PACKED, "huggingface"):
        take_draft_along(options.locate(source or model), output)
    size = sum(path.stat().st_size for path in ([output] if output.is_file() else output.iterdir()) if path.is_file())
    if as_json:
        screen.show_json(
            {"model": lm.name, "to": to, "output": str(output), "bytes": size} | ({"cost": cost} if cost else {})
        )
    else:
        screen.show(Text(str(output)))
        screen.aside(f"{to}, {size / 1e6:,.1f} MB")
        if cost:
            screen.aside(
                f"loss {cost['loss']:.4f} nats a token, {cost['loss_added']:+.4f} against float32, "
                f"over {cost['tokens']:,} tokens of {cost['text']}; "
                f"logits moved by {cost['mean_difference']:.2g} on average, {cost['largest_difference']:.2g} at most"
            )


def check(output: Path, to: str, dtype: str | None, force: bool) -> None:
    """Refuse before the model is read what would be refused after."""
    if to not in KINDS:
        raise CutawayError(f"There is no kind {to!r}.{nearest(to, KINDS)} Known: {', '.join(KINDS)}.")
    if dtype is not None and to != "huggingface":
        raise CutawayError(
            f"--dtype is for huggingface folders. The name {to} already says how the weights are stored."
        )
    if dtype is not None and dtype not in TYPES:
        raise CutawayError(f"There is no data type {dtype!r}.{nearest(dtype, TYPES)} Known: {', '.join(TYPES)}.")
    if to == DRAFT and output.suffix != ".npy":
        raise CutawayError(f"A draft is a file whose name ends in .npy, like {output.stem}.npy.")
    if to in PACKED and output.suffix != ".cutaway":
        raise CutawayError(f"A packed model is a file whose name ends in .cutaway, like {output.stem}.cutaway.")
    folder = to == "huggingface"
    if output.exists() and output.is_dir() != folder:
        raise CutawayError(
            f"{output} is a {'file' if folder else 'folder'}: {to} writes a {'folder' if folder else 'file'}."
        )
    there = any(output.iterdir()) if output.is_dir() else output.exists()
    if there and not force:
        raise CutawayError(f"{output} already exists. Choose another name, or overwrite it with --force.")


def write_foreign(model: str, lm: LanguageModel, output: Path, to: str, dtype: str | None) -> None:
    """The kinds that other programs read."""
    from cutaway.cli import progress

    if to == "huggingface":
        from cutaway import checkpoint
        from cutaway.loading import number_type
        from cutaway.tasks import load_task, save_task

        with screen.working(f"writing {output}"):
            kind = number_type(dtype) if dtype else None
            checkpoint.write_model(lm.model, lm.tokenizer, output, kind, recommended=lm.recommended)
            task = load_task(options.locate(model))
            if task.name != "language":
                save_task(task, output)  # a translator stays one
    elif to == "onnx":
        from cutaway.checkpoint import onnx

        with progress.one(str(output)) as report:
            onnx.write_onnx(lm.model, output, report)
    else:
        from cutaway.checkpoint import gguf

        with progress.one(str(output)) as report:
            gguf.write_gguf(lm.model, lm.tokenizer, output, to.removeprefix("gguf-"), Path(lm.name).name, report)


def write_draft(lm: LanguageModel, text: str, output: Path) -> None:
    """The n-grams of a text, for guessing ahead."""
    from cutaway.runtime.native.ngrams import make_ngrams, text_of
    from cutaway.text.vocabulary import END

    with screen.working("counting what follows what"):
        documents = [lm.tokenizer.encode(one) for one in text.split(END)]
        make_ngrams(text_of(documents, lm.config.end)).save(output)


def take_draft_along(source: Path, output: Path) -> None:
    """The table by which a model guesses ahead, if it has one, goes where it is converted to."""
    from cutaway.runtime.native.ngrams import beside

    if (draft := beside(source)).is_file() and draft.resolve() != beside(output).resolve():
        with written_beside(beside(output)) as partial:
            partial.write_bytes(draft.read_bytes())


def convert_packed(
    model: str, lm: LanguageModel, output: Path, to: str, held_out: str | None, source: Path | None
) -> dict[str, str | int | float]:
    """Pack the model, measure what that cost, and write the file; gives the cost."""
    from dataclasses import asdict

    from cutaway.cli import progress
    from cutaway.runtime.native import rounding_cost as cost
    from cutaway.runtime.native.engine import Engine
    from cutaway.runtime.native.pack import pack
    from cutaway.runtime.native.packed_file import write_packed
    from cutaway.tasks import load_task

    with progress.one(str(output)) as report:
        if to == "cutaway-int4":
            from cutaway.runtime.native.calibrate import pack_calibrated

            packed = pack_calibrated(lm.model, lm.tokenizer, report)
        else:
            packed = pack(lm.model, to.removeprefix("cutaway-"), report)
    with screen.working("measuring what it cost"):
        windows = cost.windows_of(lm.model, lm.tokenizer, held_out)
        if not windows:
            raise CutawayError(f"{source} is empty: there is nothing to measure.")
        found = cost.measure(lm.model, Engine(packed), windows, str(source or "its own writing"))
        report_of = asdict(found) | {"loss_added": found.loss_added}
        task = load_task(options.locate(model)).settings()
        write_packed(packed, lm.tokenizer, output, report_of, task, lm.recommended)
    return report_of
