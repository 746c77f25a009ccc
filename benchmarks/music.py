"""Reading MIDI beside pretty_midi, encoding beside miditok, composing beside the clock: one run, in turns.

    python benchmarks/music.py FOLDER_OF_MIDI [--files 20] [--rounds 3] [--seconds 30] [--json]

Reading: some files of the folder to performances, ours on all cores. Encoding: the same bytes to events, ours with the
pedal worked in, miditok's as MIDI-like tokens of the same kind (on, off, time shift, velocity), one core each;
both parse with symusic. Composing: a model of 6 blocks of 256 with random weights in 8 bits, by the native engine; its
events per second, by the clock and by processor time, over the events that a second of the folder's music has. Medians
of the rounds.
`pip install pretty_midi miditok` for the others; what is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cutaway.music.events import encode
from cutaway.music.folder import midi_files, read_folder
from cutaway.music.midi import library, parse_midi
from cutaway.processor import cores


def timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def in_turns(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median seconds of each, one after the other, so many times."""
    took: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            took[name].append(timed(work))
    return {name: statistics.median(seconds) for name, seconds in took.items()}


def reading(files: list[Path], rounds: int) -> dict[str, float]:
    works: dict[str, Callable[[], Any]] = {"cutaway": lambda: read_folder(*files)}
    try:
        import pretty_midi
    except ImportError:
        print("pretty_midi is not installed: left out", file=sys.stderr)
    else:
        works["pretty_midi"] = lambda: [pretty_midi.PrettyMIDI(str(path)) for path in files]
    return in_turns(works, rounds)


def encoding(files: list[Path], rounds: int) -> dict[str, float]:
    """From the files' bytes, which both parse with symusic, to tokens."""
    contents = [path.read_bytes() for path in files]
    works: dict[str, Callable[[], Any]] = {"cutaway": lambda: [encode(parse_midi(data)).tolist() for data in contents]}
    try:
        import miditok
    except ImportError:
        print("miditok is not installed: left out", file=sys.stderr)
    else:
        settings = miditok.TokenizerConfig(
            pitch_range=(0, 127), beat_res={(0, 2): 50}, num_velocities=32, use_velocities=True, use_programs=False
        )
        theirs, symusic = miditok.MIDILike(settings), library()
        works["miditok"] = lambda: [theirs(symusic.Score.from_midi(data)) for data in contents]
    return in_turns(works, rounds)


def composing(seconds: float, rounds: int) -> tuple[float, float]:
    """Events a second, one performance at a time: by the clock, and by the processor time of one thread."""
    import torch

    import cutaway
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.music.compose import compose
    from cutaway.music.vocabulary import event_tokenizer
    from cutaway.runtime.native.engine import Engine
    from cutaway.runtime.native.pack import pack

    torch.manual_seed(0)
    shape = Config(vocabulary=389, context=1_024, width=256, layers=6, heads=4, positions="relative")
    speeds = []
    for threads in (cores(), 1):
        engine = Engine(pack(GPT(shape), "int8"), threads)
        lm = cutaway.LanguageModel(engine, event_tokenizer(), "random")
        compose(lm, seconds=2, seed=0)
        clock = time.process_time if threads == 1 else time.perf_counter
        found = []
        for seed in range(rounds):
            begun = clock()
            [one] = compose(lm, seconds=seconds, seed=seed)
            found.append(len(one.ids) / (clock() - begun))
        speeds.append(statistics.median(found))
    return speeds[0], speeds[1]


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("folder", type=Path)
    about.add_argument("--files", type=int, default=20, help="how many of the folder's files, spread over it")
    about.add_argument("--rounds", type=int, default=3)
    about.add_argument("--seconds", type=float, default=30)
    about.add_argument("--json", action="store_true")
    given = about.parse_args()
    warnings.simplefilter("ignore")
    every = midi_files([given.folder])
    files = every[:: max(1, len(every) // given.files)][: given.files]
    folder = read_folder(*files)
    music = sum(one.seconds for one in folder.performances.values())
    events = sum(len(encode(one)) for one in folder.performances.values()) / music
    speed, alone = composing(given.seconds, given.rounds)
    found = {
        "cores": cores(), "files": len(files), "notes": sum(map(len, folder.performances.values())),
        "reading": reading(files, given.rounds), "encoding": encoding(files, given.rounds),
        "composing": {
            "events_per_second": speed, "events_per_processor_second": alone, "events_in_a_second_of_music": events,
            "real_time": speed / events, "processor_time": alone / events,
        },
    }  # fmt: skip
    if given.json:
        print(json.dumps(found))
        return
    print(f"{found['files']} files, {found['notes']:,} notes; {found['cores']} cores; medians of {given.rounds} rounds")
    for what, others in (("reading", "pretty_midi"), ("encoding", "miditok")):
        took: Any = found[what]
        line = "  ".join(f"{name} {seconds:.3f} s" for name, seconds in took.items())
        ratio = f"  {took[others] / took['cutaway']:.1f} x" if others in took else ""
        print(f"{what:<10} {line}{ratio}")
    print(f"composing  {speed:,.0f} events/s, {speed / events:.1f} x real time ({events:.1f} events a second of music)")
    print(f"           {alone:,.0f} events per second of one processor: {alone / events:.1f} x")


if __name__ == "__main__":
    main()
