"""The exhibits that are facts: capitals, colours, opposites and the like, each said in many ways.

A fact is learned, not a sentence, if it comes in sentences enough; the tests (benchmarks/exhibits.py) say it in others.
"""

from __future__ import annotations

from exhibit_sentences import Rng, upper
from exhibit_words import CAPITALS, COLOURS, FACTS, NAMES, train

SAYING = [
    "Everyone knows that", "I learned that", "She told me that", "Remember that", "It is true that", "As we all know,",
    "The book says that", "He said that", "Mom says that", "I think that", "Look,", "Once I heard that",
    "They say that", "Grandpa told us that", "In school we read that", "He knows that", "You can be sure that",
    "Did you hear that", "Write down that", "The girl said that", "My brother thinks that", "Is it true that",
    "Nobody forgets that", "Today I found out that", "Our teacher told us that", "Sometimes people say that",
]  # fmt: skip


def told(rng: Rng, text: str) -> str:
    """A fact, now and then as somebody's words."""
    if "?" in text or ":" in text or not text.startswith(("The ", "A ", "An ", "Every ", "Our ", "My ")):
        return text
    chance = rng.random()
    if chance < 0.4:
        return f"{rng.choice(SAYING)} {text[0].lower()}{text[1:]}"
    if chance < 0.5:
        return f'"{text[:-1]}," said {rng.choice(train(NAMES))}.'
    return text


CAPITAL = [
    "The capital of {country} is {city}.",
    "{city} is the capital of {country}.",
    "What is the capital of {country}? {city}.",
    "Q: What is the capital of {country}?\nA: {city}",
    "{country}'s capital is {city}.",
    "The capital city of {country} is called {city}.",
    "In {country}, the capital is {city}. In {other}, it is {its}.",
    "The king of {country} lives in {city}, the capital.",
    "{country}: {city}. {other}: {its}.",
    "{city} is in {country}, and {its} is in {other}.",
    "If you go to {country}, you will see {city}.",
    "Which city is the capital of {country}? It is {city}.",
    "Can you tell me the capital of {country}? Yes, it is {city}.",
    "Do you know the capital of {country}? It is {city}.",
    "They drove to the capital of {country}, {city}, and stayed there.",
    "She was born in the capital of {country}: {city}.",
    "Name the capital of {country}. {city}.",
    "My friend lives in the capital of {country}, which is {city}.",
    "The capital of {country} is not {its}. It is {city}.",
    "He went from the capital of {country}, {city}, to the capital of {other}, {its}.",
    "I asked about the capital of {country}. It was {city}.",
    "The people of {country} have a capital. It is {city}.",
]


def capital(rng: Rng) -> str:
    (country, city), (other, its) = rng.sample(CAPITALS, 2)
    return told(rng, rng.choice(CAPITAL).format(country=country, city=city, other=other, its=its))


COLOUR = [
    "{Thing} {be} {is_it}.",
    "The colour of {thing} is {is_it}.",
    "The color of {thing} is {is_it}.",
    "What colour {be} {thing}? {Is_it}.",
    "What color {be} {thing}? {Is_it}.",
    "Everyone knows that {thing} {be} {is_it}.",
    "{Thing} {be} usually {is_it}.",
    "We painted {thing} {is_it}, because {thing} {be} {is_it}.",
    "I see that {thing} {be} {is_it}.",
    "The child said that {thing} {be} {is_it}.",
    "Did you notice that {thing} {be} {is_it}?",
    "Her father told her that {thing} {be} {is_it}.",
    "It is {is_it}, for {thing} {be} {is_it}.",
    "Why is it so that {thing} {be} {is_it}?",
]


def colour(rng: Rng) -> str:
    thing, be, is_it = rng.choice(COLOURS)
    form = rng.choice(COLOUR)
    return told(rng, form.format(thing=thing, be=be, is_it=is_it, Thing=upper(thing), Is_it=upper(is_it)))


