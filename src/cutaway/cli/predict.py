"""`cutaway predict`: the likeliest next tokens, with their probabilities."""

from __future__ import annotations

from typing import Annotated

from cutaway.cli import options, screen


def predict(
    text: Annotated[str | None, options.argument(metavar="TEXT", help="The text so far.")] = None,
    k: Annotated[int, options.option("-k", "--count", value="N", help="How many to show.")] = 10,
    file: options.File = None,
    special: options.Special = False,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the likeliest next tokens.

    The text is the argument, a file, or standard input when it is piped. An empty text is the beginning of one.

    Example: cutaway predict "A robot must obey the orders given it"
    """
    given = options.read_text(text, file)
    lm = options.load(model, device, dtype, tokenizer=tokenizer)
    ids = lm.tokenizer.encode(given, special=special)
    found = lm.predict(ids, k=k)
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
        )
        return
    if given:
        screen.show(screen.chips([lm.tokenizer.token_bytes(token) for token in ids], lines=6))
        screen.show()
    rows = [screen.Row(screen.visible(lm.tokenizer.token_bytes(one.id)), one.probability) for one in found]
    if others:
        rows.append(screen.Row(f"{others:,} others", rest, "dim"))
    screen.show(screen.bars(rows))
