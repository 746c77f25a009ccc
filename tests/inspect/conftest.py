"""A text in the tiny model, with some tokens twice, and the run over it."""

from __future__ import annotations

import pytest

from cutaway.inspect.run import Run, run

TEXT = "Once upon a time there was a little fox who wanted to see a little hill"


@pytest.fixture(scope="session")
def seen(tiny_lm) -> Run:
    return run(tiny_lm, TEXT)
