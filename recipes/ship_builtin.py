"""Put a trained model into the package as the one that ships: float16, its tokenizer, recommended settings, its card,

and the table of what usually follows in the stories, by which the native engine guesses ahead.

    python recipes/ship_builtin.py exhibit-training stories --before story-model --others tinystories.txt

The card (README.md there) is builtin-card.md, filled with what is measured now; read it before it is committed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import lzma
import pathlib
import sys
from typing import Any

import torch
from exhibit_lessons import PIECE
from exhibit_words import CAPITALS, COLOURS, FACTS
from teach_exhibits import PIECES
from teacher_cache import divide

import cutaway
from cutaway import checkpoint
from cutaway.decoding.sequence import Result
from cutaway.runtime.native.ngrams import beside as draft_beside
from cutaway.runtime.native.ngrams import make_ngrams, text_of
from cutaway.train.picture import loss_picture

HERE = pathlib.Path(__file__).parent
BUILTIN = pathlib.Path(cutaway.__file__).parent / "data" / "builtin"
MOST = 20_000_000
"""Bytes of all files that ship."""
RECOMMENDED: dict[str, Any] = {"temperature": 0.7, "top_k": 40}
"""How it writes best: see the card."""
CASES, TEXTS, OTHERS = 200, 3, 400


def ship(model: pathlib.Path, stories: str, folder: pathlib.Path = BUILTIN, most: int = MOST) -> None:
    """The model, its tokenizer and its draft, as they will be loaded."""
    lm = cutaway.load(model)
    checkpoint.write_model(lm.model, lm.tokenizer, folder, torch.float16, recommended=RECOMMENDED)
    taught = [lm.tokenizer.encode(text) for text in divide(stories)[0]]
    make_ngrams(text_of(taught, lm.config.end)).save(draft_beside(folder))
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > most:
        raise SystemExit(f"{folder} is {size / 1e6:.1f} MB, and at most {most / 1e6:.0f} MB may ship.")
    print(f"{folder}: {size / 1e6:.1f} MB")


def benchmark() -> Any:
    """benchmarks/exhibits.py, which has the same name as the recipe it measures."""
    spec = importlib.util.spec_from_file_location("measuring", HERE.parent / "benchmarks" / "exhibits.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["measuring"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_stories(path: pathlib.Path) -> str:
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as file:
        return file.read()


def beside(measuring: Any, models: dict[str, Any], kinds: dict[str, list[str]]) -> str:
    """Bits per byte of each kind of story, for each model and the teacher: a table."""
    lines = [f"| bits per byte | {' | '.join(models)} | its teacher, stories15M |", "|---" * (len(models) + 2) + "|"]
    for name, texts in kinds.items():
        found = [measuring.bits_per_byte(lm, texts) for lm in models.values()]
        found.append(measuring.teacher_bits(texts))
        lines.append(f"| {name} ({len(texts)}) | {' | '.join(f'{one:.3f}' for one in found)} |")
    return "\n".join(lines)


def card(
    training: pathlib.Path, folder: pathlib.Path, stories: str, cases: int = CASES,
    before: pathlib.Path | None = None, others: pathlib.Path | None = None, earlier: str = "", share: str = "",
) -> str:  # fmt: skip
    """What the model in the folder is, and what it can do, measured."""
    lm, measuring = cutaway.load(folder), benchmark()
    log = [json.loads(line) for line in (training / "log.jsonl").read_text().splitlines()]
    (folder / "loss.svg").write_text(loss_picture(log, "Loss while learning"), encoding="utf-8")
    steps = max(line["step"] for line in log)
    numbers = sum(one.numel() for one in lm.model.parameters())
    measured = measuring.measure(lm, cases)
    held_out = divide(stories)[1]
    models = {"this model": lm} | ({"the one before it": cutaway.load(before)} if before else {})
    kinds = {"stories of its teacher's that were held out": held_out}
    if others:
        texts = [text.strip() for text in read_stories(others).split("<|endoftext|>")]
        kinds["real TinyStories, which its teacher did not write"] = [text for text in texts if text][:OTHERS]
    written = [lm.generate(seed=seed) for seed in range(1, TEXTS + 1)]
    shape = {name: getattr(lm.config, name) for name in ("layers", "width", "heads", "context", "vocabulary")}
    template = (HERE / "builtin-card.md").read_text(encoding="utf-8")
    return template.format(
        **shape, **measured, **measured["pronoun"], steps=steps, cases=cases, bits=beside(measuring, models, kinds),
        facts=len(FACTS) + len(CAPITALS) + len(COLOURS), millions=f"{numbers / 1e6:.2f}",
        megabytes=f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f}",
        tokens_a_step=f"{PIECES} x {PIECE:,}", millions_read=f"{steps * PIECES * PIECE / 1e6:.1f}", share=share,
        earlier=f" after {earlier}" if earlier else "", recommended=json.dumps(lm.recommended),
        texts="\n\n".join(quoted(number, one) for number, one in enumerate(written, 1)),
    )  # fmt: skip


def quoted(seed: int, one: Result) -> str:
    text = one.text.strip().replace("\n", "\n> ")
    return f"**Seed {seed}** ({one.reason}, {len(one.ids)} tokens):\n\n> {text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("training", type=pathlib.Path, help="the folder that teach_exhibits.py works in")
    parser.add_argument("stories", help="the folder of stories it was taught with; 400 of them it has not seen")
    parser.add_argument("--before", type=pathlib.Path, help="the model that shipped before, to measure beside")
    parser.add_argument("--others", type=pathlib.Path, help="a file of stories the teacher did not write")
    parser.add_argument("--earlier", default="", help="for the card: what this training went on from, if not the start")
    parser.add_argument("--share", default="", help="for the card: a sentence on the share of exhibits")
    parser.add_argument("--out", type=pathlib.Path, default=BUILTIN, help="where the model is put")
    given = parser.parse_args()
    ship(given.training / "model", given.stories, given.out)
    text = card(
        given.training, given.out, given.stories, before=given.before, others=given.others, earlier=given.earlier,
        share=given.share,
    )  # fmt: skip
    (given.out / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
