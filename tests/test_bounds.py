"""What the package asks for can be had beside other packages: ranges, in which what is installed here lies."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
EXTRAS = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name != "dev"}
NEEDS = [Requirement(text) for text in (*PROJECT["dependencies"], *(one for needs in EXTRAS.values() for one in needs))]
HEAVY = {"ray"}
"""Not among what developers install: the one slow test that needs it says so."""


@pytest.mark.parametrize("needed", NEEDS, ids=lambda needed: needed.name)
def test_a_user_is_asked_for_a_range_that_has_no_end_and_holds_what_the_tests_run_with(needed):
    assert [one.operator for one in needed.specifier] == [">="]
    if needed.name not in HEAVY:
        assert needed.specifier.contains(version(needed.name), prereleases=True)


def test_the_makefile_pins_a_torch_within_the_range():
    [pinned] = re.findall(r"^TORCH := torch==(\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    [torch] = [needed for needed in NEEDS if needed.name == "torch"]
    assert torch.specifier.contains(pinned)
