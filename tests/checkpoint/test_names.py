"""The table of names holds every tensor, and a model is built of the right ones or not at all."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from cutaway.checkpoint import names
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

TINY = Config(vocabulary=99, context=20, width=24, layers=3, heads=4)


@pytest.fixture
def stored() -> dict[str, Tensor]:
    torch.manual_seed(1)
    return dict(names.stored_tensors(GPT(TINY)))


def refused(stored: dict[str, Tensor], *words: str, **changes: object) -> None:
    with pytest.raises(CutawayError) as caught:
        names.build(TINY.but(**changes), stored, "some.file")
    for word in ("some.file", *words):
        assert word in str(caught.value), str(caught.value)


def test_the_table_names_every_parameter_once() -> None:
    for config in (TINY, TINY.but(tied=False)):
        entries = list(names.specs(config))
        shapes = {entry.name: entry.ours for entry in entries}
        assert shapes == {name: tuple(parameter.shape) for name, parameter in GPT(config).named_parameters()}
        assert len({entry.stored for entry in entries}) == len(entries)


def test_the_tensors_of_a_model_build_the_same_model(stored: dict[str, Tensor]) -> None:
    again = dict(names.stored_tensors(names.build(TINY, stored, "some.file")))
    assert again.keys() == stored.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in stored.items())


def test_a_model_has_its_own_copy_of_the_tensors(stored: dict[str, Tensor]) -> None:
    model = names.build(TINY, stored, "some.file")
    stored["transformer.ln_f.weight"].fill_(5)
    assert not (model.final_norm.weight == 5).any()


def test_a_missing_tensor_is_named(stored: dict[str, Tensor]) -> None:
    del stored["transformer.h.1.mlp.c_proj.bias"]
    refused(stored, "lacks h.1.mlp.c_proj.bias [24]")


def test_a_missing_output_matrix_is_named(stored: dict[str, Tensor]) -> None:
    refused(stored, "lacks lm_head.weight [99, 24]", "tie_word_embeddings to true", tied=False)


def test_an_unknown_tensor_is_named(stored: dict[str, Tensor]) -> None:
    stored["score.weight"] = torch.zeros(2, 24)
    refused(stored, "score.weight")
    stored["\x1b[2J"] = torch.zeros(2)
    refused(stored, "score.weight", r"'\x1b[2J'")


def test_a_tensor_of_another_shape_is_named_with_both_shapes(stored: dict[str, Tensor]) -> None:
    stored["transformer.h.2.attn.c_attn.weight"] = stored["transformer.h.2.attn.c_attn.weight"].T
    refused(stored, "transformer.h.2.attn.c_attn.weight", "[72, 24]", "[24, 72]")


def test_a_tensor_under_both_its_names_is_refused(stored: dict[str, Tensor]) -> None:
    stored["wte.weight"] = torch.zeros(99, 24)
    refused(stored, "both wte.weight and transformer.wte.weight")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_numbers_are_refused(stored: dict[str, Tensor], bad: float, dtype: torch.dtype) -> None:
    weight = torch.zeros(24, 72, dtype=dtype)
    weight[3, 5] = bad
    stored["transformer.h.0.attn.c_attn.weight"] = weight
    refused(stored, "transformer.h.0.attn.c_attn.weight", "1 of the 1,728 values", "NaN")


def test_weights_too_large_for_the_type_asked_for_are_refused(stored: dict[str, Tensor]) -> None:
    stored["transformer.ln_f.bias"] = torch.full((24,), 1e6)
    with pytest.raises(CutawayError, match=r"transformer\.ln_f\.bias holds values too large for float16"):
        names.build(TINY, stored, "some.file", dtype=torch.float16)
    assert names.build(TINY, stored, "some.file", dtype=torch.bfloat16).final_norm.bias.isfinite().all()


def test_a_type_without_fractions_is_refused(stored: dict[str, Tensor]) -> None:
    with pytest.raises(CutawayError, match=r"torch\.int8"):
        names.build(TINY, stored, "some.file", dtype=torch.int8)


def test_quantised_weights_are_refused(stored: dict[str, Tensor]) -> None:
    stored["transformer.h.0.mlp.c_fc.weight"] = torch.zeros(24, 96, dtype=torch.int8)
    refused(stored, "transformer.h.0.mlp.c_fc.weight", "int8")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_an_output_matrix_that_contradicts_the_config_is_refused(stored: dict[str, Tensor], dtype: torch.dtype) -> None:
    stored["lm_head.weight"] = torch.zeros(99, 24, dtype=dtype)
    refused(stored, "lm_head.weight", "tie_word_embeddings to false")


def test_a_model_is_built_without_the_compiler_that_torch_loads_to_draw_first_weights() -> None:
    """On the meta device it does, to draw nothing, and that takes seconds."""
    code = """
import sys
from cutaway.checkpoint import names
from cutaway.models.gpt2.shape import Config
from cutaway.models.gpt2.model import GPT
config = Config(vocabulary=9, context=2, width=2, layers=1, heads=1)
names.build(config, dict(names.stored_tensors(GPT(config))), "some.file")
sys.exit("sympy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
