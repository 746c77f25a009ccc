"""benchmarks/serving.py: what it makes of what it measured, without servers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def serving():
    spec = importlib.util.spec_from_file_location("serving", ROOT / "benchmarks" / "serving.py")
    sys.modules["serving"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["serving"]


def test_a_table_a_picture_and_their_place_in_the_docs(serving):
    def rounds(seconds: float) -> list:
        return [serving.Measured(100, seconds * one, [0.1, 0.2], [0.01, 0.03], 0.5) for one in (1, 2, 3)]

    found = {
        count: {name: serving.summary(rounds(count * slow)) for name, slow in (("cutaway", 1), ("llama.cpp", 1.5))}
        for count in (1, 64)
    }
    assert found[64]["cutaway"] == {
        "tokens_per_second": 0.8, "work_per_token": 5.0,
        "first_p50": 200.0, "first_p99": 200.0, "between_p50": 30.0, "between_p99": 30.0,
    }  # fmt: skip
    table = serving.table(found)
    assert "| 1 | llama.cpp | 33 | 1.50 x | 5.00 | 200 / 200 | 30 / 30 |" in table
    drawn = ElementTree.fromstring(serving.picture(found, "a test"))
    assert len([one for one in drawn.iter() if one.tag.endswith("rect")]) == 3 * 4 + 2
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    written = serving.in_place(page, table)
    assert table in written and serving.in_place(written, table) == written and "an older measurement" not in written
    with pytest.raises(ValueError, match="no place"):
        serving.in_place("nothing", table)
