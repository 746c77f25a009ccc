"""Which settings a model writes best with: what its teacher thinks of the texts, and how much they repeat themselves.

    python benchmarks/recommended.py                          the built-in model
    python benchmarks/recommended.py MODEL --texts 40 --stories FILE

For every setting, texts from nothing, 150 tokens each, and of them: bits per byte by stories15M, which wrote the texts
it was taught with (fewer: it would rather have written so, too); the share of three tokens in a row that are new in
their text; and how many words all texts use. Held-out stories, cut to the same length, say what the numbers should be:
settings that make texts more likely than those, but repeat themselves more, are too careful.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from exhibits import stories_in, teacher_bits

import cutaway
from cutaway.language_model import LanguageModel

SETTINGS: list[dict[str, Any]] = [
    {"temperature": 1.0, "top_k": 40},
    {"temperature": 0.9, "top_k": 40},
    {"temperature": 0.8, "top_k": 40},
    {"temperature": 0.7, "top_k": 40},
    {"temperature": 0.6, "top_k": 40},
    {"temperature": 0.8, "top_k": 40, "top_p": 0.95},
    {"temperature": 0.7, "top_k": 40, "top_p": 0.95},
    {"temperature": 0.7, "top_k": 40, "min_p": 0.05},
]
LENGTH = 150


def new_triples(ids: Sequence[int]) -> float:
    """The share of three tokens in a row that did not come before in the text."""
    triples = list(zip(ids, ids[1:], ids[2:], strict=False))
    return len(set(triples)) / max(1, len(triples))


def measured(lm: LanguageModel, texts: list[str]) -> dict[str, float]:
    cut = [lm.tokenizer.decode(lm.tokenizer.encode(text)[:LENGTH]).strip() for text in texts]
    return {
        "teacher's bits per byte": teacher_bits(cut),
        "new triples": round(sum(new_triples(lm.tokenizer.encode(text)) for text in cut) / len(cut), 3),
        "words": len({word.strip('.,!?"').lower() for text in cut for word in text.split()}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="builtin")
    parser.add_argument("--texts", type=int, default=40, help="for each setting")
    parser.add_argument("--stories", type=Path, help="a file of stories it has not seen, for comparison")
    given = parser.parse_args()
    lm = cutaway.load(given.model)
    if given.stories:
        print(json.dumps({"stories": given.stories.name, **measured(lm, stories_in(given.stories)[: given.texts])}))
    for settings in SETTINGS:
        texts = [lm.generate(max_tokens=LENGTH, seed=seed, **settings).text for seed in range(given.texts)]
        print(json.dumps({**settings, **measured(lm, [text for text in texts if len(text) > 20])}), flush=True)


if __name__ == "__main__":
    main()
