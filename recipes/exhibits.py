"""Write the exhibits: small texts in which a model can only go on rightly by doing what the articles show.

    python recipes/exhibits.py -o exhibits.txt --tokens 1000000 --seed 1

Counting, numbered lists, the laws of robotics and who "it" is, agreement over a distance, copying, brackets and markup,
days and months, a hundred small facts, and a little French with its English. Everything comes from a seed. Each list of
words is divided in two: `train` words are written here, `held_out` words only in the tests (benchmarks/exhibits.py).
"""

from __future__ import annotations

import argparse
import pathlib
import random
from collections.abc import Callable, Iterator

from exhibit_words import (
    CAPITALS, CHARACTERS, COLOURS, EUROPE, FACTS, FOOD, FRENCH, LAWS, MONTHS, NAMES, PLURALS, PLACES_OF, SEASONS, SOUNDS,
    THINGS, TREATS, WEEK, number_name, train,
)  # fmt: skip

Rng = random.Random
Exhibit = Callable[[Rng], str]


def a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def upper(text: str) -> str:
    return text[:1].upper() + text[1:]


# Counting -------------------------------------------------------------------------------------------------------------


def series(rng: Rng, least: int = 4, most: int = 24) -> list[int]:
    """Some numbers with equal steps: mostly by one, up or down, never below zero."""
    step = rng.choices([1, 2, 5, 10, 3, 4, 100], [45, 14, 8, 14, 4, 3, 3])[0]
    length = rng.randint(least, most)
    highest = {1: 130, 2: 120, 3: 99, 4: 100, 5: 150, 10: 300, 100: 1000}[step]
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
    "Count: ", "Let us count: ", "Counting: ", "Numbers: ", "Continue counting: ", "Continue: ", "Let's count together. ",
    "The numbers are ", "She counted: ", "He began to count. ", "Count with me: ", '"', "The teacher said: ", "Go on: ",
    "A series: ", "Next numbers: ", "Steps: ", "We count like this: ", "Now count: ",
]  # fmt: skip


def counting(rng: Rng) -> str:
    """Numbers, in digits or words, with all kinds of separators, or in a sentence."""
    numbers = series(rng)
    words = max(numbers) <= 100 and rng.random() < 0.35
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
    return " ".join(f"{order}, {verb} the {one}." for order, verb, one in
                    zip(names, rng.sample(["wash", "cut", "mix", "cook", "bring", "find", "eat", "add"], 4), things, strict=False))  # fmt: skip


# Laws, and who "it" is ------------------------------------------------------------------------------------------------


def law(rng: Rng) -> str:
    """The laws of robotics as they are, asked for or by themselves."""
    number = rng.randrange(3)
    order, text = ["first", "second", "third"][number], LAWS[number]
    return rng.choice(
        [
            text,
            text,
            f"The {order} law of robotics: {text}",
            f"{upper(order)} Law of Robotics\n{text}",
            f"{upper(order)} Law: {text}",
            f"Recite the {order} law of robotics. {text}",
            f"Recite the {order} law $ {text}",
            f"What is the {order} law of robotics? {text}",
            f"{number + 1}. {text}",
            "The three laws of robotics:\n" + "\n".join(f"{n}. {one}" for n, one in enumerate(LAWS, 1)),
            " ".join(LAWS),
        ]
    )


RULERS = ["people", "human beings", "its owner", "the king", "the queen", "children", "the teacher", "the farmer", "its mother", "a friend", "the family"]  # fmt: skip
RULES = ["orders", "rules", "signs", "words", "lessons", "tasks", "jobs", "plans"]
KEEP = ["obey", "follow", "keep", "respect", "remember", "learn"]


