"""The measurements themselves, on models too small to say anything about speed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cutaway.bench.first_token import run_command
from cutaway.bench.run import Amount, NativeRunner, measure, picture, random_weights, read_bandwidth
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import places

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

TINY = Config(vocabulary=90, context=40, width=16, layers=3, heads=2)


class Peer:
    engine, weights, bits, build = "peer", "q8_0", 8.5, "peer 1.0, a portable build"

    def decode(self, tokens):
        return 100.0

    def prompt(self, tokens):
        return 200.0

    def batch16(self, steps):
        return None


def test_every_runner_has_a_row_with_medians_and_the_limit():
    report = measure("tiny", TINY, [NativeRunner(TINY, "int8"), Peer()], Amount(rounds=2, decode=3, prompt=10, batch=2))
    ours, peer = report.rows
    assert min(ours.decode, ours.prompt, ours.batch16) > 0
    assert (peer.decode, peer.prompt, peer.batch16) == (100.0, 200.0, None)
    assert peer.limit < ours.limit
    document = report.to_json()
    assert document["read_gb_s"] > 0
    assert {"engine", "weights", "decode", "prompt", "batch16"} <= document["rows"][0].keys()
    assert picture(report).startswith("<svg") and "peer q8_0" in picture(report)


@pytest.mark.parametrize("kind", ["float32", "int4"])
def test_random_weights_are_a_whole_model_of_equal_layers(kind):
    packed = random_weights(TINY, kind)
    starts = {place.name: place.start for place in places(TINY, kind)}
    size = starts["blocks.1.attention_norm.weight"] - starts["blocks.0.attention_norm.weight"]
    layers = [packed.memory[starts[f"blocks.{i}.attention_norm.weight"] :][:size] for i in range(3)]
    assert (layers[0] == layers[1]).all() and (layers[0] == layers[2]).all()
    engine = Engine(packed)
    assert np.isfinite(engine.read([engine.text()], [[1, 2, 3]])).all()


def test_memory_reads_at_some_speed():
    assert read_bandwidth(1 << 20) > 0


def test_the_memory_of_a_command_is_its_own():
    held = bytearray(200_000_000)
    seconds, memory = run_command([sys.executable, "-c", "print(1)"])
    assert seconds > 0
    assert 1_000_000 < memory < len(held)
