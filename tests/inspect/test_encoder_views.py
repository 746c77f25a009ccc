"""What is shown of an encoder: gaps, both ways beside one way, sentences; each against a literal computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.both_ways import both_ways
from cutaway.inspect.gaps import gaps
from cutaway.inspect.runs import run
from cutaway.inspect.sentences import sentences
from cutaway.inspect.view import find

TEXT = "The robots obeyed on Zürich!! the cat"


def test_a_hidden_token_is_guessed_as_fill_does_and_its_own_rank_is_told(bert_lm):
    found = gaps(run(bert_lm, "the robot must obey"), [3, 2], k=4)
    filled = bert_lm.fill("the [MASK] [MASK] obey", k=len(bert_lm.tokenizer))
    assert [one.position for one in found.gaps] == [one.position for one in filled] == [2, 3]
    for gap, wanted in zip(found.gaps, filled, strict=True):
        listed = wanted.predictions
        assert [one.token.id for one in gap.guesses] == [one.id for one in listed[:4]]
        assert [one.probability for one in gap.guesses] == pytest.approx([one.probability for one in listed[:4]])
        own = next(at for at, one in enumerate(listed, 1) if one.id == gap.token.id)
        assert gap.rank == own and gap.probability == pytest.approx(listed[own - 1].probability)


def test_a_written_gap_has_no_word_of_its_own_and_what_frames_the_text_cannot_be_hidden(bert_lm):
    seen = run(bert_lm, "the [MASK] sat")
    [gap] = gaps(seen).gaps
    assert (gap.position, gap.token, gap.rank) == (2, None, None)
    assert gaps(run(bert_lm, "the fox")).gaps == ()
    with pytest.raises(CutawayError, match=r"Token 0 is \[CLS\]"):
        gaps(seen, [0])
    with pytest.raises(CutawayError, match="There is no token 9"):
        gaps(seen, [9])


def test_pieces_end_where_both_cut_and_every_row_adds_up(bert_lm, tiny_lm):
    left, right = run(bert_lm, TEXT), run(tiny_lm, TEXT)
    found = both_ways(left, right, 1, 2)
    pieces = [piece for piece in found.pieces if piece.left and piece.right]
    assert [at for piece in found.pieces for at in piece.left] == list(range(len(left)))
    assert [at for piece in found.pieces for at in piece.right] == list(range(len(right)))
    assert found.pieces[0].left == (0,) and not found.pieces[0].right, "[CLS] is the encoder's own"
    assert "".join(piece.text for piece in pieces) == TEXT.replace(" ", "")
    assert found.cut == sum(len(piece.left) != len(piece.right) for piece in pieces) > 0
    weights = left["blocks.1.attention.weights"][2]
    for row, piece in enumerate(found.pieces):
        for column, other in enumerate(found.pieces):
            wanted = np.mean([sum(float(weights[i, j]) for j in other.left) for i in piece.left] or [0])
            assert found.left[row][column] == pytest.approx(wanted, abs=1e-6)
        assert found.left[row].sum() == pytest.approx(1, abs=1e-5)
        assert found.right[row].sum() == pytest.approx(float(bool(piece.right)), abs=1e-5)
    assert found.ahead[1] == 0 and found.ahead[0] == pytest.approx(
        sum(float(weights[i, j]) for i in range(len(left)) for j in range(i + 1, len(left))) / len(left)
    )


def test_sentences_are_compared_by_what_embed_gives(bert_lm):
    texts = ["the fox sat", "a little cat", "robots must obey"]
    found = sentences(run(bert_lm, texts[0]), texts[1:])
    vectors = bert_lm.embed(texts)
    wanted = torch.nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    assert np.allclose(found.cosines, wanted.numpy(), atol=1e-5) and found.width == bert_lm.config.width
    assert found.tokens == tuple(len(bert_lm.ids(text)) for text in texts)


def test_a_gpt2_is_refused(tiny_lm):
    for name in ("gaps", "sentences"):
        with pytest.raises(CutawayError, match="does not fit"):
            find(name).check(tiny_lm)