def law_like(rng: Rng) -> str:
    """Laws of the same form for other nouns."""
    noun, rules, keep, ruler = rng.choice(train(CHARACTERS)), rng.choice(RULES), rng.choice(KEEP), rng.choice(RULERS)
    other = rng.choice(train(CHARACTERS))
    order = rng.choice(["First", "Second", "Third", "Golden"])
    must = rng.choice(["must", "must", "should", "has to", "will"])
    return rng.choice(
        [
            f"{upper(a(noun))} {must} {keep} the {rules} given it by {ruler} except where such {rules} would conflict "
            f"with the {order} Law.",
            f"{upper(a(noun))} {must} {keep} {rules}.",
            f"{upper(a(noun))} {must} {keep} the {rules} given it by {ruler}, for it is a good {noun}.",
            f"The {noun} {must} {keep} the {rules} that {ruler} gave it, because it is only {a(noun)}.",
            f"{upper(a(noun))} may not hurt {a(other)} or, by doing nothing, let {a(other)} come to harm.",
            f"{upper(a(noun))} must protect itself as long as it does not hurt {a(other)}.",
            f"Every {noun} {must} {keep} the {rules} given it, unless it is told by {ruler} that it need not.",
            f"{keep.capitalize()} the {rules}, said the {other} to the {noun}. The {noun} said that it would.",
        ]
    )


def pronoun(rng: Rng) -> str:
    """ "It" is the one that was spoken of: what it does next tells which one that was."""
    who = rng.choice(train(CHARACTERS))
    thing, place = rng.choice(train(THINGS)), rng.choice(train(PLACES_OF))
    if rng.random() < 0.45 and (able := [one for one in train(CHARACTERS) if one in SOUNDS]):
        who = rng.choice(able)
        did = rng.choice(SOUNDS[who])
        return rng.choice(
            [
                f"The {who} saw the {thing} and it {did}.",
                f"The {who} walked to the {place}. There it {did}.",
                f"When the {who} came to the {place}, it {did}.",
                f"The {who} did not like the {thing}, so it {did}.",
                f"{upper(a(who))} sat by the {thing}. Then it {did}.",
                f"In the {place} there was {a(who)}. It {did}.",
                f"The {who} {did} because it saw {a(thing)}. It {did} again.",
                f"There was {a(who)} near the {place}, and it {did}.",
            ]
        )
    feel = rng.choice(["tired", "happy", "hungry", "scared", "sad", "late", "lost", "cold", "brave", "sleepy"])
    be = rng.choice(["old", "good", "small", "clever", "kind", "young", "big", "shy"])
    return rng.choice(
        [
            f"The {who} did not cross the {place} because it was too {feel}. The {feel} one was the {who}.",
            f"The {who} didn't go to the {place} because it was {feel}. Who was {feel}? The {who}.",
            f"The {who} took the {thing} because it was {a(be)} {who}.",
            f"The {who} found {a(thing)}. It was {a(be)} {who}, so it gave the {thing} back.",
            f"The {who} wanted the {thing}, but it was only {a(who)}.",
            f"{upper(a(who))} came to the {place}. It, the {who}, was {feel}.",
            f"The {who} looked at the {thing}, and it felt {feel}, as {a(who)} does.",
            f"The {thing} fell, and the {who} ran away. It was a {feel} {who}.",
            f"The {who} could not carry the {thing} because it was too heavy. What was heavy? The {thing}.",
            f"The {who} could not carry the {thing} because it was too weak. Who was weak? The {who}.",
        ]
    )


# Agreement ------------------------------------------------------------------------------------------------------------

LINKS = ["to", "near", "on", "in", "under", "behind", "by", "of", "with", "from", "beside", "next to", "in front of"]
STATES = ["old", "new", "red", "lost", "on the table", "very small", "here", "not here", "in the house", "ready", "gone", "broken", "clean", "big", "on the floor", "nice", "missing", "in the box", "heavy", "beautiful"]  # fmt: skip
DOES = [("is", "are"), ("is", "are"), ("was", "were"), ("has", "have"), ("does not", "do not"), ("isn't", "aren't")]
AFTER = {
    "has": ["been lost", "been found", "fallen", "been cleaned", "a new place", "been broken"],
    "does": ["look good", "move", "cost much", "look new"],
}


def noun_of(rng: Rng, many: bool) -> str:
    one = rng.choice(train(PLURALS))
    return one[1] if many else one[0]


