"""`cutaway compose`: a piano performance, from nothing, after a primer or around a melody."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cutaway.cli import lines, options, progress, screen
from cutaway.cli.options import CHOOSING, option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.music.compose import Composition

GIVEN, ALSO = "What is given", "What else is written"


def compose(
    output: Annotated[
        Path, option("--output", "-o", value="FILE", help="The MIDI file to write; of several, out-1.mid and so on.")
    ] = Path("composition.mid"),
    seconds: Annotated[
        float | None,
        option(
            "--seconds",
            value="N",
            help="How much new music, in seconds. [dim]\\[default: 30, or as long as the melody][/]",
        ),
    ] = None,
    count: Annotated[int, option("--count", "-n", value="N", help="Compose N performances at once.")] = 1,
    primer: Annotated[
        Path | None, option("--primer", value="FILE", panel=GIVEN, help="Continue this performance (a MIDI file).")
    ] = None,
    melody: Annotated[
        Path | None, option("--melody", value="FILE", panel=GIVEN, help="Accompany this melody (a MIDI file).")
    ] = None,
    key: Annotated[
        str | None, option("--key", value="KEY", panel=GIVEN, help="Stay in this key: 'C major', 'F# minor'.")
    ] = None,
    temperature: options.Temperature = None,
    top_p: Annotated[
        float | None,
        option(
            "--top-p",
            value="P",
            panel=CHOOSING,
            help="From the smallest set that reaches this probability. [dim]\\[default: 0.97][/]",
        ),
    ] = None,
    seed: options.Seed = None,
    wav: Annotated[bool, option("--wav", panel=ALSO, help="The sound, played by a piano of our own: out.wav.")] = False,
    png: Annotated[bool, option("--png", panel=ALSO, help="The piano roll as a picture: out.png.")] = False,
    model: options.Model = "builtin",
    device: options.Device = None,
    engine: options.Engine = "auto",
    weights: options.Weights = None,
    as_json: options.AsJson = False,
) -> None:
    """Compose a piano performance.

    It is written event by event, as keys going down and coming up; every note ends. Without --primer or --melody it
    starts from nothing.

    Example: cutaway compose -o out.mid --seconds 60 --seed 1 --wav

    Example: cutaway compose -o out.mid --primer mine.mid --key "D minor"
    """  # fmt: skip
    if output.suffix.lower() not in (".mid", ".midi"):
        raise CutawayError(f"{output} should end in .mid: what is composed is a MIDI file.")
    if not output.parent.is_dir():
        raise CutawayError(f"There is no folder {output.parent} to write {output.name} into.")
    model = pianist(model)
    from cutaway.music.compose import compose as write
    from cutaway.music.midi import read_midi
    from cutaway.music.rules import key_notes

    if key:
        key_notes(key)  # refused before a model is loaded
    given, tune = (None if path is None else read_midi(path) for path in (primer, melody))
    lm = options.load(model, device, None, engine, weights)
    settings = options.given_settings(temperature, None, top_p)
    begun = time.perf_counter()
    with progress.counted("composing, in seconds of music") as report:
        heard = lambda done, total: report(round(done), round(total))  # noqa: E731
        found = write(lm, seconds, seed, count, given, tune, key, heard, **settings)
    took = time.perf_counter() - begun
    paths = [output] if count == 1 else [output.with_stem(f"{output.stem}-{number + 1}") for number in range(count)]
    files = [save(one, path, wav, png) for one, path in zip(found, paths, strict=True)]
    if as_json:
        for one, written in zip(found, files, strict=True):
            screen.show_json(described(one, written, lm.name, took))
        return
    for written in files:
        for path in written.values():
            screen.show(str(path))
    screen.aside(footer(found, took))


def pianist(model: str) -> str:
    """The model meant: the one that was named, or the one that is included."""
    from cutaway.checkpoint.locate import PIANIST, SHIPPED

    name = lines.shipped(model, PIANIST)
    if name == PIANIST and PIANIST not in SHIPPED and not Path(name).exists():
        raise CutawayError(
            "No pianist is included yet. Train one on a folder of MIDI files: cutaway train my-midi --task performance "
            "-o my-pianist. Then add --model my-pianist."
        )
    return name


def save(one: Composition, path: Path, wav: bool, png: bool) -> dict[str, Path]:
    """Write what was asked for; each file by its kind."""
    from cutaway.music.midi import write_midi

    written = {"midi": path}
    write_midi(one.performance, path)
    if wav:
        from cutaway.music.sound import write_wav

        written["wav"] = path.with_suffix(".wav")
        with screen.working("playing"):
            write_wav(one.performance, written["wav"])
    if png:
        from cutaway.music.roll import write_png

        written["png"] = path.with_suffix(".png")
        write_png(one.performance, written["png"])
    return written


def described(one: Composition, written: dict[str, Path], model: str, took: float) -> dict[str, Any]:
    from dataclasses import asdict

    from cutaway.music.statistics import measure, pitch_classes

    played = one.performance
    return {
        "model": model,
        **{kind: str(path) for kind, path in written.items()},
        "notes": len(played),
        "seconds": round(played.seconds, 3),
        "events": len(one.ids),
        "dropped": one.dropped,
        "seed": one.seed,
        "sample": one.sample,
        "took": round(took, 3),
        "measures": asdict(measure(played)) if len(played) else None,
        "pitch_classes": pitch_classes(played).tolist(),
    }


def footer(found: list[Composition], took: float) -> str:
    """How much it is, how fast it was, and what would bring it back."""
    notes, music = sum(len(one.performance) for one in found), sum(one.performance.seconds for one in found)
    events = sum(len(one.ids) for one in found)
    parts = [f"{notes:,} notes", f"{music:.1f} s of music in {took:.1f} s", f"{events / max(took, 1e-9):,.0f} events/s"]
    return " · ".join([*parts, f"seed {found[0].seed}"])
