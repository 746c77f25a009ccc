"""Give a story model another vocabulary and more positions, losing as little as can be: where the exhibit model begins.

    python recipes/exhibit_start.py --from story-model --vocabulary vocabulary -o exhibit-start

Blocks and norms stay. A token that the old vocabulary had keeps its vector; a new one gets the mean of the old tokens
it is made of. Positions beyond the old ones get those of the later half again, running back and forth without a jump:
the model has learned there what "far into a text" means.
"""

from __future__ import annotations

import argparse

import torch

import cutaway
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT

CONTEXT = 1024


def token_vectors(old: torch.Tensor, before: cutaway.Tokenizer, now: cutaway.Tokenizer) -> torch.Tensor:
    """A row for each token of the new vocabulary, from the old one's rows."""
    known = {before.token_bytes(token): token for token in range(len(before)) if token != before.end}
    rows = []
    for token in range(len(now)):
        if token == now.end:
            rows.append(old[before.end])
            continue
        data = now.token_bytes(token)
        pieces = [known[data]] if data in known else before.encode(data)
        rows.append(old[pieces].mean(0) if len(pieces) > 1 else old[pieces[0]])
    return torch.stack(rows)


def more_positions(old: torch.Tensor, context: int) -> torch.Tensor:
    """The old rows, and for places beyond them the later half of them again, running to and fro without a jump."""
    there = len(old)
    half = there // 2
    places = torch.arange(context)
    swing = (places - there) % (2 * half)
    back = torch.where(swing < half, there - 1 - swing, there - 2 * half + swing)
    return old[torch.where(places < there, places, back)]


def begin(before: LanguageModel, tokenizer: cutaway.Tokenizer, context: int = CONTEXT) -> LanguageModel:
    gpt = before.model
    config = gpt.config.but(vocabulary=len(tokenizer), context=context, end_token=tokenizer.end)
    weights = gpt.state_dict()
    weights["token_embedding.weight"] = token_vectors(weights["token_embedding.weight"], before.tokenizer, tokenizer)
    weights["position_embedding.weight"] = more_positions(weights["position_embedding.weight"], context)
    new = GPT(config)
    new.load_state_dict(weights)
    return LanguageModel(new, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="start", default="story-model", help="the model to begin with")
    parser.add_argument("--vocabulary", required=True, help="folder of the new vocabulary (gpt2_subset.py)")
    parser.add_argument("-o", "--out", required=True, help="folder for the model")
    parser.add_argument("--context", type=int, default=CONTEXT)
    given = parser.parse_args()
    begin(cutaway.load(given.start), cutaway.Tokenizer.load(given.vocabulary), given.context).save(given.out)


if __name__ == "__main__":
    main()
