"""Progress bars on standard error: of files that arrive or are written, of work that is counted; silent unwatched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)  # fmt: skip

from cutaway.cli import screen


@contextmanager
def files() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each file; call what this gives with (file, bytes done, bytes in all)."""
    with _bars() as bars:
        tasks: dict[str, TaskID] = {}

        def report(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=done, total=total)

        yield report


@contextmanager
def one(label: str) -> Iterator[Callable[[int, int], None]]:
    """One bar; call what this gives with (bytes done, bytes in all)."""
    with files() as report:
        yield lambda done, total: report(label, done, total)


@contextmanager
def counted(label: str) -> Iterator[Callable[[int, int], None]]:
    """One bar of things that are counted; call what this gives with (done, in all)."""
    with _bars(MofNCompleteColumn()) as bars:
        task = bars.add_task(label)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _bars(*counting: ProgressColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}", style="dim", markup=False),
        BarColumn(bar_width=None, complete_style="green", finished_style="green", pulse_style="green"),
        *(counting or (DownloadColumn(), TransferSpeedColumn())),
        TimeRemainingColumn(compact=True),
        console=screen.err(),
        transient=True,
        disable=not screen.err().is_terminal or screen.err().is_dumb_terminal,
    )
