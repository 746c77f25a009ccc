"""`cutaway bench` and the options that choose an engine: what is refused, before anything is measured."""

import pytest

from cutaway.runtime.native import library


def test_an_unknown_size_is_refused_with_the_known_ones(cutaway):
    ran = cutaway("bench", "gpt2-smal")
    assert ran.code == 2
    assert "gpt2-xl" in ran.err


@pytest.mark.skipif(library.load() is None, reason="the native engine is not built here: no C++ compiler")
def test_unknown_weights_are_refused(cutaway):
    ran = cutaway("bench", "--weights", "int9", "--alone")
    assert ran.code == 2
    assert "int9" in ran.err and "int8" in ran.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--weights", "int9"), "no weights 'int9'"),
        (("--engine", "quick"), "no engine 'quick'"),
        (("--engine", "torch", "--weights", "int8"), "need the native engine"),
    ],
)
def test_an_engine_that_cannot_be_had_is_refused(cutaway, folder, options, says):
    ran = cutaway("generate", "Once", "--model", folder, "--max-tokens", "2", *options)
    assert ran.code == 2
    assert says in ran.err
