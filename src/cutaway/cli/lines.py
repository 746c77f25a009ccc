"""Texts for the verbs that answer line by line: the argument, the lines of a file, or those of a pipe as they come."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from cutaway.cli import drawings, options, screen
from cutaway.cli.options import option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.inspect.two_texts import Alignment
    from cutaway.language_model import LanguageModel
    from cutaway.tasks import Task
    from cutaway.tasks.answer import Answer

WRITING = "How the answer is generated"
TOGETHER = 32

File = Annotated[Path | None, option("--file", "-f", value="FILE", help="Read the texts from this file, one per line.")]
Beams = Annotated[
    int,
    option(
        "--beams",
        value="N",
        panel=WRITING,
        help="Beam search for the most likely answer with N beams; 1 is the fastest.",
    ),
]
MaxTokens = Annotated[
    int | None, option("--max-tokens", "-n", value="N", panel=WRITING, help="Stop each answer after N tokens.")
]
LengthPenalty = Annotated[
    float,
    option("--length-penalty", value="N", panel=WRITING, help="With beams: higher favours longer answers."),
]


@dataclass(frozen=True)
class Texts:
    """What is to be answered."""

    each: Iterator[str]
    at_once: int
    """How many are answered together. A pipe's are answered one by one, for the next may take its time."""


def read_lines(text: str | None, file: Path | None, beams: int = 1) -> Texts:
    """The argument, which is one text whatever is in it, or the lines of the file or pipe, taken as they are needed."""
    if text is not None:
        return Texts(iter([options.read_text(text, file)]), 1)
    if file is not None:
        try:
            return Texts(decoded(file.open("rb"), str(file)), max(1, TOGETHER // max(1, beams)))
        except OSError as error:
            raise CutawayError(f"{file} cannot be read: {error.strerror}.") from None
    if sys.stdin is None or sys.stdin.isatty():
        raise CutawayError("There is no text: give it as an argument, with --file FILE, or through a pipe.")
    return Texts(decoded(sys.stdin.buffer, "Standard input"), 1)


def decoded(lines: IO[bytes], source: str) -> Iterator[str]:
    with lines:
        for number, line in enumerate(lines, 1):
            yield options.decode(line.rstrip(b"\r\n"), f"{source}, line {number:,},")


def shipped(model: str, verb: str) -> str:
    """The model a verb means by "builtin": the one that ships for what it does."""
    return verb if model == "builtin" else model


def untrained(model: str, task: Task, wanted: str, data: str) -> CutawayError:
    """What to say of a model that was trained for another task, and how to get one for the wanted."""
    return CutawayError(
        f"{model} was trained for {task.name}, not for {wanted}. Leave out --model to use the model included, or train "
        f"your own: cutaway train {data} --task {wanted} -o my-model. Then add --model my-model."
    )


def tell_unknown(lm: LanguageModel, texts: Sequence[Sequence[int]]) -> None:
    """An aside about what the vocabulary has no token for, and the model therefore does not see."""
    unknown = lm.tokenizer.specials.get("[UNK]", -1)
    found, count = sum(list(ids).count(unknown) for ids in texts), sum(map(len, texts))
    if found:
        screen.aside(f"{found:,} of {count:,} tokens are not in the vocabulary, and were read as [UNK]")


INCLUDED = {
    "translator": "by the small translator included, which knows short, everyday sentences and gets others wrong",
    "summarizer": "by the small summarizer included, which writes titles for abstracts of papers and gets much wrong",
}


def show_answers(
    model: str,
    answers: Iterable[Answer],
    as_json: bool,
    aligned: Callable[[Answer], Alignment | None] | None = None,
) -> None:
    """Each answer as it comes: a line for a line, or JSON; with `aligned`, what was looked at for it, too.

    What was not read or not finished is told at the end, and, to a person, how far the model that wrote them can be
    trusted if it is one of those included.
    """
    count = cut = unended = 0
    for answer in answers:
        count, cut, unended = count + 1, cut + (answer.cut > 0), unended + (not answer.whole)
        if as_json:
            note: dict[str, Any] = {"note": INCLUDED[model]} if model in INCLUDED else {}
            if aligned is not None:
                note["alignment"] = found.to_dict() if (found := aligned(answer)) else None
            screen.show_json({"model": model, **asdict(answer), **note})
        else:
            if aligned is not None and (found := aligned(answer)):
                drawings.alignment(found)
            screen.put(re.sub(r"\s*[\r\n]\s*", " ", answer.text) + "\n")
    if not as_json:
        tell(count, {"too long, and read without its end": cut, "broken off before its end": unended})
        if model in INCLUDED and screen.err().is_terminal:
            screen.aside(INCLUDED[model])


def tell(count: int, notes: dict[str, int]) -> None:
    """An aside about texts or answers that something happened to; none if nothing did."""
    told = [what if count == 1 else f"{number:,} of {count:,} {what}" for what, number in notes.items() if number]
    if told:
        screen.aside("; ".join(told))
