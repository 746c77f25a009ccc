"""benchmarks/few_labels.py in small: all four ways from the same start, and what is done is kept."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "few_labels.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("few_labels", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["few_labels"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["few_labels"]


def test_all_ways_are_tuned_and_measured_once_and_the_command_goes_on(script, tiny_lm, tmp_path, capsys, monkeypatch):
    rows = "".join(f"the little fox sat {n}\t1\nthe robot must obey {n}\t0\n" for n in range(20))
    for name in ("train", "test"):
        (tmp_path / f"{name}.tsv").write_text(rows)
    tiny_lm.save(tmp_path / "tiny")
    out = tmp_path / "out"
    asked = [
        "--sst2", str(tmp_path), "-o", str(out), "--start", str(tmp_path / "tiny"), "--labels", "8", "--steps", "4",
        "--batch", "4", "--measured", "8", "--seeds",
    ]  # fmt: skip
    script.main([*asked, "0"])
    said = capsys.readouterr().out.splitlines()
    assert [re.split("  +", line.strip())[1] for line in said] == list(script.WAYS)
    assert len(list((out / "runs").iterdir())) == 4
    assert all(0 <= float(re.search(r"\((.*)\)", line)[1]) <= 1 for line in said)
    trained = []
    real = script.train.run
    monkeypatch.setattr(
        script.train, "run", lambda *given, **more: trained.append(more["seed"]) or real(*given, **more)
    )
    script.main([*asked, "0", "1"])
    assert trained == [1] * 4 and "±" in capsys.readouterr().out  # the first seed was only read
    with pytest.raises(SystemExit, match="holds another comparison: steps was 4"):
        script.main([*asked, "0", "--steps", "5"])
    with pytest.raises(SystemExit, match="50 negative sentences are asked for, and there are 20"):
        script.main([*asked, "0", "--labels", "100"])