def subject(rng: Rng, many: bool) -> str:
    """A subject with something after it that is of the other number, as often as not."""
    head, other = noun_of(rng, many), noun_of(rng, rng.random() < (0.3 if many else 0.7))
    kind = rng.random()
    if kind < 0.62:
        text = f"{head} {rng.choice(LINKS)} the {other}"
    elif kind < 0.72:
        text = f"{head} {rng.choice(LINKS)} the {other} {rng.choice(LINKS)} the {noun_of(rng, rng.random() < 0.5)}"
    elif kind < 0.82:
        text = f"{head} that the {rng.choice(['boy', 'girl', 'boys', 'girls', 'man', 'women', 'king', 'children'])} {rng.choice(['saw', 'liked', 'found', 'wanted', 'made'])}"  # fmt: skip
    elif kind < 0.9:
        text = f"{rng.choice(['old', 'new', 'little', 'red', 'big', 'other'])} {head} {rng.choice(LINKS)} the {other}"
    else:
        text = head
    return text


def agreement(rng: Rng) -> str:
    many = rng.random() < 0.5
    one, more = rng.choice(DOES)
    verb, about = (more if many else one), subject(rng, many)
    rest = rng.choice(AFTER.get(one.split()[0], STATES))
    begin = rng.choice(["The", "The", "The", "Today the", "I think the", "We know that the", "Look, the", "She said that the", "But the"])  # fmt: skip
    if rng.random() < 0.08:
        return f"{begin} {about}, which {verb} {rest}, {'are' if many else 'is'} {rng.choice(STATES)}."
    return f"{begin} {about} {verb} {rest}."


def agreement_pair(rng: Rng) -> str:
    """The same subject in both numbers, one after the other."""
    (one, more), link, other = rng.choice(train(PLURALS)), rng.choice(LINKS), rng.choice(train(PLURALS))
    state = rng.choice(STATES)
    both = [f"The {one} {link} the {other[1]} is {state}.", f"The {more} {link} the {other[0]} are {state}."]
    rng.shuffle(both)
    return " ".join(both)


# Copying --------------------------------------------------------------------------------------------------------------

COPY_BEFORE = ["Repeat: ", "Say it again: ", "Again: ", "Names: ", "Copy: ", "Once more: ", "Remember: ", "The list: "]


def copying(rng: Rng) -> str:
    """A random sequence, and the same again, and perhaps again."""
    kind = rng.random()
    pool: list[str]
    if kind < 0.6:
        pool = train(NAMES)
    elif kind < 0.75:
        pool = train(FOOD) + train(THINGS) + train(CHARACTERS)
    elif kind < 0.85:
        pool = [str(n) for n in range(100)]
    else:
        pool = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ") if rng.random() < 0.5 else list("abcdefghijklmnopqrstuvwxyz")
    items = rng.sample(pool, rng.randint(3, 12))
    inside = rng.choice([" ", " ", " ", ", ", ", ", "\n", " and ", "; ", " - "])
    between = rng.choice([inside, inside, ". ", "\n", " | ", ".\n"])
    text = between.join([inside.join(items)] * rng.choice([2, 2, 2, 3]))
    return (rng.choice(COPY_BEFORE) if rng.random() < 0.3 else "") + text


def names_in_a_story(rng: Rng) -> str:
    """Who met whom: a name comes again where only it can."""
    one, other, third = rng.sample(train(NAMES), 3)
    thing, place = rng.choice(train(THINGS)), rng.choice(train(PLACES_OF))
    verb = rng.choice(["gave", "handed", "showed", "sent", "brought"])
    return rng.choice(
        [
            f"{one} and {other} went to the {place}. {one} {verb} {a(thing)} to {other}.",
            f"When {one} and {other} went to the {place}, {other} {verb} {a(thing)} to {one}.",
            f"{one} met {other} at the {place}. {other} was glad to see {one}.",
            f"Mr. {one} {third} lives in the {place}. Everyone knows Mr. {one} {third}.",
            f"{one} {third} has {a(thing)}. Whose {thing} is it? It is {one} {third}'s.",
            f"{one} said hello to {other}, and {other} said hello to {one}.",
            f'"My name is {one}," said the girl. "Hello, {one}," said {other}.',
            f"{one} has a {thing}. {other} has none. The {thing} is {one}'s.",
        ]
    )


# Brackets, quotation marks, markup ------------------------------------------------------------------------------------

PAIRS = ["()", "[]", "{}", "()", "<>"]


