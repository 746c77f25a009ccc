"""`cutaway tokens`: how a text is cut. Needs only a vocabulary: neither weights nor torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from cutaway.cli import options, screen
from cutaway.cli.options import option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

LEARNING = "Train a vocabulary of your own"


def tokens(
    text: Annotated[str | None, options.argument(metavar="TEXT", help="The text to tokenize.")] = None,
    file: options.File = None,
    special: options.Special = False,
    train: Annotated[
        list[Path] | None,
        option("--train", value="FILE", panel=LEARNING, help="Train on this file (also .gz, .xz, .bz2). Repeatable."),
    ] = None,
    size: Annotated[int, option("--size", value="N", panel=LEARNING, help="The maximum number of tokens.")] = 4_096,
    output: Annotated[
        Path | None, option("--output", "-o", value="FOLDER", panel=LEARNING, help="The folder to write.")
    ] = None,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    as_json: options.AsJson = False,
) -> None:
    """Show how a text is split into tokens, or train a vocabulary.

    The text is the argument, a file, or standard input when it is piped; any bytes are accepted, UTF-8 or not.

    Example: cutaway tokens "A robot must obey"

    Example: cutaway tokens --train my.txt --size 4096 -o my-vocabulary
    """
    if train or output:
        if text is not None or file is not None:
            raise CutawayError("A vocabulary is trained on --train FILE: leave out the text.")
        learn(train or [], size, output, as_json)
        return
    data, _ = options.read_bytes(text, file)
    cutter = options.load_tokenizer(model, tokenizer)
    ids = cutter.encode(data, special=special)
    pieces = [cutter.token_bytes(token) for token in ids]
    characters = len(data.decode(errors="replace"))
    if as_json:
        screen.show_json(
            {
                "model": model,
                "text": _text(data),
                "tokens": [
                    {
                        "position": position,
                        "id": token,
                        **gpt2_id(cutter, token),
                        "text": _text(piece),
                        "bytes": piece.hex(" "),
                    }
                    for position, (token, piece) in enumerate(zip(ids, pieces, strict=True))
                ],
                "count": {"tokens": len(ids), "characters": characters, "bytes": len(data)},
            }
        )
        return
    if ids:
        screen.show(screen.chips(pieces))
        screen.show()
        _table(ids, pieces, cutter.gpt2_ids)
        screen.show()
    counts = ((len(ids), "token"), (characters, "character"), (len(data), "byte"))
    screen.show(", ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts), style="dim")


def learn(files: list[Path], size: int, output: Path | None, as_json: bool) -> None:
    """A new byte-level BPE from files of any size, written as a folder."""
    from cutaway.cli import progress
    from cutaway.text.tokenizer import Tokenizer

    if not files or output is None:
        raise CutawayError("To train a vocabulary, give both --train FILE and --output FOLDER.")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CutawayError(f"{output} already exists. Choose another name.")
    with progress.one(", ".join(path.name for path in files)) as report:
        tokenizer = Tokenizer.train_files(files, size, progress=report)
    tokenizer.save(output)
    if as_json:
        screen.show_json({"output": str(output), "tokens": len(tokenizer), "end": tokenizer.end})
    else:
        screen.show(Text(str(output)))
        screen.aside(f"{len(tokenizer):,} tokens")


def gpt2_id(tokenizer: Tokenizer, token: int) -> dict[str, int]:
    """The id in GPT-2's vocabulary, where this one is a part of that."""
    return {} if tokenizer.gpt2_ids is None else {"gpt2": tokenizer.gpt2_ids[token]}


def _table(ids: list[int], pieces: list[bytes], gpt2_ids: list[int] | None) -> None:
    """Line by line, so that a text of any length begins to show at once."""
    shown = [screen.visible(piece) for piece in pieces]
    widest = min(max(cell_len(text) for text in shown), 32)
    beside = f"{'GPT-2':>7}  " if gpt2_ids else ""
    screen.show(f"{'position':>8}  {'id':>7}  {beside}{'text':<{widest}}  bytes", style="dim")
    for position, (token, text, piece) in enumerate(zip(ids, shown, pieces, strict=True)):
        label = text if cell_len(text) > widest else set_cell_size(text, widest)
        beside = f"{gpt2_ids[token]:>7}  " if gpt2_ids else ""
        screen.show(f"{position:>8}  {token:>7}  {beside}{label}  {piece.hex(' ')}")


def _text(data: bytes) -> str | None:
    """The text these bytes are, or None when they are only part of a character."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
