"""What the processor has is asked in one place, and every answer leads to code that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import cutaway
from cutaway import processor
from cutaway.bench import peers
from cutaway.errors import CutawayError
from cutaway.runtime.native import library

pytestmark = pytest.mark.processor
ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("torch_uses", "has", "kind"),
    [
        ("DEFAULT", {}, "plain"),
        ("SVE256", {"bf16": True}, "plain"),
        ("AVX2", {"avx2": True}, "avx2"),
        ("AVX2", {"avx512_bf16": True, "amx_bf16": True}, "avx2"),  # as ATEN_CPU_CAPABILITY=avx2 has it
        ("AVX512", {"avx512_f": True}, "avx512"),
        ("AVX512", {"avx512_bf16": True, "amx_bf16": False}, "avx512bf16"),
        ("AVX512", {"avx512_bf16": True, "amx_bf16": True}, "amx"),
    ],
)
def test_the_kind_is_what_torch_says_of_the_processor(monkeypatch, torch_uses, has, kind):
    monkeypatch.delenv("CUTAWAY_PROCESSOR", raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: torch_uses)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
    assert processor.kind() == kind
    assert processor.multiplies_bfloat16() == (kind in ("avx512bf16", "amx"))


def test_an_unknown_kind_is_refused(monkeypatch):
    monkeypatch.setenv("CUTAWAY_PROCESSOR", "avx1024")
    with pytest.raises(CutawayError, match=r"CUTAWAY_PROCESSOR must be one of plain, avx2.*not 'avx1024'"):
        processor.kind()


def test_the_peers_in_the_bench_run_in_the_types_they_are_fast_in(sees):
    assert peers.transformers_types() == (("float32",) if sees in ("plain", "avx2") else ("float32", "bfloat16"))


@pytest.mark.skipif(library.load() is None, reason="the native engine is not built here: no C++ compiler")
def test_the_engine_runs_on_every_kind_with_the_kernels_it_can_have(sees):
    lm = cutaway.load(engine="native")
    best = library.need().cutaway_kernels(b"").decode()
    here = library.need().cutaway_kernels(sees.encode()) is not None
    assert lm.runtime.kernels == (sees if here else best)
    assert lm.generate("Once upon a", max_tokens=1, top_k=1).text == " time"


def test_nobody_else_asks_the_processor():
    asking = re.compile(r"get_cpu_capability|get_capabilities|cpuinfo|cpu_count|sched_getaffinity|_is_avx|_is_amx")
    for folder in ("src", "recipes"):
        for file in (ROOT / folder).rglob("*.py"):
            if file.name != "processor.py":
                assert not asking.search(file.read_text()), f"{file}: ask cutaway.processor"