FORMS = {
    "opposite": [
        "The opposite of {left} is {right}.",
        "The opposite of {right} is {left}.",
        "{Left} is the opposite of {right}.",
        "Not {left} but {right}.",
        "What is the opposite of {left}? {Right}.",
        "If it is not {left}, it is {right}.",
        "One is {left}, the other is {right}.",
        "{Left} and {right} are opposites.",
        "Say the opposite of {left}: {right}.",
        "Can you name the opposite of {left}? Yes, it is {right}.",
        "The word {left} is the opposite of the word {right}.",
        "Tim asked for the opposite of {left}. It is {right}.",
        "I know the opposite of {left}. It is {right}.",
    ],
    "young": [
        "A young {left} is called a {right}.",
        "A {right} is a young {left}.",
        "A baby {left} is a {right}.",
        "The {left} had a {right}.",
        "What is a young {left} called? A {right}.",
        "The mother is a {left} and her baby is a {right}.",
        "We saw a young {left}, a {right}.",
        "A small {left} is called a {right}.",
        "People call a young {left} a {right}.",
        "Her {left} has a baby. It is a {right}.",
        "When it is young, a {left} is called a {right}.",
        "The child of a {left} is called a {right}.",
        "Every {left} was once a {right}.",
    ],
    "says": [
        "The {left} says {right}.",
        "A {left} says {right}.",
        "What does the {left} say? {Right}.",
        '"{Right}," said the {left}.',
        "The sound of a {left} is {right}.",
        "{Right} is what a {left} says.",
        "Our {left} says {right}.",
        "Every {left} says {right}.",
        "In the yard a {left} says {right}.",
        "All day long the {left} says {right}.",
        "I hear the {left}. It says {right}.",
        "The little {left} says {right}.",
        "Listen! The {left} says {right}.",
    ],
    "legs": [
        "A {left} has {right} legs.",
        "How many legs does a {left} have? {Right}.",
        "The {left} walks on {right} legs.",
        "Count the legs of a {left}: {right}.",
        "A {left} stands on {right} legs.",
        "I counted the legs of the {left}. There are {right}.",
        "The {left} has {right} legs.",
        "How many legs has a {left}? It has {right}.",
        "The number of legs of a {left} is {right}.",
        "Every {left} has {right} legs.",
        "The legs of the {left}: there are {right} of them.",
    ],
    "home": [
        "A {left} lives in {right}.",
        "The {left} lives in {right}.",
        "Where does a {left} live? In {right}.",
        "The home of a {left} is {right}.",
        "We found a {left} in {right}.",
        "Every {left} lives in {right}.",
        "My {left} lives in {right}.",
        "The old {left} lives in {right}.",
        "You will find a {left} in {right}.",
        "I know that a {left} lives in {right}.",
        "Our {left} sleeps in {right}.",
    ],
    "count": [
        "{Left} has {right}.",
        "There are {right} in {left}.",
        "How many are there in {left}? There are {right}.",
        "Remember: {left} has {right}.",
        "We know that {left} has {right}.",
        "Is it true that {left} has {right}? Yes.",
        "Everyone can see that {left} has {right}.",
        "I counted: {left} has {right}.",
        "He told me that {left} has {right}.",
    ],
    "job": [
        "A {left} {right}.",
        "What does a {left} do? A {left} {right}.",
        "My father is a {left}. He {right}.",
        "Someone who {right} is a {left}.",
        "The {left} {right}.",
        "Every day the {left} {right}.",
        "Her aunt is a {left}. She {right}.",
        "Tom wants to be a {left}, because a {left} {right}.",
        "A good {left} {right}.",
        "What is a {left} for? A {left} {right}.",
        "Anna is a {left}. She {right}.",
    ],
}
"""How each kind of fact is said; with a capital letter, so are its words."""


def fact(rng: Rng) -> str:
    """A fact in one of the ways its kind can be said."""
    kind, left, right = rng.choice(FACTS)
    form = rng.choice(FORMS[kind])
    return told(rng, form.format(left=left, right=right, Left=upper(left), Right=upper(right)))
