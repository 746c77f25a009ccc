"""Several texts at once give what each gives alone: logits, scores, vectors, traces."""

import math

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.models.architecture import places
from cutaway.runtime.torch_texts import batches

TEXTS = ["Once upon", "", "A robot must obey the orders", "x", "the other side of the hill, where such orders"]


def test_logits_of_a_list_are_those_of_each_alone_without_padding(tiny_lm):
    together = tiny_lm.logits(TEXTS)
    assert [one.shape for one in together] == [(max(1, len(tiny_lm.ids(text))), 320) for text in TEXTS]
    for text, one in zip(TEXTS, together, strict=True):
        assert torch.allclose(one, tiny_lm.logits(text), atol=1e-5)


def test_a_list_of_one_is_a_list_and_ids_are_one_text(tiny_lm):
    [one] = tiny_lm.logits(["Once upon"])
    assert torch.equal(one, tiny_lm.logits("Once upon"))
    assert torch.equal(tiny_lm.logits(tiny_lm.ids("Once upon")), one)
    assert tiny_lm.logits([]) == []
    assert [len(found) for found in tiny_lm.logits([[1, 2], [3]])] == [2, 1]


def test_more_texts_than_fit_a_batch_come_back_in_order(tiny_lm, monkeypatch):
    monkeypatch.setattr("cutaway.runtime.torch_texts.TOKENS_AT_ONCE", 40)
    texts = [list(range(1, 2 + number % 17)) for number in range(41)]
    assert len(list(batches(tiny_lm.model, texts))) > 5
    for ids, one in zip(texts, tiny_lm.logits(texts), strict=True):
        assert torch.allclose(one, tiny_lm.logits(ids), atol=1e-5)


def test_what_comes_back_can_be_learned_from(tiny_lm):
    for asked in (torch.inference_mode, torch.enable_grad):
        with asked():
            found = [tiny_lm.logits("Once"), tiny_lm.embed(["Once"]), *tiny_lm.traces(["Once"])[0].kept.values()]
        assert not any(one.is_inference() or one.requires_grad for one in found)


def test_a_score_is_the_log_probability_of_every_token_after_the_end_token(tiny_lm):
    text = "A robot must obey"
    ids = tiny_lm.ids(text)
    logprobs = tiny_lm.logits([tiny_lm.config.end, *ids]).log_softmax(-1)[:-1]
    found = tiny_lm.score(text, k=3)
    assert [token.id for token in found.tokens] == ids
    assert "".join(token.text for token in found.tokens) == text
    assert found.logprobs == pytest.approx([float(row[token]) for row, token in zip(logprobs, ids, strict=True)])
    assert found.logprob == pytest.approx(sum(found.logprobs))
    assert found.perplexity == pytest.approx(math.exp(-sum(found.logprobs) / len(ids)))
    for place, token in enumerate(found.tokens):
        best = logprobs[place].exp().topk(3)
        assert [other.id for other in token.alternatives] == best.indices.tolist()
        assert [other.probability for other in token.alternatives] == pytest.approx(best.values.tolist())
        assert token.rank == 1 + int((logprobs[place] > logprobs[place][token.id]).sum())


def test_scores_of_a_list_are_those_of_each_alone(tiny_lm):
    for text, found in zip(TEXTS, tiny_lm.score(TEXTS, k=0), strict=True):
        assert found.logprobs == pytest.approx(tiny_lm.score(text).logprobs, abs=1e-5)
        assert all(token.alternatives == () for token in found.tokens)
    assert tiny_lm.score("").tokens == () and tiny_lm.score("").perplexity == 1


def test_a_text_that_fills_the_context_is_scored_and_a_longer_one_refused(tiny_lm):
    assert len(tiny_lm.score([5] * 48).tokens) == 48
    with pytest.raises(CutawayError, match="49 tokens long and tiny has a context of 48"):
        tiny_lm.score([5] * 49)
    with pytest.raises(CutawayError, match="whole number of 0 or more, not -1"):
        tiny_lm.score("x", k=-1)


def test_a_text_is_embedded_as_the_mean_of_what_leaves_the_final_norm(tiny_lm):
    vectors = tiny_lm.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), tiny_lm.config.width)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert torch.allclose(vector, tiny_lm.trace(text, keep="final_norm")["final_norm"].mean(0), atol=1e-5)
        assert torch.allclose(vector, tiny_lm.embed(text), atol=1e-5)
    assert tiny_lm.embed([]).shape == (0, tiny_lm.config.width)


def test_traces_of_a_list_are_those_of_each_alone(tiny_lm):
    for text, trace in zip(TEXTS, tiny_lm.traces(TEXTS), strict=True):
        alone = tiny_lm.trace(text)
        assert list(trace) == list(alone) == list(places(tiny_lm.config))
        for name in alone:
            assert trace[name].shape == alone[name].shape, name
            assert torch.allclose(trace[name], alone[name], atol=2e-5), name


def test_traces_keep_what_is_asked_for_and_refuse_what_there_is_not(tiny_lm):
    first, second = tiny_lm.traces(["Once upon", "A robot"], keep="blocks.1.attention.weights")
    assert list(first) == list(second) == ["blocks.1.attention.weights"]
    with pytest.raises(CutawayError, match="Nothing in this model is called"):
        tiny_lm.traces(["Once"], keep="blocks.7.residual")
    assert tiny_lm.traces([]) == []


def test_equal_lengths_have_positions_each(tiny_lm):
    first, second = tiny_lm.traces([[1, 2, 3], [4, 5, 6]], keep="position_embedding")
    assert torch.equal(first["position_embedding"], second["position_embedding"])


def test_traces_end_where_nothing_more_is_wanted(tiny_lm):
    begun = []
    hooks = [
        block.register_forward_pre_hook(lambda block, given: begun.append(block)) for block in tiny_lm.model.blocks
    ]
    try:
        tiny_lm.traces(TEXTS, keep="blocks.0.residual")
    finally:
        for hook in hooks:
            hook.remove()
    assert begun == [tiny_lm.model.blocks[0]]
