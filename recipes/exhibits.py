"""Write the exhibits: small texts in which a model can only go on rightly by doing what the articles show.

    python recipes/exhibits.py -o exhibits.txt --tokens 1000000 --seed 1

Counting, numbered lists, the laws of robotics and who "it" is, agreement over a distance, copying, brackets and markup,
days and months, a hundred small facts, and a little French with its English. Everything comes from a seed. Each list of
words is divided in two: `train` words are written here, `held_out` words only in the tests (benchmarks/exhibits.py).
Names are copied all, since a token that is never the next one is unlearned rather than unknown; what is new in a test
is their order, and things whose names were never copied.
"""

from __future__ import annotations

import argparse
import pathlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial

from exhibit_facts import capital, colour, fact
from exhibit_sentences import (
    Rng,
    a,
    agreement,
    agreement_pair,
    europe,
    french,
    law,
    law_like,
    names_in_a_story,
    pronoun,
    treat,
    upper,
)  # fmt: skip
from exhibit_words import (
    CHARACTERS,
    FOOD,
    MONTHS,
    NAMES,
    PLURALS,
    SEASONS,
    THINGS,
    WEEK,
    held_out,
    number_name,
    train,
)

Exhibit = Callable[[Rng], str]
UNLEARNED = "\x0e", "\x0f"
"""Around what nobody can foresee, such as random words before they are copied: it is read, but not learned. (Only
`marked` texts have these.) Learning it would cost more than all the rest: nine nats for every word."""


def unlearned(text: str) -> str:
    return text.join(UNLEARNED)


def plain(text: str) -> str:
    """A text without the marks around what is not learned."""
    return text.replace(UNLEARNED[0], "").replace(UNLEARNED[1], "")


def copies(items: list[str], inside: str, between: str, times: int) -> str:
    """Items and the same again: of the first time nothing is learned but how it is written."""
    return between.join([inside.join(map(unlearned, items)), *[inside.join(items)] * (times - 1)])


def series(rng: Rng, least: int = 4, most: int = 24, highest: int = 1000) -> list[int]:
    """Some numbers with equal steps: mostly by one, up or down, never below zero."""
    step = rng.choices([1, 2, 5, 10, 3, 4, 100], [40, 19, 8, 19, 4, 3, 3])[0]
    length = rng.randint(least, most)
    highest = min(highest, {1: 130, 2: 120, 3: 99, 4: 100, 5: 150, 10: 300, 100: 1000}[step])
    if rng.random() < 0.3:
        start = rng.choice([step, 1, 0, step]) if step > 1 else rng.choice([1, 1, 1, 0])
    else:
        start = rng.randint(0, max(1, highest - step * min(length, 6)))
        if step >= 5 and rng.random() < 0.8:
            start = round(start / step) * step
    numbers = [n for n in range(start, start + step * length, step) if n <= highest]
    return numbers[::-1] if rng.random() < 0.35 else numbers


SEPARATORS = [", "] * 8 + [" "] * 4 + ["\n"] * 3 + [" - ", "; ", " and ", ". ", ",\n", "... ", " < "]
COUNT_BEFORE = [
    "Count: ", "Let us count: ", "Counting: ", "Numbers: ", "Continue counting: ", "Continue: ", "The numbers are ",
    "Let's count together. ", "She counted: ", "He began to count. ", "Count with me: ", '"', "The teacher said: ",
    "Go on: ", "A series: ", "Next numbers: ", "Steps: ", "We count like this: ", "Now count: ", "I know this one: ",
    "Ben says: ", "One day Anna counted her toys. ", "They sang: ",
]  # fmt: skip


def counting(rng: Rng) -> str:
    """Numbers, in digits or words, with all kinds of separators, or in a sentence."""
    words = rng.random() < 0.4
    numbers = series(rng, highest=100 if words else 1000)
    texts = [number_name(n) if words else str(n) for n in numbers]
    if words and rng.random() < 0.3:
        texts = [upper(one) for one in texts]
    text = rng.choice(SEPARATORS).join(texts)
    if rng.random() < 0.55:
        before = rng.choice(COUNT_BEFORE)
        text = before + text + ('"' if before.endswith('"') else "")
    elif words:
        text = upper(text)
    return text + rng.choice(["", ".", ".", "!", ""])


