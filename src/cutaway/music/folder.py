"""All the performances of a folder, read on all cores; what cannot be read is named, and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cutaway.errors import CutawayError
from cutaway.music.midi import read_midi
from cutaway.music.performance import Performance
from cutaway.processor import cores

ENDINGS = (".mid", ".midi")


@dataclass(frozen=True)
class Folder:
    """What was read, by its path in order, and a sentence for each file that could not be."""

    performances: dict[Path, Performance]
    refused: list[str]

    def __str__(self) -> str:
        notes = sum(map(len, self.performances.values()))
        hours = sum(one.seconds for one in self.performances.values()) / 3600
        files = "performance" if len(self.performances) == 1 else "performances"
        left = f"; left out: {len(self.refused):,}" if self.refused else ""
        return f"{len(self.performances):,} {files}, {notes:,} notes, {hours:.1f} hours{left}"


def midi_files(paths: Sequence[str | Path]) -> list[Path]:
    """The MIDI files among these files and folders, in an order that does not depend on the machine."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(one for one in path.rglob("*") if one.suffix.lower() in ENDINGS and one.is_file())
        elif path.is_file():
            found.append(path)
        else:
            raise CutawayError(f"There is no file or folder {path}.")
    if not found:
        raise CutawayError(f"There is no MIDI file in {', '.join(map(str, paths))}.")
    return found


def read_folder(*paths: str | Path, workers: int | None = None) -> Folder:
    """Every performance in these files and folders."""
    files = midi_files(paths)
    performances: dict[Path, Performance] = {}
    refused: list[str] = []
    for path, one in zip(files, read_all(files, workers or cores()), strict=True):
        if isinstance(one, Performance):
            performances[path] = one
        else:
            refused.append(one)
    return Folder(performances, refused)


def read_all(files: Sequence[Path], workers: int) -> Iterator[Performance | str]:
    def read(path: Path) -> Performance | str:
        try:
            return read_midi(path)
        except CutawayError as error:
            return str(error)

    with ThreadPoolExecutor(workers) as threads:
        yield from threads.map(read, files)