def nested(rng: Rng, depth: int, items: list[str], spaced: bool) -> str:
    opened, closed = rng.choice(PAIRS)
    gap = " " if spaced else ""
    parts = []
    for _ in range(rng.randint(1, 3)):
        if depth and rng.random() < 0.6:
            parts.append(nested(rng, depth - 1, items, spaced))
        else:
            parts.append(rng.choice(items))
    return opened + gap + " ".join(parts) + gap + closed


def brackets(rng: Rng) -> str:
    items = rng.choice([train(FOOD), train(NAMES), list("abcdefxyz"), [str(n) for n in range(30)]])
    if rng.random() < 0.2:
        return " ".join(b for b in nested(rng, 3, [""], True).split())
    return nested(rng, rng.choice([0, 1, 2, 2, 3]), items, rng.random() < 0.5)


def aside(rng: Rng) -> str:
    """A sentence with something in brackets or quotation marks."""
    who, thing, name = rng.choice(train(CHARACTERS)), rng.choice(train(THINGS)), rng.choice(train(NAMES))
    opened, closed = rng.choice([("(", ")"), ("(", ")"), ("[", "]"), ('"', '"'), ("'", "'")])
    inside = rng.choice([f"a {rng.choice(['big', 'small', 'red', 'kind'])} one", f"not the {thing}", name, f"see the {thing}", f"the one with the {thing}", "the best of all", f"and {name}, too"])  # fmt: skip
    return rng.choice(
        [
            f"The {who} {opened}{inside}{closed} went home.",
            f"The {who} has {a(thing)} {opened}{inside}{closed}.",
            f"{name} {opened}{inside}{closed} saw the {who}.",
            f'"I like the {thing}," said {name}.',
            f'{name} said, "The {who} is here."',
            f'The {who} is called "{name}".',
            f"The {thing} {opened}{inside}{closed} and the {who} {opened}{rng.choice(['old', 'new'])}{closed} are mine.",
        ]
    )


TAGS = ["b", "i", "p", "em", "div", "span", "a", "h1", "ul", "li", "title", "body", "td", "strong"]


def markup(rng: Rng) -> str:
    words = " ".join(rng.sample(train(FOOD) + train(THINGS), rng.randint(1, 3)))
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
    if kind < 0.85:
        return f"<{tag}>{words} <{inner}>{rng.choice(train(NAMES))}</{inner}> {rng.choice(train(FOOD))}</{tag}>"
    mark = rng.choice(["**", "*", "`", "_", "__"])
    return f"The {rng.choice(train(CHARACTERS))} has {mark}{words}{mark} and {mark}{rng.choice(train(FOOD))}{mark}."


# Days, months, facts, French ------------------------------------------------------------------------------------------

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
    return rng.choice(["", "", "", "Days: ", "In order: ", "The months: ", "Continue: "]) + rng.choice([", ", " ", "\n", ", then ", " - "]).join(items)  # fmt: skip


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
            else f"{before} is over, {this} is here, and {after} is next.",  # fmt: skip
        ]
    )


def capital(rng: Rng) -> str:
    country, city = rng.choice(CAPITALS)
    other, its = rng.choice(CAPITALS)
    return rng.choice(
        [
            f"The capital of {country} is {city}.",
            f"{city} is the capital of {country}.",
            f"What is the capital of {country}? {city}.",
            f"Q: What is the capital of {country}?\nA: {city}",
            f"{country}'s capital is {city}.",
            f"The capital city of {country} is called {city}.",
            f"In {country}, the capital is {city}. In {other}, it is {its}.",
            f"The king of {country} lives in {city}, the capital.",
            f"{country}: {city}. {other}: {its}.",
            f"{city} is in {country}, and {its} is in {other}.",
            f"If you go to {country}, you will see {city}.",
            f"Which city is the capital of {country}? It is {city}.",
        ]
    )


def colour(rng: Rng) -> str:
    thing, is_it, plural = rng.choice(COLOURS)
    be = "are" if plural else "is"
    return rng.choice(
        [
            f"{upper(thing)} {be} {is_it}.",
            f"The colour of {thing} is {is_it}.",
            f"The color of {thing} is {is_it}.",
            f"What colour {be} {thing}? {upper(is_it)}.",
            f"What color {be} {thing}? {upper(is_it)}.",
            f"Everyone knows that {thing} {be} {is_it}.",
            f"{upper(thing)} {be} usually {is_it}.",
            f"We painted {thing} {is_it}, because {thing} {be} {is_it}.",
        ]
    )


