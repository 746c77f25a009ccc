from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.inspect.parameters import IN_THE_PAPER, Parameters, in_the_paper, parameters
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import SIZES, Config

EXACT = {"gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200}


def real(config: Config) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return {name: tuple(parameter.shape) for name, parameter in GPT(config).named_parameters()}


def counted(found: Parameters) -> dict[str, tuple[int, ...]]:
    """Our shapes as torch has them: a Linear holds its matrix outputs x inputs, a checkpoint inputs x outputs."""
    return {
        matrix.name: matrix.shape[::-1]
        if "embedding" not in matrix.name and "output" not in matrix.name
        else matrix.shape
        for matrix in found.matrices
    }


@pytest.mark.parametrize("name", SIZES)
def test_the_four_sizes_have_exactly_their_known_counts(name):
    assert parameters(SIZES[name]).total == EXACT[name]


@settings(deadline=None, max_examples=40)
@given(
    heads=st.integers(1, 4), head_width=st.integers(1, 8), layers=st.integers(1, 4), vocabulary=st.integers(1, 90),
    context=st.integers(1, 40), mlp_width=st.integers(0, 30), tied=st.booleans(),
)  # fmt: skip
def test_every_matrix_of_the_real_model_is_named_with_its_shape(
    heads, head_width, layers, vocabulary, context, mlp_width, tied
):
    config = Config(
        vocabulary=vocabulary, context=context, width=heads * head_width, layers=layers, heads=heads,
        mlp_width=mlp_width, tied=tied,
    )  # fmt: skip
    found = parameters(config)
    assert counted(found) == real(config)
    assert found.total == sum(parameter.numel() for parameter in GPT(config).parameters())
    assert sum(found.parts().values()) == found.total
    assert found.total == found.per_block * layers + sum(matrix.count for matrix in (*found.before, *found.after))


@pytest.mark.parametrize("tied", [True, False])
def test_stored_names_and_shapes_are_those_of_a_checkpoint(tied):
    transformers = pytest.importorskip("transformers")
    shape = transformers.GPT2Config(
        vocab_size=11, n_positions=5, n_embd=6, n_layer=2, n_head=3, tie_word_embeddings=tied
    )
    theirs = {
        name.removeprefix("transformer."): tuple(parameter.shape)
        for name, parameter in transformers.GPT2LMHeadModel(shape).named_parameters()
    }
    found = parameters(Config(vocabulary=11, context=5, width=6, layers=2, heads=3, tied=tied))
    assert {matrix.stored: matrix.shape for matrix in found.matrices} == theirs


@pytest.mark.parametrize("name", SIZES)
def test_the_papers_numbers_are_counts_with_the_vocabulary_of_gpt1(name):
    paper = in_the_paper(SIZES[name])
    assert paper is not None and paper.millions == IN_THE_PAPER[name]
    assert round(paper.with_gpt1_vocabulary / 1e6) == paper.millions
    assert round(EXACT[name] / 1e6) != paper.millions


def test_a_shape_of_ones_own_is_not_in_the_paper():
    assert in_the_paper(SIZES["gpt2"].but(layers=11)) is None
    assert parameters(SIZES["gpt2"].but(layers=11)).to_json()["paper"] is None


def test_json_has_every_matrix():
    found = parameters(SIZES["gpt2"]).to_json()
    assert len(found["matrices"]) == 2 + 12 * 12 + 2
    assert sum(matrix["count"] for matrix in found["matrices"]) == found["total"] == 124_439_808
