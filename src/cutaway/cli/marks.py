"""`cutaway classify` with a model that marks the text itself: the names in it, or the answer to a question."""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from cutaway.cli import lines, options, screen
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.tasks import Marks

WORD = re.compile(r"\w+|[^\w\s]")
"""Words and signs apart, as WordPiece takes them."""


def mark(task: Marks, model: str, texts: lines.Texts, device: str | None, as_json: bool) -> None:
    """Every line answered by one: entities as `kind: words`, or the answer."""
    from cutaway.tasks import Questions

    lm = options.load(model, device, None)
    asks = isinstance(task, Questions)
    waiting = iter(texts.each)
    count = cut = 0
    while some := list(islice(waiting, max(1, texts.at_once))):
        written = {at: one for at, one in enumerate(some) if one.strip()}
        records = [record_of(one, count + at + 1, asks) for at, one in written.items()]
        found = dict(zip(written, task.answer(lm, records), strict=True)) if records else {}
        for at, line in enumerate(some):
            answer = found.get(at)
            cut += getattr(answer, "cut", 0) > 0 or (answer is None and at in written)
            show(model, line, answer, as_json, asks)
        count += len(some)
    if not as_json:
        lines.tell(count, {"too long, and not read as a whole": cut})


def record_of(line: str, number: int, asks: bool) -> dict[str, Any]:
    """A line as a record: words, or a question and its context with a tab between."""
    if not asks:
        return {"words": WORD.findall(line)}
    question, tab, context = line.partition("\t")
    if not tab or not question.strip() or not context.strip():
        raise CutawayError(f"Text {number:,}: a question and its context are needed, with a tab between them.")
    return {"question": question, "context": context}


def show(model: str, line: str, answer: Any, as_json: bool, asks: bool) -> None:
    if as_json:
        screen.show_json({"model": model, "text": line, **(asdict(answer) if answer else {})})
    elif answer is None:
        screen.put("\n")
    elif asks:
        screen.put(f"{answer.text}\t{answer.probability:.4f}\n")
    else:
        screen.put("\t".join(f"{one.kind}: {one.text}" for one in answer.entities) + "\n")
