"""The record of a training, one JSON object a line: `metrics.jsonl`, a line a step; and `samples.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from cutaway.atomic import write_text
from cutaway.errors import CutawayError
from cutaway.train.state import cannot_write


class Lines:
    """A file that grows by a line at a time. Begun again, it forgets the lines after the step it goes on from."""

    def __init__(self, path: Path, step: int):
        self.path = path
        try:
            kept = [line for line in read_lines(path) if line["step"] <= step]
            write_text(path, "".join(map(line_of, kept)))
            self.file: IO[str] = path.open("a", encoding="utf-8")
        except OSError as error:
            raise cannot_write(path, error) from error

    def add(self, line: Mapping[str, Any]) -> None:
        try:
            self.file.write(line_of(line))
            self.file.flush()
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def close(self) -> None:
        self.file.close()


def line_of(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False) + "\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of such a file; one that was cut short, as by a power cut, ends it."""
    found: list[dict[str, Any]] = []
    if not path.is_file():
        return found
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                break
            if not isinstance(line, dict) or "step" not in line:
                break
            found.append(line)
    return found


class TensorBoard:
    """The same numbers for TensorBoard, in `tensorboard/` of the output folder."""

    def __init__(self, folder: Path, step: int):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise CutawayError("train.tensorboard needs TensorBoard: pip install tensorboard.") from None
        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1 if step else None)

    def add(self, line: Mapping[str, Any]) -> None:
        for name, value in line.items():
            if name not in ("step", "time"):
                self.writer.add_scalar(name, value, line["step"])

    def close(self) -> None:
        self.writer.close()
