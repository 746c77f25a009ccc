"""benchmarks/exhibits.py: the cases are none that were taught, and what counts as right is right."""

from __future__ import annotations

import importlib.util
import sys
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def benchmark_of():
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("measuring", ROOT / "benchmarks" / "exhibits.py")
    module = sys.modules["measuring"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path[:] = before
        for name in ("measuring", "exhibit_words", "exhibits", "exhibit_sentences"):
            sys.modules.pop(name, None)


def test_a_case_is_the_same_every_time_and_stands_in_no_text_that_was_taught(benchmark_of):
    import exhibits

    taught = "\n".join(islice(exhibits.documents(1), 3000))
    for make in (*benchmark_of.CONTINUED, benchmark_of.agreement, benchmark_of.pronoun):
        some = benchmark_of.cases(make, 60)
        assert some == benchmark_of.cases(make, 60) != benchmark_of.cases(make, 60, seed=1)
        assert [case for case in some if case.prompt + case.wanted in taught] == []


@pytest.mark.parametrize(
    ("prompt", "wanted", "text", "is_right"),
    [
        ("1, 2", ", 3, 4", ", 3, 4, 5", True),
        ("1, 2", ", 3, 4", ", 3, 40", False),
        ("Anna Ben Anna", " Ben", " Benny", False),
        ("{a (b", ")}", " c) d}.", True),
        ("{a (b", ")}", "} )", False),
        ("(so", ")", " it went on.", False),
        ("<i>a <b>c", "</b></i>", " d</b> e</i>", True),
        ("<i>a <b>c", "</b></i>", "</i></b>", False),
        ('He said, "Go', '"', ' on."', True),
    ],
)
def test_what_counts_as_right(benchmark_of, prompt, wanted, text, is_right):
    assert benchmark_of.right(benchmark_of.Case(prompt, wanted), text) is is_right


def test_attention_is_that_of_the_last_token_to_all_tokens_of_the_noun(benchmark_of, tiny_lm):
    case = benchmark_of.Case("A robot must obey it", "robot")
    ids = tiny_lm.ids(case.prompt)
    ends = [len(tiny_lm.tokenizer.decode(ids[: n + 1])) for n in range(len(ids))]
    noun = [n for n, end in enumerate(ends) if end > 2 and [0, *ends][n] < 7]
    found = benchmark_of.attention_to(tiny_lm, case)
    weights = tiny_lm.trace(case.prompt)["blocks.1.attention.weights"]
    assert found.shape == (3, 4)
    assert found[1, 2] == pytest.approx(float(weights[2, -1, noun].sum()), abs=1e-5)
