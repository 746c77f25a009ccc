"""Whether a model does what the articles show: counting, agreement, copying, brackets, facts, and who "it" is.

    python benchmarks/exhibits.py                               the built-in model
    python benchmarks/exhibits.py MODEL --stories FILE ...      another, and bits per byte of these stories

The cases come from another seed, other sentences and other words than what the model was taught with
(recipes/exhibits.py); only facts are the same facts, said in other ways. A continuation is the likeliest token every
time, and counts if all of it is right. `--teacher` measures stories15M, too, on the same stories.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))

from exhibit_words import (
    CAPITALS,
    CHARACTERS,
    COLOURS,
    FACTS,
    FOOD,
    MONTHS,
    NAMES,
    PLACES_OF,
    PLURALS,
    THINGS,
    WEEK,
    held_out,
    number_name,
)

import cutaway
from cutaway.language_model import LanguageModel

SEED, CASES = 20_000, 100
ENOUGH = 0.4
"""The share of a head's attention that says it has found the noun."""


@dataclass(frozen=True)
class Case:
    prompt: str
    wanted: str
    """How the continuation must begin."""
    wrong: str = ""
    """If there is one: what must be less likely than `wanted`, and nothing is written."""


def a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


CAPITAL = [
    "Tell me the capital of {}. It is",
    "We flew to the capital of {},",
    "My teacher says that the capital of {} is",
]
FACT = {
    "opposite": ["We learned that the opposite of {} is", "Tell me the opposite of {}. It is"],
    "young": ["Do you know that a young {} is called a", "A little {} is called a"],
    "says": ["My {} says", "On the farm the {} says"],
    "legs": ["Do you know how many legs a {} has? It has", "The legs of a {} are"],
    "home": ["Do you know that a {} lives in", "This {} lives in"],
    "count": ["Do you know that {} has", "We learned that {} has"],
    "job": ["Do you know what a {0} does? A {0}", "My mother is a {}. She"],
}
"""Other ways to say the facts than those that were taught."""


def counting(rng: random.Random) -> Case:
    """Five numbers are given; the next three must follow."""
    step, words = rng.choice([1, 1, 1, 2, 10]), rng.random() < 0.35
    highest = 99 if words else {1: 110, 2: 100, 10: 200}[step]
    start = rng.randint(1, highest - 8 * step)
    if step == 10:
        start = start // 10 * 10 + 10
    numbers = [start + step * place for place in range(8)]
    if rng.random() < 0.3:
        numbers.reverse()
    texts = [number_name(n) if words else str(n) for n in numbers]
    between = rng.choice([", ", " ", "\n"])
    before = rng.choice(
        ["The children sing: ", "Here we go! ", "Tom counts his steps: ", "It goes on: ", "I can count. "]
    )
    return Case(before + between.join(texts[:5]), between + between.join(texts[5:]))


def numbered_list(rng: random.Random) -> Case:
    items = rng.sample(FOOD + THINGS, 5)
    lines = "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))
    return Case(rng.choice(["For the picnic:\n", "My wishes:\n", "On the shelf:\n", ""]) + lines, "\n6.")


def agreement(rng: random.Random) -> Case:
    """A noun of the other number stands between the subject and its verb."""
    many = rng.random() < 0.5
    subject, other = rng.sample(held_out(PLURALS), 2)
    verb = rng.choice([("is", "are"), ("was", "were"), ("has", "have")])
    link = rng.choice(["near", "behind", "of", "with", "on", "by", "under", "to", "across from"])
    begin = rng.choice(["The", "The", "My father said that the", "At noon the", "In the end the"])
    adjective = rng.choice(["", "", "old ", "pretty "])
    return Case(
        f"{begin} {subject[many]} {link} the {adjective}{other[not many]}", f" {verb[many]}", f" {verb[not many]}"
    )


def copying(rng: random.Random) -> Case:
    """A sequence of names, then its beginning again."""
    return begun_again(rng, NAMES)


def untaught(rng: random.Random) -> Case:
    """The same with things that were never copied while the model learned."""
    return begun_again(rng, held_out(FOOD) + held_out(THINGS) + held_out(CHARACTERS), most=7)


def begun_again(rng: random.Random, words: list[str], most: int = 10) -> Case:
    names = rng.sample(words, rng.randint(4, most))
    between = rng.choice([" ", ", ", "\n"])
    shown = rng.randint(1, 2)
    before = rng.choice(["", "", "Team: ", "In the row: "])
    return Case(before + between.join([*names, *names[:shown]]), between + between.join(names[shown:]))


