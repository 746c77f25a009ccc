"""`cutaway predict`: the likeliest next tokens, with their probabilities."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from rich.cells import cell_len, set_cell_size

from cutaway.cli import options, screen

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel
    from cutaway.runtime.scoring import Score


def predict(
    text: Annotated[str | None, options.argument(metavar="TEXT", help="The text so far.")] = None,
    k: Annotated[int, options.option("-k", "--count", value="N", help="How many to show.")] = 10,
    score: Annotated[
        bool, options.option("--score", help="Also show the probability of each token of the text itself.")
    ] = False,
    file: options.File = None,
    special: options.Special = False,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the most likely next tokens.

    The text is the argument, a file, or standard input when it is piped. With an empty text, they are first tokens.

    Example: cutaway predict "A robot must obey the orders given it"
    """
    given = options.read_text(text, file)
    lm = options.load(model, device, dtype, tokenizer=tokenizer)
    ids = lm.ids(given, special=special)
    found = lm.predict(ids, k=k)
    scored = lm.score(list(ids), k=3) if score and ids else None
    rest = max(0.0, 1 - sum(one.probability for one in found))
    others = len(lm.tokenizer) - len(found)
    if as_json:
        screen.show_json(
            {
                "model": lm.name,
                "text": given,
                "ids": ids,
                "predictions": [{"id": one.id, "text": one.text, "probability": one.probability} for one in found],
                "rest": {"tokens": others, "probability": rest},
            }
            | ({"score": score_as_json(scored)} if scored else {})
        )
        return
    if scored:
        show_score(lm, scored)
        screen.show()
    elif given:
        screen.show(screen.chips([lm.tokenizer.token_bytes(token) for token in ids], lines=6))
        screen.show()
    rows = [screen.Row(screen.visible(lm.tokenizer.token_bytes(one.id)), one.probability) for one in found]
    if others:
        rows.append(screen.Row(f"{others:,} others", rest, "dim"))
    screen.show(screen.bars(rows))


def show_score(lm: LanguageModel, found: Score) -> None:
    """A line for each token of the text: how likely it was, its place in the list, and what was likelier."""
    labels = [screen.visible(lm.tokenizer.token_bytes(token.id)) for token in found.tokens]
    widest = min(max(cell_len(label) for label in labels), 24)
    screen.show(f"{'token':<{widest}}  probability    rank  most likely", style="dim")
    for token, label in zip(found.tokens, labels, strict=True):
        others = "  ".join(screen.visible(lm.tokenizer.token_bytes(one.id)) for one in token.alternatives)
        share = screen.percent(math.exp(token.logprob))
        screen.show(f"{set_cell_size(label, widest)}  {share:>11}  {token.rank:>6,}  {others}")
    screen.show(f"log-probability {found.logprob:.4f}, perplexity {found.perplexity:.4f}", style="dim")


def score_as_json(found: Score) -> dict[str, Any]:
    return {
        "logprob": found.logprob,
        "perplexity": found.perplexity,
        "tokens": [asdict(token) for token in found.tokens],
    }