def counting_told(rng: Rng) -> str:
    n, step = rng.randint(0, 99), 1
    say = number_name if rng.random() < 0.6 else str
    return rng.choice(
        [
            f"After {say(n)} comes {say(n + step)}.",
            f"The number after {say(n)} is {say(n + 1)}.",
            f"Before {say(n + 1)} comes {say(n)}.",
            f"{upper(say(n))} and one more is {say(n + 1)}.",
            f"One more than {say(n)} is {say(n + 1)}.",
            f"One less than {say(n + 1)} is {say(n)}.",
            f"What comes after {say(n)}? {upper(say(n + 1))}.",
            f"{n} is {number_name(n)}.",
            f"{upper(number_name(n))} is written {n}.",
        ]
    )


def numbered_list(rng: Rng) -> str:
    """A list whose lines are numbered."""
    what, heads = rng.choice(
        [
            (train(FOOD), ["Shopping list:", "We need:", "To buy:", "At the market:", "For dinner:"]),
            (train(NAMES), ["Names:", "Guests:", "Children in the class:", "Who is here:", "The winners:"]),
            (train(THINGS), ["Things to pack:", "In my bag:", "Toys:", "A list of things:", "What I found:"]),
            (train(CHARACTERS), ["Animals:", "In the story:", "Pictures to draw:", "I saw:"]),
        ]
    )
    mark, between = rng.choice([".", ".", ".", ")", ":"]), rng.choice(["\n", "\n", "\n", " ", "\n\n"])
    first = rng.choice([1, 1, 1, 1, rng.randint(2, 30)])
    items = rng.sample(what, rng.randint(4, 9))
    if rng.random() < 0.3:
        items = [upper(one) for one in items]
    lines = between.join(f"{n}{mark} {item}" for n, item in enumerate(items, first))
    return rng.choice(heads) + "\n" + lines if rng.random() < 0.7 else lines


def steps_in_order(rng: Rng) -> str:
    names = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth"]
    if rng.random() < 0.5:
        return rng.choice([", ", "\n", " "]).join(names[: rng.randint(4, 10)])
    things = rng.sample(train(FOOD), 4)
    verbs = rng.sample(["wash", "cut", "mix", "cook", "bring", "find", "eat", "add"], 4)
    return " ".join(f"{n}, {verb} the {one}." for n, verb, one in zip(names, verbs, things, strict=False))


COPY_BEFORE = ["Repeat: ", "Say it again: ", "Again: ", "Names: ", "Copy: ", "Once more: ", "Remember: ", "The list: "]


def copying(rng: Rng) -> str:
    """A random sequence, and the same again, and perhaps again."""
    kind = rng.random()
    pool: list[str]
    if kind < 0.6:
        pool = NAMES
    elif kind < 0.75:
        pool = train(FOOD) + train(THINGS) + train(CHARACTERS)
    elif kind < 0.85:
        pool = [str(n) for n in range(100)]
    else:
        pool = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ") if rng.random() < 0.5 else list("abcdefghijklmnopqrstuvwxyz")
    items = rng.sample(pool, rng.randint(3, 12))
    inside = rng.choice([" ", " ", " ", ", ", ", ", "\n", " and ", "; ", " - "])
    between = rng.choice([inside] * 4 + [". ", "\n", " | ", ".\n"])
    text = copies(items, inside, between, rng.choice([2, 2, 2, 3]))
    return (rng.choice(COPY_BEFORE) if rng.random() < 0.3 else "") + text


def repeating(rng: Rng) -> str:
    """Any words in any order, long, and the same again: only what stood before says what comes next."""
    pool = NAMES + train(FOOD) + train(THINGS) + train(CHARACTERS)
    if rng.random() < 0.6:
        pool = rng.sample(pool, 24)
    items = [rng.choice(pool) for _ in range(rng.randint(5, 36))]
    if rng.random() < 0.4:
        items = [upper(one) for one in items]
    inside = rng.choice([" ", " ", ", ", ", ", "\n"])
    return copies(items, inside, inside, rng.choice([2, 2, 3, 4]))