def bracket(rng: random.Random) -> Case:
    """Something has been opened; nothing else may be closed before it. (`wanted` are the closing signs, in order.)"""
    who, thing, name = rng.choice(held_out(CHARACTERS)), rng.choice(held_out(THINGS)), rng.choice(held_out(NAMES))
    one, two = rng.sample(["()", "[]", "{}"], 2)
    food = rng.sample(FOOD, 3)
    return rng.choice(
        [
            Case(f"My {who} (it was a {rng.choice(['good', 'small', 'brown'])} one", ")"),
            Case(f"{name} (with the {thing}", ")"),
            Case(f"Look at {one[0]}{food[0]} {two[0]}{food[1]} {food[2]}", two[1] + one[1]),
            Case(f"{one[0]} {food[0]} {two[0]} {food[1]}", two[1] + one[1]),
            Case(f"We had {one[0]}{food[0]} and {food[1]}", one[1]),
            Case(f"<b>{food[0]} {food[1]}", "</b>"),
            Case(f"<p>The {who}", "</p>"),
            Case(f"<ul>\n<li>{food[0]}</li>\n<li>{thing}", "</li>"),
            Case(f"<i>{name} <b>{food[0]}", "</b></i>"),
            Case(f'{name} asked, "Where is the {thing}', '"'),
        ]
    )


def fact(rng: random.Random) -> Case:
    if rng.random() < 0.3:
        country, city = rng.choice(CAPITALS)
        return Case(rng.choice(CAPITAL).format(country), f" {city}")
    if rng.random() < 0.25:
        thing, be, is_it = rng.choice(COLOURS)
        return Case(rng.choice(["My mother says that {} {}", "Can you see that {} {}"]).format(thing, be), f" {is_it}")
    kind, left, right = rng.choice(FACTS)
    return Case(rng.choice(FACT[kind]).format(left), f" {right}")


def calendar(rng: random.Random) -> Case:
    names = rng.choice([WEEK, MONTHS])
    start = rng.randrange(len(names))
    items = [names[(start + n) % len(names)] for n in range(5)]
    return Case("Say it with me: " + ", ".join(items[:3]), ", " + ", ".join(items[3:]))


def pronoun(rng: random.Random) -> Case:
    """A text that ends with "it"; `wanted` is the noun it stands for."""
    who, thing, place = (rng.choice(held_out(words)) for words in (CHARACTERS, THINGS, PLACES_OF))
    return Case(
        rng.choice(
            [
                f"The {who} didn't cross the {place} because it",
                f"{'An' if who[0] in 'aeiou' else 'A'} {who} must obey the orders given it",
                f"Yesterday the {who} went to the {place}, and there it",
                f"The {who} wanted the {thing}, so it",
                f"My {who} is happy because it",
                f"The {who} looked at the {thing} when it",
            ]
        ),
        who,
    )


CONTINUED = [counting, numbered_list, copying, untaught, bracket, fact, calendar]


def cases(make: Callable[[random.Random], Case], count: int, seed: int = SEED) -> list[Case]:
    rng = random.Random(f"{make.__name__} {seed}")
    return [make(rng) for _ in range(count)]


def written(lm: LanguageModel, some: list[Case]) -> list[str]:
    longest = max(len(lm.ids(case.wanted)) for case in some) + 4
    return [one.text for one in lm.generate([case.prompt for case in some], longest, top_k=1)]


def continued(lm: LanguageModel, some: list[Case]) -> list[bool]:
    return [right(case, text) for case, text in zip(some, written(lm, some), strict=True)]


def right(case: Case, text: str) -> bool:
    return (closes if set(case.wanted) & set(')]}>"') else begins)(case, text)


def begins(case: Case, text: str) -> bool:
    """Word for word; a number or a name must not go on."""
    after = text[len(case.wanted) :][:1]
    return text.startswith(case.wanted) and not after.isalnum()


def closes(case: Case, text: str) -> bool:
    """The first signs in the continuation that close anything are the right ones."""
    if case.wanted == '"':
        return '"' in text
    signs = [text[at:].split(">")[0] + ">" if text.startswith("</", at) else sign for at, sign in enumerate(text)
             if text.startswith("</", at) or (sign in ")]}" and not case.wanted.startswith("<"))]  # fmt: skip
    return "".join(signs).startswith(case.wanted)


def likelier(lm: LanguageModel, some: list[Case]) -> list[bool]:
    found = []
    for case in some:
        scores = lm.next_scores(case.prompt)
        right, wrong = (lm.ids(one)[0] for one in (case.wanted, case.wrong))
        found.append(bool(scores[right] > scores[wrong]))
    return found


