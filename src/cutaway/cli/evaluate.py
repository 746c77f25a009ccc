"""`cutaway evaluate`: how good a model is, and how that was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from cutaway.cli import options, screen
from cutaway.cli.classify import load_classifier
from cutaway.cli.options import option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.evaluate.lambada import Lambada
    from cutaway.evaluate.performances import Performed
    from cutaway.evaluate.perplexity import Perplexity
    from cutaway.tasks.scores import Score

TEXT, RECORDS, MUSIC = "Text", "Records of a task", "Performances"


def evaluate(
    on: Annotated[
        str,
        option(
            "--on", value="DATA", help="wikitext2, wikitext103, lambada, or a file or folder of your own, of MIDI too."
        ),
    ],
    window: Annotated[
        int | None,
        option(
            "--window",
            value="N",
            panel=TEXT,
            help="How many tokens the model sees at once. [dim]\\[default: its context][/]",
        ),
    ] = None,
    stride: Annotated[
        int | None,
        option(
            "--stride",
            value="N",
            panel=TEXT,
            help="The distance between the starts of windows. [dim]\\[default: half a window][/]",
        ),
    ] = None,
    detokenizer: Annotated[
        str | None,
        option("--detokenizer", value="NAME", panel=TEXT, help="wikitext or none. [dim]\\[default: by data set][/]"),
    ] = None,
    beams: Annotated[
        int,
        option("--beams", value="N", panel=RECORDS, help="Translations and summaries: the number of beams."),
    ] = 4,
    column: Annotated[
        list[str] | None,
        option(
            "--column", value="FIELD=NAME", panel=RECORDS, help="Which column of the file a field is in. Repeatable."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        option("--against", value="FOLDER", panel=MUSIC, help="MIDI files to compare with those of --on."),
    ] = None,
    limit: Annotated[int | None, option("--limit", value="N", help="Only the first N records or documents.")] = None,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure a model, and say how it was measured.

    A language model by perplexity and bits per byte, or by its accuracy on LAMBADA.

    A translator by BLEU, a summarizer by ROUGE, a classifier by its accuracy, on records like those it was trained on.

    A pianist by its loss on MIDI files, per event and per note; and performances by density, dynamics, repetition.

    Example: cutaway evaluate --on wikitext2 --model gpt2

    Example: cutaway evaluate --on test.tsv --model my-translator

    Example: cutaway evaluate --on composed --against played
    """
    from cutaway.tasks import load_task

    if is_midi(on):
        evaluate_music(on, against, limit, window, stride, model, device, as_json)
        return
    if against is not None:
        raise CutawayError("--against compares MIDI files: --on must name some, too.")
    columns = read_columns(column or [])
    folder = options.locate(model)
    task = load_task(folder)
    if task.outputs and dtype is not None:
        raise CutawayError("A classifier is measured in float32: leave out --dtype.")
    if task.outputs and tokenizer is not None:
        raise CutawayError("A classifier is measured with its own tokenizer: leave out --tokenizer.")
    with screen.working("looking for the data"):
        from cutaway.evaluate import run

        run.find(on)  # refused before the model is loaded
    lm = load_classifier(model, device) if task.outputs else options.load(model, device, dtype, tokenizer=tokenizer)
    with counting(on) as report:
        found = run.evaluate(lm, on, task, window, stride, detokenizer, beams, limit, columns or None, report)
    if as_json:
        screen.show_json(found.as_dict())
        return
    show(found.result)
    screen.show()
    screen.show(found.how)


def is_midi(on: str) -> bool:
    """Whether MIDI files are meant; asked without anything heavy."""
    path = Path(on)
    files = path.rglob("*") if path.is_dir() else [path]
    return any(one.suffix.lower() in (".mid", ".midi") for one in files)


def evaluate_music(
    on: str,
    against: Path | None,
    limit: int | None,
    window: int | None,
    stride: int | None,
    model: str,
    device: str | None,
    as_json: bool,
) -> None:
    """Performances, and how well a pianist predicts them: the one that is named or included, if there is one."""
    from cutaway.checkpoint.locate import PIANIST, SHIPPED

    included = PIANIST if PIANIST in SHIPPED else None
    name = included if model == "builtin" else model
    lm = None if name is None else options.load(name, device, None)
    with screen.working("reading"):
        from cutaway.evaluate.performances import evaluate_performances
    with counting(on) as report:
        found = evaluate_performances(on, lm, against, limit, window, stride, report)
    if as_json:
        screen.show_json(found.as_dict())
        return
    for sentence in found.refused:
        screen.aside(sentence)
    show_performances(found)
    screen.show()
    screen.show(found.how)