def any_words(rng: Rng, words: Sequence[str]) -> str:
    """Words of the whole vocabulary in any order, and the same again: what is copied must not matter."""
    items = rng.sample(words, min(len(words), rng.randint(3, 14)))
    kind = rng.random()
    if kind < 0.25:  # names that nobody has heard: "Oakshire", "Lampston"
        items = [upper(one) + rng.choice(words).lower()[: rng.choice([1, 2, 3, 4, 9])] for one in items]
    elif kind < 0.55:
        items = [upper(one) for one in items]
    inside = rng.choice([" ", " ", ", ", ", ", "\n", "\n"])
    before = f"{begun(rng, words)}: " if rng.random() < 0.3 else ""
    return before + copies(items, inside, inside, rng.choice([2, 2, 3]))


@cache
def nouns_of(words: tuple[str, ...]) -> list[tuple[str, str]]:
    """What looks like a noun in both numbers among words, none of them held out."""
    unseen = {form for pair in held_out(PLURALS) for form in pair}
    known = {one for one in words if one.islower() and len(one) > 3} - unseen
    return [(one, one + "s") for one in words if one in known and one + "s" in known]


def any_agreement(rng: Rng, words: Sequence[str]) -> str:
    """A verb agrees with any noun there is: its form says which number it has."""
    nouns = nouns_of(tuple(words))
    return agreement(rng, nouns) if nouns else agreement(rng)


def begun(rng: Rng, words: Sequence[str]) -> str:
    """What may stand before an exhibit: a word or some, whatever they are."""
    return unlearned(" ".join(rng.sample(words, min(len(words), rng.randint(1, 3)))))


BEFORE_BRACKETS = [
    "See ", "Here is ", "Take ", "I like ", "Write: ", "This is ", "They ate ", "She bought ", "f", "x = ", "Find ",
    "Bring me ", "Give me ", "We saw ", "There is ", "Draw ", "Put in ", "Now buy ", "Tom has ", "We need ",
    "Point to ", "Watch ", "Come to ", "Sit by ", "Run to ",
]  # fmt: skip
PAIRS = ["()", "[]", "{}", "()", "<>"]


def nested(rng: Rng, depth: int, items: list[str], spaced: bool) -> str:
    opened, closed = rng.choice(PAIRS)
    gap = " " if spaced else ""
    parts: list[str] = []
    for _ in range(rng.randint(1, 4)):
        if depth and rng.random() < 0.6:
            parts.append(nested(rng, depth - 1, items, spaced))
            if rng.random() < 0.5:  # what was opened before it is closed at once
                break
        else:
            parts.append(("and " if parts and rng.random() < 0.15 else "") + rng.choice(items))
    return opened + gap + " ".join(parts) + gap + closed


def brackets(rng: Rng) -> str:
    items = rng.choice([train(FOOD), train(NAMES), list("abcdefxyz"), [str(n) for n in range(30)]])
    if rng.random() < 0.15:
        return " ".join(b for b in nested(rng, 3, [""], True).split())
    text = nested(rng, rng.choice([0, 1, 1, 2, 2, 3]), items, rng.random() < 0.5)
    if rng.random() < 0.45:
        after = rng.choice(["", "", ".", ".", " here.", " today.", " and more.", "!"])
        return rng.choice(BEFORE_BRACKETS) + text + after
    return text