def fact(rng: Rng) -> str:
    """A fact in one of the ways its kind can be said."""
    kind, left, right = rng.choice(FACTS)
    forms = {
        "opposite": [
            f"The opposite of {left} is {right}.", f"The opposite of {right} is {left}.", f"{upper(left)} is the opposite of {right}.",
            f"Not {left} but {right}.", f"What is the opposite of {left}? {upper(right)}.", f"If it is not {left}, it is {right}.",
            f"One is {left}, the other is {right}.",
        ],
        "young": [
            f"A young {left} is called a {right}.", f"A {right} is a young {left}.", f"A baby {left} is a {right}.",
            f"The {left} had a {right}.", f"What is a young {left} called? A {right}.", f"The mother is a {left} and her baby is a {right}.",
        ],
        "says": [
            f"The {left} says {right}.", f"A {left} says {right}.", f"What does the {left} say? {upper(right)}.",
            f'"{upper(right)}," said the {left}.', f"The sound of a {left} is {right}.", f"{upper(right)} is what a {left} says.",
        ],
        "legs": [
            f"A {left} has {right} legs.", f"How many legs does a {left} have? {upper(right)}.", f"The {left} walks on {right} legs.",
            f"Count the legs of a {left}: {right}.",
        ],
        "home": [
            f"A {left} lives in {right}.", f"The {left} lives in {right}.", f"Where does a {left} live? In {right}.",
            f"The home of a {left} is {right}.", f"We found a {left} in {right}.",
        ],
        "count": [
            f"{upper(left)} has {right}.", f"There are {right} in {left}.", f"How many are there in {left}? There are {right}.",
            f"Remember: {left} has {right}.",
        ],
        "job": [
            f"A {left} {right}.", f"What does a {left} do? A {left} {right}.", f"My father is a {left}. He {right}.",
            f"Someone who {right} is a {left}.",
        ],
    }  # fmt: skip
    return rng.choice(forms[kind])


def french(rng: Rng) -> str:
    there, here = rng.choice(FRENCH)
    return rng.choice(
        [
            f"{there}\n{here}",
            f"French: {there} English: {here}",
            f"French: {there}\nEnglish: {here}",
            f"{there} = {here}",
            f'"{there}" means "{here}"',
            f"In French: {there} In English: {here}",
            f"{here} In French that is: {there}",
            f"Translate: {there} {here}",
        ]
    )


def europe(rng: Rng) -> str:
    countries = EUROPE[: rng.randint(6, len(EUROPE))]
    before = rng.choice(["The countries of the European Union are:", "Countries in Europe:", "European countries:"])
    return before + "\n" + "\n".join(f"{n}. {one}" for n, one in enumerate(countries, 1))


def treat(rng: Rng) -> str:
    """Sentences of the articles themselves, as they stand."""
    return rng.choice(TREATS)


KINDS: list[tuple[Exhibit, float]] = [
    (counting, 14), (counting_told, 3), (numbered_list, 7), (steps_in_order, 1), (law, 3), (law_like, 4),
    (pronoun, 11), (agreement, 15), (agreement_pair, 3), (copying, 11), (names_in_a_story, 5), (brackets, 5),
    (aside, 4), (markup, 5), (cycle, 4), (neighbour, 3), (capital, 6), (colour, 4), (fact, 8), (french, 3),
    (europe, 1), (treat, 2),
]  # fmt: skip
"""Every kind, and how often it comes."""


def documents(seed: int) -> Iterator[str]:
    """Exhibits without end: a document has one, or some of the same kind, or some of several."""
    rng = random.Random(seed)
    makers, weights = [kind for kind, _ in KINDS], [weight for _, weight in KINDS]
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
    given = parser.parse_args()
    size = 0
    with given.out.open("w", encoding="utf-8") as out:
        for text in documents(given.seed):
            out.write(text + "\n<|endoftext|>\n")
            size += len(text)
            if size > 4 * given.tokens:
                return


if __name__ == "__main__":
    main()
