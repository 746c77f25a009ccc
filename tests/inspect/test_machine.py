"""What the picture of the whole machine is drawn from is what the run holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect import machine
from cutaway.inspect.runs import run
from cutaway.models.architecture import places

TEXT = "the little fox was on the other side of the hill"


def test_a_folded_vector_has_its_length_and_the_largest_number_of_each_cell(tiny_lm):
    seen = run(tiny_lm, TEXT)
    names = [place.name for place in places(tiny_lm.config).values() if place.axes[-1] == "column"]
    found = machine.folded(seen, names, first=2, count=3, cells=8).reshape(len(names), 3, 9)
    for name, rows in zip(names, found, strict=True):
        whole = seen[name].float()
        whole = whole.movedim(0, 1).flatten(1) if whole.ndim == 3 else whole
        for row, vector in zip(rows, whole[2:5], strict=True):
            assert row[0] == pytest.approx(float(vector.norm()), rel=1e-5)
            edges = [cell * len(vector) // 8 for cell in range(9)]
            for cell in range(8):
                part = vector[edges[cell] : edges[cell + 1]]
                assert row[1 + cell] == pytest.approx(float(part[part.abs().argmax()]))


def test_looks_are_the_strongest_of_the_mean_over_heads(tiny_lm):
    seen = run(tiny_lm, TEXT)
    names = ["blocks.0.attention.weights", "blocks.1.attention.weights"]
    found = machine.looks(seen, names, k=3).reshape(2, len(seen), 6)
    for name, rows in zip(names, found, strict=True):
        mean = seen[name].mean(0)
        for token, row in enumerate(rows):
            there = min(3, token + 1)  # nothing comes after: the mask
            strongest = mean[token].sort(descending=True)
            assert row[3:] == pytest.approx(strongest.values[:there].tolist() + [0] * (3 - there))
            assert row[:there].tolist() == strongest.indices[:there].tolist()
            assert (row[there:3] == -1).all()


def test_an_answer_that_no_page_could_draw_is_refused(tiny_lm, monkeypatch):
    seen = run(tiny_lm, TEXT)
    monkeypatch.setattr(machine, "MOST", 40)
    with pytest.raises(CutawayError, match="Name fewer"):
        machine.folded(seen, ["residual.0"], cells=24)
    with pytest.raises(CutawayError, match="Name fewer"):
        machine.looks(seen, ["blocks.0.attention.weights"])
    with pytest.raises(CutawayError, match="Name fewer"):
        machine.rows(seen, ["blocks.0.attention.weights", "blocks.1.attention.weights"])


def test_rows_are_one_token_in_every_head(tiny_lm):
    seen = run(tiny_lm, TEXT)
    names = ["blocks.0.attention.scores", "blocks.0.attention.weights"]
    found = machine.rows(seen, names, position=4)
    wanted = torch.cat([seen[name][:, 4] for name in names])
    assert found == pytest.approx(wanted.numpy(), abs=1e-6)


def test_the_expected_token_is_the_prediction(tiny_lm):
    seen = run(tiny_lm, TEXT)
    words, shares = machine.expected(seen, 0, 128)
    assert len(words) == len(seen)
    assert words[-1].id == seen.likeliest(-1)
    assert shares[-1] == pytest.approx(float(seen.logits([-1])[0].softmax(-1).max()), rel=1e-5)


def test_a_model_without_heads_or_blocks_is_folded_too(encoder_lm):
    seen = run(encoder_lm, "A robot must obey")
    known = places(encoder_lm.config).values()
    tables = [place.name for place in known if place.axes[-1] == "key" and place.operation == "softmax"]
    assert machine.looks(seen, tables, k=len(seen))[:, len(seen) :].sum(1) == pytest.approx(
        np.ones(len(seen) * len(tables)), abs=1e-5
    )
    vectors = [place.name for place in known if place.axes[-1] == "column"]
    assert machine.folded(seen, vectors, cells=4).shape == (len(seen) * len(vectors), 5)


def test_what_is_no_table_and_what_is_no_vector_is_said(tiny_lm):
    seen = run(tiny_lm, TEXT)
    with pytest.raises(CutawayError, match="no table"):
        machine.looks(seen, ["residual.0"])
    with pytest.raises(CutawayError, match="no vector"):
        machine.folded(seen, ["blocks.0.attention.scores"])
    with pytest.raises(CutawayError, match="window"):
        machine.folded(seen, ["residual.0"], first=-1)


@pytest.mark.parametrize("kind", ["transformer", "seq2seq"])
def test_of_two_texts_each_place_has_the_tokens_of_its_own(kind):
    from cutaway.inspect.pairs import pair_run
    from tests.inspect.test_pairs import make

    lm = make("pre" if kind == "transformer" else "attention")
    seen = pair_run(lm, lm.pair("The fox", "Le renard"))
    source, target = (len(seen[f"{stack}.token_embedding"]) for stack in ("encoder", "decoder"))
    assert source != target
    for name, tokens in (("encoder.token_embedding", source), ("decoder.token_embedding", target)):
        lengths = machine.folded(seen, [name], cells=4)[:, 0]
        assert lengths == pytest.approx(seen[name].norm(dim=1).numpy(), rel=1e-5) and len(lengths) == tokens
    cross = next(
        name
        for name in places(lm.config)
        if name.endswith((".cross.weights", "attention.weights"))
        and name.startswith("decoder.")
        and seen[name].shape[-1] == source
    )
    table = seen[cross] if seen[cross].ndim == 3 else seen[cross][None]
    assert machine.rows(seen, [cross], 1, 0, source) == pytest.approx(table[:, 1].numpy(), abs=1e-6)
    assert len(machine.looks(seen, [cross], k=2)) == target
    with pytest.raises(CutawayError, match="one text at a time"):
        machine.folded(seen, ["encoder.token_embedding", "decoder.token_embedding"])
    if kind == "seq2seq":
        with pytest.raises(CutawayError, match="one vector for the whole text"):
            machine.folded(seen, ["encoder.blocks.0.last"])
