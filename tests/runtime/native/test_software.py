"""The AVX-512 kernels on any processor: the same source, its instructions computed in software by SIMDe."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cutaway

HERE = Path(__file__).parent
NATIVE = Path(cutaway.__file__).parent / "runtime" / "native" / "kernels"
FLAGS = ["-std=c++20", "-O1", "-ffp-contract=off", "-Wno-psabi", "-fPIC", "-pthread", "-mavx2", "-mfma"]
RUN = """
import sys
from pathlib import Path
import pytest
from cutaway.runtime.native import library
library.find_library = lambda: Path(sys.argv[1])
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-k", "avx512", *sys.argv[2:]]))
"""


def has_avx2() -> bool:
    try:
        return {"avx2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return False


def in_software(source: Path) -> str:
    """The file with SIMDe's functions for AVX-512's, and without asking compiler or processor for it."""
    text = re.sub(r'__builtin_cpu_supports\("avx512\w*"\)', "true", source.read_text())
    text = re.sub(r',avx512[\w,]*"', '"', text)
    text = text.replace('asm("" : "+v"(sum));', "")  # of a register that is not there
    text = text.replace("_mm512_", "simde_mm512_").replace("__m512", "simde__m512")
    return text.replace("<immintrin.h>", '"software_avx512.h"') if "avx512" in source.name else text


@pytest.mark.slow
def test_avx512_gives_what_the_plain_kernels_give(tmp_path):
    if shutil.which("g++") is None or not has_avx2():
        pytest.skip("this takes g++ and a processor with AVX2")
    if not Path("/usr/include/simde/x86/avx512.h").is_file():
        pytest.skip("SIMDe is not here (Debian: libsimde-dev)")
    for source in NATIVE.iterdir():
        (tmp_path / source.name).write_text(in_software(source))
    shutil.copy(HERE / "software_avx512.h", tmp_path)
    library = tmp_path / "software.so"
    sources = sorted(map(str, tmp_path.glob("*.cpp")))
    built = subprocess.run(
        ["g++", *FLAGS, "-shared", *sources, "-o", str(library)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr[:4000]
    disassembly = subprocess.run(["objdump", "-d", str(library)], capture_output=True, text=True, check=False).stdout
    assert "zmm" not in disassembly  # it really is software
    tests = [str(HERE / "test_kernels.py"), str(HERE / "test_engine.py")]
    environment = os.environ | {"PYTHONPATH": str(NATIVE.parents[3]), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(library), *tests], capture_output=True, text=True, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stdout[-4000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernels_avx2", "kernels_avx512bw", "kernels_avx512", "kernels_avx512bf16"])
def test_no_function_that_others_share_uses_the_special_instructions(name, tmp_path):
    """The linker keeps one copy of an inline function for all: it must run on every processor."""
    if shutil.which("g++") is None or shutil.which("objdump") is None or platform.machine() != "x86_64":
        pytest.skip("this takes g++ and objdump on x86-64")
    built = tmp_path / "kernels.o"
    flags = ["-std=c++20", "-O0", "-Wno-psabi", "-c"]  # nothing is inlined away
    subprocess.run(["g++", *flags, str(NATIVE / f"{name}.cpp"), "-o", str(built)], check=True)
    sections = subprocess.run(["objdump", "-d", str(built)], capture_output=True, text=True, check=True).stdout
    shared = [part for part in sections.split("Disassembly of section ") if part.startswith(".text._Z")]
    assert shared  # or this would say nothing
    assert not [part[:200] for part in shared if re.search(r"\tv[a-z]", part)]  # as AVX's are called
