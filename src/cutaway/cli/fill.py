"""`cutaway fill`: the likeliest words for the gaps of a text, by a BERT."""

from __future__ import annotations

from typing import Annotated

from cutaway.checkpoint.locate import BERT
from cutaway.cli import lines, options, screen


def fill(
    text: Annotated[str | None, options.argument(metavar="TEXT", help="The text, with [MASK] for each gap.")] = None,
    model: options.Encoder = BERT,
    k: Annotated[int, options.option("-k", "--count", value="N", help="How many words to show for each gap.")] = 5,
    file: options.File = None,
    device: options.Device = None,
    as_json: options.AsJson = False,
) -> None:
    """Fill in the gaps of a text: the likeliest words for every [MASK], from what stands on both sides.

    The model is the small BERT included, which knows children's stories, or a folder with a BERT or DistilBERT that has
    a masked-word head. The text is the argument, a file, or standard input when it is piped.

    Example: cutaway fill "The capital of France is [MASK]."
    """
    given = options.read_text(text, file)
    lm = options.load(model, device, None)
    gaps, ids = lm.fill(given, k), lm.ids(given)
    lines.tell_unknown(lm, [ids])
    if as_json:
        found = [
            {
                "position": gap.position,
                "predictions": [
                    {"id": one.id, "text": one.text, "probability": one.probability} for one in gap.predictions
                ],
            }
            for gap in gaps
        ]
        screen.show_json({"model": lm.name, "text": given, "ids": ids, "gaps": found})
        return
    screen.show(screen.chips([lm.tokenizer.token_bytes(token) for token in ids], lines=6))
    for gap in gaps:
        screen.show()
        if len(gaps) > 1:
            screen.show(f"token {gap.position}", style="dim")
        screen.show(
            screen.bars([screen.Row(screen.visible(one.text.encode()), one.probability) for one in gap.predictions])
        )
