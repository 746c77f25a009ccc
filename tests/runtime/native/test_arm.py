"""The kernels for ARM on any machine: compiled for it, and run by an emulator."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import cutaway

HERE = Path(__file__).parent
NATIVE = Path(cutaway.__file__).parent / "runtime" / "native" / "kernels"
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off", "-Wno-psabi", "-pthread", "-static"]
OLDER = "cortex-a72"
"""A processor of 2016, without the dot product of bytes."""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory) -> list[str]:
    if shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None:
        pytest.skip("this takes a cross compiler and an emulator (Debian: g++-aarch64-linux-gnu, qemu-user)")
    folder = tmp_path_factory.mktemp("arm")
    subprocess.run(
        [COMPILER, *FLAGS, "-c", *sorted(map(str, NATIVE.glob("*.cpp")))], cwd=folder, check=True, capture_output=True
    )
    return sorted(map(str, folder.glob("*.o")))


def program(source: str, kernels: list[str], folder: Path) -> str:
    built = folder / "program"
    subprocess.run([COMPILER, *FLAGS, str(HERE / source), *kernels, "-o", str(built)], check=True, capture_output=True)
    return str(built)


@pytest.mark.slow
def test_neon_gives_what_the_plain_kernels_give(kernels, tmp_path):
    compare = program("compare.cpp", kernels, tmp_path)
    ran = subprocess.run([EMULATOR, compare, "neon"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.startswith("neon: ")  # chosen by itself, too
    older = subprocess.run([EMULATOR, "-cpu", OLDER, compare, "neon"], capture_output=True, text=True, check=False)
    assert (older.returncode, older.stdout) == (2, "no neon here, but plain\n")


@pytest.mark.slow
def test_whole_models_run_there(kernels, tmp_path):
    stress = program("stress.cpp", kernels, tmp_path)
    ran = subprocess.run([EMULATOR, stress], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr[-2000:]
