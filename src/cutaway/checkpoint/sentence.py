"""How the tokens' vectors become one of the text: the files that sentence-transformers keeps beside an encoder.

`modules.json` lists the stages: the encoder, the pooling (with a folder of its own), and perhaps one that makes every
vector's length 1. `sentence_bert_config.json` says how many tokens are read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cutaway.checkpoint.files import read_json
from cutaway.errors import CutawayError
from cutaway.parts.sentence import Sentence

MODULES, LIMIT, POOLING = "modules.json", "sentence_bert_config.json", "1_Pooling"
MODES = {"cls": "first", "cls_token": "first", "mean": "mean", "mean_tokens": "mean", "max": "max", "max_tokens": "max"}
"""The ways of pooling that are known, by their names in the files."""


def read_sentence(folder: Path) -> Sentence:
    """What the files in a model's folder say; the usual, where there are none."""
    path = folder / MODULES
    if not path.is_file():
        return Sentence()
    try:
        stages = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CutawayError(f"{path} cannot be read: {error}.") from None
    pooling, normalized = "mean", False
    for stage in stages if isinstance(stages, list) else ():
        kind = str(stage.get("type", "") if isinstance(stage, dict) else "").rpartition(".")[2]
        if kind == "Pooling":
            pooling = pooling_of(read_json(folder / str(stage.get("path", POOLING)) / "config.json"), path)
        elif kind == "Normalize":
            normalized = True
        elif kind != "Transformer":
            raise CutawayError(
                f"{path} has a stage {kind or str(stage):.60}: only Pooling and Normalize are supported."
            )
    limit = read_json(folder / LIMIT).get("max_seq_length") if (folder / LIMIT).is_file() else None
    return Sentence(pooling, normalized, limit if type(limit) is int and limit > 2 else None)


def pooling_of(config: dict[str, Any], path: Path) -> str:
    """The way of pooling that a stage's config.json states; more than one at once is refused."""
    said = [
        key.removeprefix("pooling_mode_")
        for key, one in config.items()
        if key.startswith("pooling_mode_") and one is True
    ]
    said = said or [str(config.get("pooling_mode", "mean"))]
    if len(said) != 1 or said[0] not in MODES:
        raise CutawayError(f"{path}: the pooling {' and '.join(said)} is not supported. Known: mean, cls, max.")
    return MODES[said[0]]


def write_sentence(sentence: Sentence, width: int, folder: Path) -> None:
    """Write the files that sentence-transformers, and `read_sentence`, read the same from; none for the usual."""
    if sentence == Sentence():
        return
    names = {"first": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    stages = [
        ("Transformer", ""),
        ("Pooling", POOLING),
        *([("Normalize", "2_Normalize")] if sentence.normalized else []),
    ]
    listed = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(stages)
    ]
    modes = {f"pooling_mode_{name}": ours == sentence.pooling for ours, name in names.items()}
    (folder / POOLING).mkdir(exist_ok=True)
    for path, value in (
        (folder / MODULES, listed),
        (folder / POOLING / "config.json", {"word_embedding_dimension": width, **modes}),
        (folder / LIMIT, {"max_seq_length": sentence.limit, "do_lower_case": False}),
    ):
        path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
