"""A vocabulary that is a part of GPT-2's: any text made of its tokens is cut exactly as GPT-2 cuts it.

    python recipes/gpt2_subset.py stories -o vocabulary --size 8000

A token of GPT-2 is made by one merge of two others. If a token is taken, so are the two it is made of, and theirs; the
merges keep their order. Cutting a word, GPT-2 always does the first merge in that order that can be done, and never
undoes one: every merge it does is part of a token that remains. So if those are all here, the same merges are done
here, in the same order. Other texts are cut into smaller pieces; all 256 bytes are here, so every text can be.

Taken are: the bytes, every token of the exhibits (exhibits.py) and of their tests, numbers up to a thousand where GPT-2
has them, the tokens the stories use most, and, if there is room, GPT-2's first merges, the commonest of English.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import exhibit_words
from exhibits import documents

import cutaway
from cutaway.tasks import Language
from cutaway.text.vocabulary import ALPHABET, END, Vocabulary
from cutaway.train.data.records import records

RARE = 5
"""A token the stories use fewer times than this is not taken for their sake."""
EXHIBITS = 20_000
"""Documents whose every token is taken."""


def subset(wanted: Iterable[int], size: int) -> cutaway.Tokenizer:
    """The tokenizer with the first of these GPT-2 tokens, all they are made of, and then GPT-2's first merges."""
    gpt2 = cutaway.Tokenizer.load("gpt2")
    spelling = {token: name for name, token in gpt2.vocabulary.items()}
    made_of = {left + right: (left, right) for left, right in gpt2.merges}
    kept = set(ALPHABET.values())

    def needed(name: str) -> set[str]:
        if name in kept:
            return set()
        return {name}.union(*map(needed, made_of[name]))

    room = size - 1  # for the end token
    for name in [*(spelling[token] for token in wanted if token != gpt2.end), *made_of]:
        more = needed(name)
        if len(kept) + len(more) <= room:
            kept |= more
    tokens = {name: place for place, name in enumerate(n for n in gpt2.vocabulary if n in kept)}
    merges = [pair for pair in gpt2.merges if "".join(pair) in kept]
    return cutaway.Tokenizer(Vocabulary(tokens, merges, {END: len(tokens)}, END))


def words_to_have() -> list[str]:
    """Texts whose every token is taken: exhibits, all their words (the held-out ones too), numbers."""
    lists = [exhibit_words.NAMES, exhibit_words.CHARACTERS, exhibit_words.THINGS, exhibit_words.PLACES_OF]
    lists += [exhibit_words.FOOD, [one for pair in exhibit_words.PLURALS for one in pair]]
    words = [form for words in lists for word in words for form in (word, " " + word, word.capitalize())]
    numbers = [form for n in range(1001) if n <= 200 or n % 10 == 0 for form in (str(n), f" {n}")]
    return [*exhibit_words.TREATS, *exhibit_words.LAWS, *words, *numbers, *islice(documents(0), EXHIBITS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", help="folder or file of stories")
    parser.add_argument("-o", "--out", required=True, help="folder for the vocabulary")
    parser.add_argument("--size", type=int, default=8000)
    given = parser.parse_args()
    gpt2 = cutaway.Tokenizer.load("gpt2")
    must = Counter(token for ids in gpt2.encode_batch(words_to_have()) for token in ids)
    stories = [str(record["text"]) for record, _ in records([given.stories], None, Language().fields)]
    used = Counter(token for ids in gpt2.encode_batch(stories) for token in ids)
    often = [token for token, count in sorted(used.items(), key=lambda one: (-one[1], one[0])) if count >= RARE]
    tokenizer = subset([*sorted(must), *often], given.size)
    tokenizer.save(given.out)
    table = {gpt2.token_bytes(token): token for token in range(len(gpt2))}
    ours = {table[tokenizer.token_bytes(token)] for token in range(len(tokenizer))}
    share = sum(count for token, count in used.items() if token in ours) / used.total()
    print(f"{len(tokenizer):,} tokens: all {len(must):,} of the exhibits, {share:.3%} of what the stories are made of")


if __name__ == "__main__":
    main()