def aside(rng: Rng) -> str:
    """A sentence with something in brackets or quotation marks."""
    who, thing, name = rng.choice(train(CHARACTERS)), rng.choice(train(THINGS)), rng.choice(train(NAMES))
    opened, closed = rng.choice([("(", ")"), ("(", ")"), ("[", "]"), ('"', '"'), ("'", "'")])
    size, (food, more) = rng.choice(["big", "small", "red", "kind", "new"]), rng.sample(train(FOOD), 2)
    inside = rng.choice(
        [
            f"a {size} one", f"not the {thing}", name, f"see the {thing}", f"the one with the {thing}",
            "the best of all", f"and {name}, too", f"it is a {size} one", f"it had {a(thing)}", f"with {a(thing)}",
            f"who is {size}", f"the {size} one with the {thing}", f"under the {thing}", f"like {name}",
        ]
    )  # fmt: skip
    return rng.choice(
        [
            f"The {who} {opened}{inside}{closed} went home.",
            f"The {who} has {a(thing)} {opened}{inside}{closed}.",
            f"{name} {opened}{inside}{closed} saw the {who}.",
            f"Our {who} {opened}{inside}{closed} is here.",
            f"{name} {opened}{inside}{closed} and the {who} {opened}{size}{closed} came, too.",
            f"There was {a(who)} {opened}{inside}{closed} in the house.",
            f"We ate {opened}{food} and {more}{closed} at home.",
            f"For lunch: {opened}{food}, {more}{closed}.",
            f'"I like the {thing}," said {name}.',
            f'{name} asked, "Is the {thing} here?"',
            f'"Who has the {thing}?" asked the {who}.',
            f'The {who} cried, "I want the {thing}!"',
            f'{name} told the {who}, "You can have my {thing}."',
            f'{name} said, "The {who} is here."',
            f'{name} wanted to know, "What is in the {thing}?"',
            f'The {who} asked {name}, "Did you see the {thing}?"',
            f'"How {size} is the {thing}?" asked {name}.',
            f'{name} asked, "Who took the {thing}?" and the {who} said, "I did."',
            f'{name} asked, "When can I have the {food}?"',
            f'Then {name} asked, "Why is the {thing} so {size}?"',
            f'The {who} is called "{name}".',
            f"The {thing} {opened}{inside}{closed} and the {who} {opened}{size}{closed} are mine.",
        ]
    )


TAGS = ["b", "i", "p", "em", "div", "span", "a", "h1", "ul", "li", "title", "body", "td", "strong"]


def markup(rng: Rng) -> str:
    words = " ".join(rng.sample(train(FOOD) + train(THINGS), rng.randint(1, 3)))
    who, name = rng.choice(train(CHARACTERS)), rng.choice(train(NAMES))
    if rng.random() < 0.3:
        words = rng.choice([f"The {who} is here.", f"{name} has {words}.", f"The {who}", f"{name} and the {who}", name])
    tag, inner = rng.sample(TAGS, 2)
    kind = rng.random()
    if kind < 0.35:
        return f"<{tag}>{words}</{tag}>"
    if kind < 0.6:
        return f"<{tag}><{inner}>{words}</{inner}></{tag}>"
    if kind < 0.75:
        items = rng.sample(train(FOOD), rng.randint(2, 4))
        end = rng.choice(["", "\n"])
        return f"<ul>{end}" + "".join(f"<li>{one}</li>{end}" for one in items) + "</ul>"
    if kind < 0.88:
        after = rng.choice(["", f" {rng.choice(train(FOOD))}"])
        return f"<{tag}>{words} <{inner}>{rng.choice([name, rng.choice(train(FOOD))])}</{inner}>{after}</{tag}>"
    mark = rng.choice(["**", "*", "`", "_", "__"])
    return f"The {who} has {mark}{words}{mark} and {mark}{rng.choice(train(FOOD))}{mark}."


def any_brackets(rng: Rng, words: Sequence[str]) -> str:
    """Brackets in brackets, or tags in tags, around any words, with any words before: what is open must be closed."""
    items = list(map(unlearned, rng.sample(words, min(len(words), 12))))
    before = f"{begun(rng, words)} " if rng.random() < 0.7 else ""
    if rng.random() < 0.6:
        return before + nested(rng, rng.choice([0, 1, 1, 2, 2, 3]), items, rng.random() < 0.3)
    outer, inner = rng.sample(TAGS, 2)
    after = rng.choice(["", "", f" {items[2]}"])
    return before + rng.choice(
        [
            f"<{outer}>{items[0]} {items[1]}</{outer}>",
            f"<{outer}>{items[0]} <{inner}>{items[1]}</{inner}>{after}</{outer}>",
            f"<{outer}><{inner}>{items[0]} {items[1]}</{inner}>{after}</{outer}>",
        ]
    )


ALPHABET = list("abcdefghijklmnopqrstuvwxyz")


def cycle(rng: Rng) -> str:
    """Days, months, seasons or letters in their order, forwards or backwards."""
    names = rng.choice([WEEK, WEEK, MONTHS, MONTHS, SEASONS, ALPHABET, [one.upper() for one in ALPHABET]])
    start, length = rng.randrange(len(names)), rng.randint(4, 14)
    direction = -1 if rng.random() < 0.2 else 1
    if names[0].lower() == "a":
        start, direction, length = rng.randrange(20), 1, min(length, 26)
        items = names[start : start + length]
    else:
        items = [names[(start + direction * n) % len(names)] for n in range(length)]
    before = rng.choice(["", "", "", "Days: ", "In order: ", "The months: ", "Continue: "])
    return before + rng.choice([", ", " ", "\n", ", then ", " - "]).join(items)