def show_performances(found: Performed) -> None:
    """A table: where nine of ten performances lie, and beside it where those compared with do."""
    if found.loss is not None:
        screen.show(f"nats per event  {found.loss.nats_per_token:.4f}")
        screen.show(f"nats per note   {found.loss_per_note:.4f}")
        screen.show()
    beside = f"  {'compared with':>28}  {'within':>7}" if found.reference else ""
    screen.show(Text(f"{'':<12}{'5 %':>10}{'median':>10}{'95 %':>10}{beside}", "dim"))
    for name, one in found.measures.items():
        line = f"{name:<12}{one.low:>10.2f}{one.middle:>10.2f}{one.high:>10.2f}"
        if other := found.reference.get(name):
            line += f"  {other.low:>8.2f}{other.middle:>10.2f}{other.high:>10.2f}  {100 * found.within[name]:>5.0f} %"
        screen.show(line)
    from cutaway.music.statistics import CLASSES

    screen.show()
    shares = "  ".join(f"{name} {100 * share:.0f}" for name, share in zip(CLASSES, found.pitch_classes, strict=True))
    screen.show(f"notes, in percent: {shares}")


def read_columns(given: list[str]) -> dict[str, str | int]:
    """`["source=en", "target=1"]` -> `{"source": "en", "target": 1}`."""
    columns: dict[str, str | int] = {}
    for one in given:
        field, found, name = one.partition("=")
        if not (field and found and name):
            raise CutawayError(
                f"--column takes a field and the name or number of its column, like text=sentence, not {one!r}."
            )
        columns[field] = int(name) if name.isdecimal() else name
    return columns


def show(result: Perplexity | Lambada | Score) -> None:
    """The numbers, that which matters most first."""
    rows = numbers(result)
    name_cells, number_cells = (max(len(row[part]) for row in rows) for part in (0, 1))
    for place, (name, number, unit) in enumerate(rows):
        line = f"{name:<{name_cells}}  {number:>{number_cells}}{unit}"
        screen.show(Text(line, "dim" if place else ""))


def numbers(result: Perplexity | Lambada | Score) -> list[tuple[str, str, str]]:
    """Name, number and unit."""
    from cutaway.evaluate.lambada import Lambada
    from cutaway.evaluate.perplexity import Perplexity

    if isinstance(result, Perplexity):
        words = result.word_perplexity
        return [
            ("perplexity", f"{result.perplexity:,.2f}", ""),
            ("bits per byte", f"{result.bits_per_byte:.4f}", ""),
            ("nats per token", f"{result.nats_per_token:.4f}", ""),
            *([] if words is None else [("word perplexity", f"{words:,.2f}", "")]),
        ]
    if isinstance(result, Lambada):
        return [
            ("accuracy", f"{100 * result.accuracy:.2f}", "%"),
            ("perplexity", f"{result.perplexity:,.2f}", ""),
            ("token accuracy", f"{100 * result.token_accuracy:.2f}", "%"),
            ("token perplexity", f"{result.token_perplexity:,.2f}", ""),
            ("filtered accuracy", f"{100 * result.filtered_accuracy:.2f}", "%"),
        ]
    unit = "%" if result.name == "accuracy" else ""
    parts = [(name, f"{value:.2f}", unit) for name, value in result.parts.items() if name != result.name]
    return [(result.name, f"{result.value:.2f}", unit), *parts]


@contextmanager
def counting(on: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; call what this gives with how much is done, and of how much."""
    with Progress(
        TextColumn("{task.description}", style="dim", markup=False),
        BarColumn(bar_width=None, complete_style="green", finished_style="green", pulse_style="green"),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        console=screen.err(),
        transient=True,
        disable=not screen.err().is_terminal or screen.err().is_dumb_terminal,
    ) as bar:
        task = bar.add_task(on, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
