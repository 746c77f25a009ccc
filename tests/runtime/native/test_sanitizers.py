"""No access out of bounds and no race: the kernels under the compiler's sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import cutaway

NATIVE = Path(cutaway.__file__).parent / "runtime" / "native" / "kernels"
SOURCES = sorted(map(str, NATIVE.glob("*.cpp")))


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_the_kernels_are_clean(sanitizer, tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ here")
    program = tmp_path / "stress"
    flags = ["-std=c++20", "-O1", "-g", "-ffp-contract=off", "-Wno-psabi", "-pthread", f"-fsanitize={sanitizer}"]
    flags += ["-fno-sanitize-recover=all"]
    build = subprocess.run(
        ["g++", *flags, str(Path(__file__).with_name("stress.cpp")), *SOURCES, "-o", str(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert build.returncode == 0, build.stderr[-2000:]
    ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=1200, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr[-4000:]