def neighbour(rng: Rng) -> str:
    names, unit = rng.choice([(WEEK, "day"), (MONTHS, "month"), (SEASONS, "season")])
    n = rng.randrange(len(names))
    before, this, after = names[n - 1], names[n], names[(n + 1) % len(names)]
    return rng.choice(
        [
            f"The {unit} after {this} is {after}.",
            f"The {unit} before {this} is {before}.",
            f"After {this} comes {after}.",
            f"{this} comes before {after}.",
            f"{this} comes after {before}.",
            f"What {unit} comes after {this}? {after}.",
            f"Today is {this}. Tomorrow will be {after}." if unit == "day" else f"It is {this}. Next comes {after}.",
            f"If today is {this}, yesterday was {before}."
            if unit == "day"
            else f"{before} is over, {this} is here, and {after} is next.",
        ]
    )


KINDS: list[tuple[Exhibit, float]] = [
    (counting, 64), (counting_told, 3), (numbered_list, 3), (steps_in_order, 1), (law, 3), (law_like, 4),
    (pronoun, 7), (agreement, 18), (agreement_pair, 5), (copying, 17), (repeating, 9), (names_in_a_story, 6),
    (brackets, 120), (aside, 10), (markup, 14), (cycle, 4), (neighbour, 3), (capital, 10), (colour, 8), (fact, 22),
    (french, 4), (europe, 1), (treat, 2),
]  # fmt: skip
"""Every kind, and how often it comes."""
ANY: list[tuple[Callable[[Rng, Sequence[str]], str], float]] = [
    (any_words, 90),
    (any_brackets, 100),
    (any_agreement, 30),
]
"""Where there is a vocabulary, so often any of its words are copied, stand in brackets or have a verb."""


def words_of(tokens: Iterable[str]) -> list[str]:
    """The words among tokens, without the things that are held out."""
    unseen = {one for some in (FOOD, THINGS, CHARACTERS) for one in held_out(some)}
    words = (one[1:] for one in tokens if one[:1] == " " and len(one) > 2 and one[1:].isascii() and one[1:].isalpha())
    return [one for one in words if one not in unseen and one.lower() not in unseen]


def documents(seed: int, words: Sequence[str] = (), only: Sequence[str] = ()) -> Iterator[str]:
    """Exhibits without end: a document has one, or some of the same kind, or some of several. See `words_of`."""
    return map(plain, marked(seed, words, only))


def marked(seed: int, words: Sequence[str] = (), only: Sequence[str] = ()) -> Iterator[str]:
    """The same, with what is not learned between marks; of the kinds that `only` names, if it names any."""
    rng = random.Random(seed)
    kinds = [(kind, often) for kind, often in KINDS if not only or kind.__name__ in only]
    kinds += [(partial(make, words=words), often) for make, often in ANY] if words else []
    makers, weights = [kind for kind, _ in kinds], [weight for _, weight in kinds]
    while True:
        same = rng.random() < 0.6
        maker = rng.choices(makers, weights)[0]
        count = rng.choice([1, 1, 2, 3, 4, 6])
        texts = [(maker if same else rng.choices(makers, weights)[0])(rng) for _ in range(count)]
        yield rng.choice(["\n", "\n", " ", "\n\n"]).join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=pathlib.Path, required=True, help="file for the texts")
    parser.add_argument("--tokens", type=int, default=1_000_000, help="about so many tokens (a token is four letters)")
    parser.add_argument("--seed", type=int, default=1)
    names = [kind.__name__ for kind, _ in KINDS]
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="KIND", help=", ".join(names))
    given = parser.parse_args()
    size = 0
    with given.out.open("w", encoding="utf-8") as out:
        for text in documents(given.seed, only=given.only):
            out.write(text + "\n<|endoftext|>\n")
            size += len(text)
            if size > 4 * given.tokens:
                return


if __name__ == "__main__":
    main()
