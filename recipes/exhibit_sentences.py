"""The exhibits that are sentences: laws and who "it" is, agreement over a distance, names, French."""

from __future__ import annotations

import random
from collections.abc import Sequence

from exhibit_words import (
    CHARACTERS,
    EUROPE,
    FRENCH,
    LAWS,
    NAMES,
    PLACES_OF,
    PLURALS,
    SOUNDS,
    THINGS,
    TREATS,
    train,
)  # fmt: skip

Rng = random.Random


def a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def upper(text: str) -> str:
    return text[:1].upper() + text[1:]


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


RULERS = [
    "people", "human beings", "its owner", "the king", "the queen", "children", "the teacher", "the farmer",
    "its mother", "a friend", "the family",
]  # fmt: skip
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


LINKS = ["to", "near", "on", "in", "under", "behind", "by", "of", "with", "from", "beside", "next to", "in front of"]
STATES = [
    "old", "new", "red", "lost", "on the table", "very small", "here", "not here", "in the house", "ready", "gone",
    "broken", "clean", "big", "on the floor", "nice", "missing", "in the box", "heavy", "beautiful",
]  # fmt: skip
PEOPLE = ["boy", "girl", "boys", "girls", "man", "women", "king", "children"]
BEGIN = [
    "The", "The", "The", "The", "Today the", "I think the", "We know that the", "Look, the", "She said that the",
    "But the", "In the morning the", "Our teacher says that the", "At night the", "After that the", "Now the",
    "When they came, the", "Do you know that the", "It is true that the", "He wrote that the",
]  # fmt: skip
ADJECTIVES = ["old", "new", "little", "red", "big", "other", "small", "good", "dark", "long", "blue"]
DOES = [("is", "are"), ("is", "are"), ("was", "were"), ("has", "have"), ("does not", "do not"), ("isn't", "aren't")]
AFTER = {
    "has": ["been lost", "been found", "fallen", "been cleaned", "a new place", "been broken"],
    "does": ["look good", "move", "cost much", "look new"],
}


Nouns = Sequence[tuple[str, ...]]
"""Nouns in both numbers."""
TAUGHT: Nouns = train(PLURALS)


def noun_of(rng: Rng, many: bool, nouns: Nouns) -> str:
    return rng.choice(nouns)[many]


def subject(rng: Rng, many: bool, nouns: Nouns) -> str:
    """A subject with something after it that is of the other number, as often as not."""
    head, other = noun_of(rng, many, nouns), noun_of(rng, rng.random() < (0.3 if many else 0.7), nouns)
    kind = rng.random()
    if kind < 0.62:
        text = f"{head} {rng.choice(LINKS)} the {other}"
    elif kind < 0.72:
        text = (
            f"{head} {rng.choice(LINKS)} the {other} {rng.choice(LINKS)} the {noun_of(rng, rng.random() < 0.5, nouns)}"
        )
    elif kind < 0.82:
        text = f"{head} that the {rng.choice(PEOPLE)} {rng.choice(['saw', 'liked', 'found', 'wanted', 'made'])}"
    elif kind < 0.9:
        first, second = rng.choice(ADJECTIVES), rng.choice(ADJECTIVES)
        text = rng.choice(
            [f"{first} {head} {rng.choice(LINKS)} the {other}", f"{head} {rng.choice(LINKS)} the {second} {other}"]
        )
    else:
        text = head
    return text


def agreement(rng: Rng, nouns: Nouns = TAUGHT) -> str:
    many = rng.random() < 0.5
    one, more = rng.choice(DOES)
    verb, about = (more if many else one), subject(rng, many, nouns)
    rest = rng.choice(AFTER.get(one.split()[0], STATES))
    begin = rng.choice(BEGIN)
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


def names_in_a_story(rng: Rng) -> str:
    """Who met whom: a name comes again where only it can."""
    one, other, third = rng.sample(NAMES, 3)
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
