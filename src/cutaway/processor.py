"""What this machine's processor has: asked here and nowhere else, so that tests can tell the code what it sees."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from cutaway.errors import CutawayError

KINDS = ("plain", "avx2", "avx512", "avx512bf16", "amx")
"""Processors by their best instructions, each with those before it; any other than x86-64 is plain."""


def pretended() -> str:
    """The kind of processor that CUTAWAY_PROCESSOR tells us to see, for tests; else nothing."""
    chosen = os.environ.get("CUTAWAY_PROCESSOR", "")
    if chosen and chosen not in KINDS:
        raise CutawayError(f"CUTAWAY_PROCESSOR must be one of {', '.join(KINDS)}, not {chosen!r}.")
    return chosen


def kind() -> str:
    """The kind of this processor, as torch sees it (which ATEN_CPU_CAPABILITY may narrow)."""
    if chosen := pretended():
        return chosen
    import torch

    torch_uses = torch.backends.cpu.get_cpu_capability()
    if torch_uses != "AVX512":
        return "avx2" if torch_uses == "AVX2" else "plain"
    has = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return "amx" if has.get("amx_bf16") else "avx512bf16" if has.get("avx512_bf16") else "avx512"


def multiplies_bfloat16() -> bool:
    """Whether there are instructions for products of bfloat16; without them torch converts every number first."""
    return KINDS.index(kind()) >= KINDS.index("avx512bf16")


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def name() -> str:
    """What the maker calls this processor; with family, model and stepping where Linux tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    numbers = [f"{key} {told[key]}" for key in ("cpu family", "model", "stepping") if key in told]
    return ", ".join([told.get("model name", platform.machine()), *numbers])
