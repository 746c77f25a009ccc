"""`cutaway embed`: one vector for each text, and the texts of a file that are nearest to a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cutaway.checkpoint.locate import BERT
from cutaway.cli import lines, options, screen
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from torch import Tensor

    from cutaway.language_model import LanguageModel

AT_ONCE = 1_024
"""So many texts are read together, so that those of like length can go side by side."""


def embed(
    text: Annotated[list[str] | None, options.argument(metavar="TEXT", help="The texts, each in quotes.")] = None,
    model: options.Encoder = BERT,
    file: lines.File = None,
    search: Annotated[
        str | None,
        options.option("--search", value="QUESTION", help="Show the texts that are nearest to this one in meaning."),
    ] = None,
    k: Annotated[int, options.option("-k", "--count", value="N", help="With --search: how many to show.")] = 5,
    cut: Annotated[bool, options.option("--cut", help="Read a text that is too long as far as it goes.")] = False,
    device: options.Device = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a vector of each text, or search among texts by their meaning.

    The model is the small BERT included, or, better for meaning, a folder with a BERT, DistilBERT or MiniLM
    (sentence-transformers' folders are read as that reads them); a GPT-2 works too, but was not made for it.

    The texts are the arguments, or the lines of a file or a pipe. Each vector is a line of numbers.

    Example: cutaway embed "A robot must obey." "Machines follow orders." --model minilm --json

    Example: cutaway embed --search "what do robots do?" --file sentences.txt --model minilm
    """
    given = text if text else [line for line in lines.read_lines(None, file).each if line.strip()]
    if text and file:
        raise CutawayError("Give the texts themselves or --file, not both.")
    if not given:
        raise CutawayError("There are no texts: every line is empty.")
    lm = options.load(model, device, None)
    lines.tell_unknown(lm, lm.several(given)[0])
    if search is not None:
        show_nearest(lm, search, given, k, cut, as_json)
        return
    for at in range(0, len(given), AT_ONCE):
        texts = given[at : at + AT_ONCE]
        vectors = lm.embed(texts, cut).tolist()
        for one, vector in zip(texts, vectors, strict=True):
            if as_json:
                screen.show_json({"model": lm.name, "text": one, "vector": vector})
            else:
                screen.put(" ".join(f"{number:.6f}" for number in vector) + "\n")


def show_nearest(lm: LanguageModel, question: str, texts: list[str], k: int, cut: bool, as_json: bool) -> None:
    """The texts nearest to the question, nearest first, with the cosine of the angle between the two vectors."""
    if k < 1:
        raise CutawayError(f"-k must be 1 or more, not {k}.")
    with screen.working(f"reading {len(texts):,} texts"):
        import torch

        parts = [lm.embed(texts[at : at + AT_ONCE], cut) for at in range(0, len(texts), AT_ONCE)]
        near = cosines(lm.embed([question], cut)[0], torch.cat(parts))
    best = near.topk(min(k, len(texts)))
    for score, number in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        if as_json:
            screen.show_json(
                {"model": lm.name, "question": question, "line": number + 1, "text": texts[number], "cosine": score}
            )
        else:
            screen.put(f"{score:.4f}  {screen.harmless(texts[number])}\n")


def cosines(one: Tensor, many: Tensor) -> Tensor:
    """How near each of many vectors is to one: 1 is the same direction. [text]"""
    import torch.nn.functional as F

    return F.normalize(many, dim=-1) @ F.normalize(one, dim=-1)
