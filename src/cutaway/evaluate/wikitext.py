"""WikiText as ordinary text: the detokenizer that undoes its spaces, and how its words are counted."""

from __future__ import annotations

import re

NAME = "WikiText's, with the rules of Megatron-LM and lm-eval"

PLAIN = [
    ("s '", "s'"),  # the students ' books
    (" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."),
    (" : ", ": "), (" ; ", "; "), (" . ", ". "), (" ! ", "! "), (" ? ", "? "), (" , ", ", "),
]  # fmt: skip
PAIRS = [
    re.compile(r"(\()\s*([^)]*?)\s*(\))"),
    re.compile(r"(\[)\s*([^]]*?)\s*(])"),
    re.compile(r"({)\s*([^}]*?)\s*(})"),
    re.compile(r"(\")\s*([^\"]*?)\s*(\")"),
    re.compile(r"(')\s*([^']*?)\s*(')"),
]
ARTICLE = re.compile(r"(?m)^(?= = [^=\n]+ = $)")
LATER = [
    ("= = = =", "===="), ("= = =", "==="), ("= =", "=="), (" ° ", "°"), (" \n", "\n"), ("\n ", "\n"),
    (" N ", " 1 "),  # Penn Treebank's stand-in for a number; the rule came along with the others
    (" 's", "'s"),
]  # fmt: skip


def detokenize(text: str) -> str:
    """Text as people write it, from WikiText's form with a space around everything (`the " M @-@ 82 " road`).

    The GPT-2 paper used "invertible detokenizers" it did not publish. These are the rules everyone has used since, so
    that numbers compare, in their usual order, which matters.
    """
    for spaced, plain in PLAIN:
        text = text.replace(spaced, plain)
    text = "".join(map(close_pairs, ARTICLE.split(text)))
    for spaced, plain in LATER:
        text = text.replace(spaced, plain)
    return text


def close_pairs(article: str) -> str:
    """Brackets and quotation marks close to what they hold. One article at a time: a lost one spoils no other."""
    for pair in PAIRS:
        article = pair.sub(r"\1\2\3", article)
    return article


def count_words(text: str) -> int:
    """The words of a WikiText file as it is usually counted: what stands between spaces, and the end of every line."""
    return len(text.split()) + text.count("\n")
