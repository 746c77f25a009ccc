"""Memory is kept while training, and given back after it."""

import resource
import sys

import pytest
import torch

from cutaway.train import memory


@pytest.mark.skipif(memory.glibc() is None, reason="not a system with glibc")
def test_what_is_dropped_is_used_again_without_asking_the_system():
    def faults(rounds=8):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(rounds):
            torch.ones(16 << 20).add_(1)  # 64 MB: more than glibc ever keeps by itself
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with memory.kept():
        faults()
        assert faults() < 100
    assert faults() > 100


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert memory.glibc() is None
    with memory.kept():
        pass
