"""The container file and the systemd unit name what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cutaway.serve.configuration import PREFIX, declared

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"


def test_every_variable_and_extra_in_them_is_known():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    container = (DEPLOY / "Containerfile").read_text()
    [named] = re.findall(r"'\.\[(.*?)\]'", container)
    assert set(named.split(",")) <= set(extras)
    for text in (container, (DEPLOY / "cutaway.service").read_text()):
        found = re.findall(rf"{PREFIX}(\w+)=", text)
        assert found and {one.lower() for one in found} <= set(declared())
    for copied in re.findall(r"^COPY (?!--)(.*) \S+$", container, re.MULTILINE):
        assert all((ROOT / one).exists() for one in copied.split()), copied


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze on this machine (apt install systemd)")
    unit = (DEPLOY / "cutaway.service").read_text().replace("/opt/cutaway/bin/cutaway", sys.executable)
    (tmp_path / "cutaway.service").write_text(unit)
    ran = subprocess.run(["systemd-analyze", "verify", tmp_path / "cutaway.service"], capture_output=True, text=True)
    about = [line for line in ran.stderr.splitlines() if "cutaway" in line]
    assert ran.returncode == 0 and not about, ran.stderr
