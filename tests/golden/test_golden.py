"""What was written down in portable.json still holds: ids for fixed seeds, parameter tables, the structure of answers.

After a change that was meant, `make golden` writes it down again; `record.py` compares every number on one machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

for extra in ("fastapi", "sklearn"):
    pytest.importorskip(extra, reason="the extras `serve` and `inspect` are not installed")

HERE = Path(__file__).parent
WRITTEN_DOWN = json.loads((HERE / "portable.json").read_text(encoding="utf8"))


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The same, recorded by the code as it is."""
    out = tmp_path_factory.mktemp("golden") / "now.json"
    subprocess.run([sys.executable, HERE / "record.py", "--portable", out], check=True)
    found: dict[str, object] = json.loads(out.read_text(encoding="utf8"))
    return found


def kinds() -> list[str]:
    return sorted({name.partition(": ")[0] for name in WRITTEN_DOWN})


@pytest.mark.parametrize("kind", kinds())
def test_what_was_written_down_still_holds(now, kind):
    expected, found = (
        {name: one for name, one in entries.items() if name.startswith(f"{kind}: ")} for entries in (WRITTEN_DOWN, now)
    )
    assert found == expected


def test_nothing_is_recorded_that_was_never_written_down(now):
    assert now.keys() == WRITTEN_DOWN.keys()


def test_every_address_of_the_explorer_is_asked(now):
    assert now["endpoint: never asked"] == []