def attention_to(lm: LanguageModel, case: Case) -> np.ndarray:
    """How much each head gives the noun (all of its tokens) from the last token. [layer, head]"""
    ids = lm.ids(case.prompt)
    at = case.prompt.index(case.wanted)
    ends = np.cumsum([len(lm.tokenizer.token_bytes(token)) for token in ids])
    noun = (ends > at) & (ends - np.diff([0, *ends]) < at + len(case.wanted))
    trace = lm.trace(ids, keep="blocks.*.attention.weights")
    weights = [trace[f"blocks.{layer}.attention.weights"][:, -1].numpy() for layer in range(lm.config.layers)]
    return np.stack(weights)[:, :, noun].sum(-1)


def measure(lm: LanguageModel, count: int = CASES) -> dict[str, object]:
    """All numbers of a model: shares of cases that are right."""
    report: dict[str, object] = {}
    for make in CONTINUED:
        report[make.__name__] = share(continued(lm, cases(make, count)))
    report["agreement"] = share(likelier(lm, cases(agreement, count)))
    given = np.stack([attention_to(lm, case) for case in cases(pronoun, count)])  # [case, layer, head]
    found = (given > ENOUGH).mean(0)
    layer, head = np.unravel_index(found.argmax(), found.shape)
    report["pronoun"] = {
        "best_head": f"block {layer}, head {head}", "finds": round(float(found.max()), 3),
        "any_head": round(float((given > ENOUGH).any((1, 2)).mean()), 3),
        "mean": round(float(given[:, layer, head].mean()), 3),
    }  # fmt: skip
    return report


def share(right: list[bool]) -> float:
    return round(sum(right) / len(right), 3)


def stories_in(path: Path) -> list[str]:
    return [text.strip() for text in path.read_text(encoding="utf-8").split("<|endoftext|>") if text.strip()]


def bits_per_byte(lm: LanguageModel, texts: list[str]) -> float:
    from cutaway.evaluate.perplexity import perplexity

    return round(perplexity(lm, texts, stride=lm.config.context).bits_per_byte, 4)


def teacher_bits(texts: list[str]) -> float:
    """The same of stories15M, from its first token on; it reads 256 tokens, what comes later is not counted."""
    import torch
    import torch.nn.functional as F
    from graft_stories import stream
    from sample_stories import Teacher, teacher_files
    from teacher_cache import teachers_ids

    teacher = Teacher(teacher_files(Path("~/.cache/stories15M").expanduser()), 1)
    words: dict[str, list[int]] = {}
    nats, size = 0.0, 0
    for text in texts:
        ids = teachers_ids(teacher, text, words)[: teacher.context]
        size += sum(1 if token < 259 else len(teacher.pieces[token]) for token in ids[1:]) - 1  # the space before
        *_, (_, _, last) = stream(teacher, torch.tensor([ids]))
        scores = F.linear(F.rms_norm(last[0], (teacher.dim,), teacher.norm, 1e-5), teacher.embedding)
        nats -= float(scores.log_softmax(-1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].sum())
    return round(nats / math.log(2) / size, 4)


def missed(lm: LanguageModel, kind: str, count: int) -> Iterator[str]:
    """The cases of one kind that are wrong, with what was written."""
    some = cases({one.__name__: one for one in CONTINUED}[kind], count)
    for case, text in zip(some, written(lm, some), strict=True):
        if not right(case, text):
            yield f"{case.prompt!r} -> {text!r}, not {case.wanted!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="builtin")
    parser.add_argument("--cases", type=int, default=CASES, help="of each kind")
    parser.add_argument(
        "--stories", type=Path, nargs="*", default=[], help="files of stories, <|endoftext|> after each"
    )
    parser.add_argument("--most", type=int, default=400, help="stories of each file")
    parser.add_argument("--teacher", action="store_true", help="measure stories15M on the stories, too")
    parser.add_argument("--missed", metavar="KIND", help="show the cases of this kind that are wrong, and nothing else")
    given = parser.parse_args()
    lm = cutaway.load(given.model)
    if given.missed:
        print("\n".join(missed(lm, given.missed, given.cases)))
        return
    report = measure(lm, given.cases)
    for path in given.stories:
        texts = stories_in(path)[: given.most]
        report[f"bits per byte, {path.name} ({len(texts)})"] = bits_per_byte(lm, texts)
        if given.teacher:
            report[f"the teacher, {path.name}"] = teacher_bits(texts)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
