"""What the table says of how llama.cpp was built."""

from types import SimpleNamespace

import pytest

from cutaway.bench import llama

PORTABLE = "CPU : AVX = 1 | AVX2 = 1 | FMA = 1"
SKYLAKE = PORTABLE + " | AVX512 = 1"
ZEN4 = SKYLAKE + " | AVX512_VNNI = 1 | AVX512_BF16 = 1"


@pytest.mark.parametrize(
    ("kernels", "made_for", "too_little"),
    [
        (b"avx2", PORTABLE, None),
        (b"avx512bw", SKYLAKE, PORTABLE),
        (b"avx512", ZEN4, SKYLAKE),
        (b"avx512bf16", ZEN4, SKYLAKE),
    ],
)
def test_a_build_is_portable_if_it_lacks_the_best_that_the_processor_can_do(monkeypatch, kernels, made_for, too_little):
    monkeypatch.setattr(llama, "need", lambda: SimpleNamespace(cutaway_kernels=lambda name: kernels))
    assert "llama.cpp 1, built for this processor: " in llama.described("llama.cpp 1", made_for)
    if too_little:
        assert "llama.cpp 1, a portable build: " in llama.described("llama.cpp 1", too_little)
