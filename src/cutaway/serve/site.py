"""The explorer as a folder of files: the pages, a model's weights for the engine in the page (web/src/engine), and what
only Python can answer, recorded for the tour, the first text and the moments given.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cutaway import __version__
from cutaway.atomic import folder_written_beside
from cutaway.errors import CutawayError
from cutaway.models.architecture import count_parameters, tensors
from cutaway.serve.app import STATIC
from cutaway.serve.recording import Recorder, record
from cutaway.text.vocabulary import ALPHABET

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

MARK = "cutaway-site.json"
"""The file by which a folder is known as a site that may be written again."""
LARGEST = 200_000_000
"""Parameters of a model that a page can load: they are 400 MB to fetch, and twice that in memory."""
LINK = re.compile(r"(?P<title>.*?)\s*(?P<before>\S*)(?P<place>#/\S+)")
SHAPE = (
    "vocabulary", "context", "width", "layers", "heads", "head_width", "mlp_width", "activation", "norm_epsilon",
    "tied", "scale_by_layer", "end",
)  # fmt: skip
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; media-src blob:; style-src 'self' 'unsafe-inline'; "
    "form-action 'none'"
)
"""What a browser lets the page do: nothing leaves the folder it came from."""


@dataclass(frozen=True)
class Moment:
    """A moment to show on the first screen: what it is called, and its address inside the explorer (`#/walk?...`)."""

    title: str
    address: str


@dataclass(frozen=True)
class Site:
    """What was written."""

    folder: Path
    bytes: int
    weights: int
    recorded: int


def export_site(
    lm: LanguageModel,
    folder: Path,
    text: str = "",
    moments: Sequence[Moment] = (),
    name: str = "",
    progress: Callable[[str], object] = lambda what: None,
) -> Site:
    """Write the explorer with this model into a folder, all of it or nothing; `text` is what a visit begins with."""
    name = name or Path(lm.name).name or lm.name
    check_model(lm, name)
    check_folder(folder)
    if not (STATIC / "moments.json").is_file():
        raise CutawayError(
            "The built pages are not complete: moments.json is missing. Build them: cd web && npm run build"
        )
    try:
        with folder_written_beside(folder) as new:
            shutil.copytree(STATIC / "assets", new / "assets")
            inside = new / "site"
            (inside / "recorded").mkdir(parents=True)
            progress("weights")
            table, size = write_weights(lm, inside / "weights.bin")
            progress("recording")
            recorder = Recorder(lm, name, inside / "recorded")
            try:
                built = json.loads((STATIC / "moments.json").read_text("utf-8"))
                record(recorder, built, text, [one.address for one in moments])
            finally:
                recorder.close()
            described = describe(lm, name, table, size, sorted(recorder.known))
            (inside / "model.json").write_text(json.dumps(described, separators=(",", ":")), "utf-8")
            (new / MARK).write_text(json.dumps({"cutaway": __version__, "model": name}) + "\n", "utf-8")
            total = sum(path.stat().st_size for path in new.rglob("*") if path.is_file())
            told = {"model": name, "bytes": size, "total": total, "version": __version__}
            told |= {"moments": [vars(one) for one in moments]} | ({"text": text} if text else {})
            (new / "index.html").write_text(page(told), "utf-8")
            total += (new / "index.html").stat().st_size
    except OSError as error:
        raise CutawayError(
            f"The site could not be written to {folder}: {error.strerror or error}. What was there is unchanged."
        ) from error
    return Site(folder, total, size, len(recorder.known))


def check_folder(folder: Path) -> None:
    """Refuse to write over what is no site of ours."""
    if folder.is_dir() and (not any(folder.iterdir()) or (folder / MARK).is_file()):
        return
    if folder.exists() or folder.is_symlink():
        raise CutawayError(
            f"{folder} holds other things than an exported site, and an export replaces all of a folder. "
            "Name a new or an empty one."
        )


def check_model(lm: LanguageModel, name: str) -> None:
    """Refuse a model that the engine in the page cannot run."""
    if lm.config.kind != "gpt2":
        raise CutawayError(f"{name} is of the kind {lm.config.kind}: the engine in the page runs GPT-2 only.")
    if (count := count_parameters(lm.config)) > LARGEST:
        raise CutawayError(
            f"{name} has {count:,} parameters; a page can load {LARGEST:,}. Export a smaller model, such as gpt2, or "
            "serve this one: cutaway serve."
        )
    vocabulary = getattr(lm.tokenizer, "_vocabulary", None)
    if vocabulary is None or vocabulary.scheme is not None or vocabulary.words or not vocabulary.complete:
        raise CutawayError(
            f"The tokenizer of {name} has rules of its own; the one in the page follows GPT-2's. "
            "Export a model with a byte-level vocabulary like GPT-2's, or one that Cutaway trained."
        )


def write_weights(lm: LanguageModel, path: Path) -> tuple[list[dict[str, Any]], int]:
    """All tensors as float16, one after the other, as torch has them; where each begins, and the bytes in all."""
    parameters = dict(lm.model.named_parameters())
    table, start = [], 0
    with path.open("wb") as file:
        for spec in tensors(lm.config):
            values = parameters[spec.name].detach().float().cpu().numpy()
            with np.errstate(over="ignore"):
                halves = values.astype("<f2")
            if not np.isfinite(halves).all():
                raise CutawayError(f"{spec.name} has numbers that float16, which the page is sent, cannot hold.")
            file.write(halves.tobytes())
            told = {
                "name": spec.name,
                "stored": spec.stored,
                "shape": list(values.shape),
                "transposed": spec.transposed,
            }
            table.append({**told, "start": start})
            start += values.size
    return table, 2 * start


def describe(
    lm: LanguageModel, name: str, table: list[dict[str, Any]], size: int, recorded: list[str]
) -> dict[str, Any]:
    """model.json: all that the engine needs to know besides the weights."""
    return {
        "version": __version__,
        "model": name,
        "config": {field: getattr(lm.config, field) for field in SHAPE},
        "recommended": lm.recommended,
        "vocabulary": vocabulary(lm),
        "tensors": table,
        "bytes": size,
        "element": lm.model.token_embedding.weight.element_size(),
        "recorded": recorded,
    }


def vocabulary(lm: LanguageModel) -> dict[str, Any]:
    tokenizer = lm.tokenizer
    ids = tokenizer.vocabulary
    return {
        "tokens": [tokenizer.token_bytes(one).hex() for one in range(len(tokenizer))],
        "merges": [[ids[left], ids[right], ids[left + right]] for left, right in tokenizer.merges],
        "bytes": [ids[ALPHABET[byte]] for byte in range(256)],
        "specials": tokenizer.specials,
        "gpt2": tokenizer.gpt2_ids,
    }


def page(told: dict[str, Any]) -> str:
    """The page of the explorer, told that it is a site and what is in it."""
    plain = (STATIC / "index.html").read_text("utf-8")
    data = json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}" />'
    head = f'{policy}\n    <script type="application/json" id="cutaway-site">{data}</script>\n    '
    made = plain.replace("<title>", f"{head}<title>", 1)
    made = made.replace("</body>", f"  <noscript>{NO_SCRIPT}</noscript>\n  </body>", 1)
    assert head in made, "the page of the explorer has a title"
    return made


NO_SCRIPT = "The explorer runs a model in this page, and needs JavaScript for it."


def read_moments(given: Sequence[str]) -> list[Moment]:
    """Moments from links, and from files that hold one a line, each with its title before it if it has one."""
    found = []
    for one in given:
        if "#/" in one:
            found.append(read_moment(one, "the link"))
            continue
        try:
            lines = Path(one).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise CutawayError(
                f"{one} is neither a link of the explorer (…#/walk?…) nor a file of them: {why}."
            ) from None
        found += [read_moment(line, f"{one}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    return found


def read_moment(line: str, where: str) -> Moment:
    match = LINK.fullmatch(line.strip())
    if match is None:
        raise CutawayError(
            f"{where} is not a moment: {line.strip()!r:.80}. Copy its address from the explorer, like "
            "http://127.0.0.1:8000/#/walk?text=Hello, with a title before it if you like."
        )
    return Moment(match["title"].rstrip(" :–—-"), match["place"])
