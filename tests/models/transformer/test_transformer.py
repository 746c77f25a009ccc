"""The Transformer: torch's numbers, the names of its map, and the same whether cached, padded or neither."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import architecture, count_parameters, places, tensors
from cutaway.models.transformer.model import Transformer, sinusoids
from cutaway.models.transformer.shape import Shape
from cutaway.parts.pairs import take_apart
from cutaway.parts.trace import Trace
from cutaway.runtime.torch_batch import torch_runtime
from cutaway.text.no_tokenizer import NoTokenizer

SMALL = Shape(vocabulary=60, context=24, width=32, layers=2, decoder_layers=3, heads=4, mlp_width=48)
START, END = SMALL.start, SMALL.end
SHAPES = [
    SMALL,
    replace(SMALL, norm="pre", final_norm=True, activation="gelu"),
    replace(SMALL, positions="halves", output_bias=True, scaled=False, activation="silu"),
]
IDS = ["post", "pre", "marian"]
SOURCES, TARGETS = [[1, 2, 3, 4, 5], [7], [8, 9, 10]], [[11, 12, 13], [14], [15, 16]]
TEXTS = [[*source, START, *target] for source, target in zip(SOURCES, TARGETS, strict=True)]


def built(shape: Shape) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def alone(model: Transformer, text: list[int]) -> torch.Tensor:
    return model(torch.tensor([text]))[0]


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_the_table_lists_its_parameters_and_the_map_what_a_trace_keeps(shape):
    model, trace = built(shape), Trace()
    assert {one.name: one.ours for one in tensors(shape)} == {n: tuple(p.shape) for n, p in model.named_parameters()}
    logits = model(torch.tensor(TEXTS[:1]), trace=trace)
    assert list(trace) == list(places(shape))
    torch.testing.assert_close(logits, model(torch.tensor(TEXTS[:1])), atol=1e-5, rtol=0)  # fused = step by step
    seen = {"ids", "positions"}
    for place in places(shape).values():
        assert set(place.inputs) <= seen, place.name
        assert not place.module or model.get_submodule(place.module)
        seen.add(place.name)
        assert len(place.axes) == trace[place.name].ndim - 1, place.name
    crossed, masked = trace["decoder.blocks.1.cross.weights"][0], trace["decoder.blocks.1.attention.weights"][0]
    assert crossed.shape == (4, 4, 5)  # head, a token of the target (its start among them), a token of the source
    torch.testing.assert_close(crossed.sum(-1), torch.ones(4, 4))
    assert (masked.triu(1) == 0).all()
    assert (trace["encoder.blocks.0.attention.weights"] > 0).all()  # the encoder looks ahead, too


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_rows_of_unequal_texts_give_what_each_gives_alone_and_zeros_at_the_source(shape):
    model, longest = built(shape), max(map(len, TEXTS))
    together = model(torch.tensor([[*text, *[0] * (longest - len(text))] for text in TEXTS]))
    for row, (text, source) in enumerate(zip(TEXTS, SOURCES, strict=True)):
        torch.testing.assert_close(together[row, : len(text)], alone(model, text), atol=1e-5, rtol=0)
        assert (together[row, : len(source)] == 0).all()
        assert together[row, len(source)].std() > 0.1


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_read_on_from_what_the_encoder_said_is_the_same_as_read_whole(shape):
    """Rows join, fork and leave while others are being written."""
    model = built(shape)
    batch = torch_runtime(model).open()
    first = batch.add([[*SOURCES[0], START, *TARGETS[0][:1]], [*SOURCES[1], START]])  # targets of unequal length
    expected = [alone(model, [*SOURCES[0], START, TARGETS[0][0]]), alone(model, [*SOURCES[1], START])]
    torch.testing.assert_close(torch.from_numpy(first), torch.stack([one[-1] for one in expected]), atol=1e-5, rtol=0)
    batch.step([TARGETS[0][1], TARGETS[1][0]])
    batch.add([TEXTS[2]])
    batch.keep([2, 0, 0])
    scores = batch.step([17, TARGETS[0][2], 18])
    for row, text in enumerate(([*TEXTS[2], 17], TEXTS[0], [*TEXTS[0][:-1], 18])):
        torch.testing.assert_close(torch.from_numpy(scores[row]), alone(model, text)[-1], atol=1e-5, rtol=0)


def with_weights_of(shape: Shape, theirs: nn.Transformer) -> Transformer:
    """Our model on the weights of torch's: it keeps the three matrices of an attention in one."""
    model = built(shape)
    given = dict(theirs.state_dict())
    state = {name: value for name, value in model.state_dict().items() if name == "token_embedding.weight"}
    for name in (name for name in model.state_dict() if name not in state):
        stack, _, rest = name.partition(".")
        if rest.startswith("final_norm"):
            state[name] = given[f"{stack}.norm.{rest.rpartition('.')[2]}"]
            continue
        _, layer, part, module, *leaf = rest.split(".")
        there, kind = f"{stack}.layers.{layer}", name.rpartition(".")[2]
        if part == "norms":
            number = {"attention": 1, "cross": 2, "mlp": 3 if stack == "decoder" else 2}[module]
            state[name] = given[f"{there}.norm{number}.{kind}"]
        elif part == "mlp":
            state[name] = given[f"{there}.{'linear1' if module == 'widen' else 'linear2'}.{kind}"]
        else:
            attention = f"{there}.{'self_attn' if part == 'attention' else 'multihead_attn'}"
            if module == "projection":
                state[name] = given[f"{attention}.out_proj.{kind}"]
            else:
                third = given[f"{attention}.in_proj_{kind}"].chunk(3)
                state[name] = third[("queries", "keys", "values").index(module)]
        assert leaf == [kind] or part == "norms", name
    model.load_state_dict(state)
    return model


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["interleaved", "halves"])
def test_the_numbers_are_those_of_torch_nn_transformer(norm, positions):
    shape = replace(SMALL, norm=norm, final_norm=True, positions=positions)
    torch.manual_seed(1)
    theirs = nn.Transformer(
        32, 4, 2, 3, 48, dropout=0.0, activation="relu", batch_first=True, norm_first=norm == "pre"
    ).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    ours = with_weights_of(shape, theirs)
    source, target = torch.tensor(SOURCES[:1]), torch.tensor([[START, *TARGETS[0]]])

    def entry(ids: torch.Tensor) -> torch.Tensor:
        return ours.token_embedding(ids) * math.sqrt(32) + sinusoids(torch.arange(ids.shape[1]), 32, positions)

    mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
    hidden = theirs(entry(source), entry(target), tgt_mask=mask, tgt_is_causal=True)
    expected = hidden @ ours.token_embedding.weight.T
    found = ours(torch.tensor(TEXTS[:1]))[:, len(SOURCES[0]) :]
    assert expected.std() > 0.5
    assert (found - expected).abs().max() < 1e-4


def test_the_sinusoids_are_the_papers_in_both_layouts():
    width, position = 12, 7
    for layout in ("interleaved", "halves"):
        found = sinusoids(torch.tensor([position]), width, layout)[0]
        for k in range(width // 2):
            angle = position / 10_000 ** (2 * k / width)
            sine, cosine = (2 * k, 2 * k + 1) if layout == "interleaved" else (k, width // 2 + k)
            assert found[sine].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert found[cosine].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_the_papers_base_model_is_counted_and_has_no_norm_behind_its_stacks():
    assert count_parameters(Shape()) == 37_000 * 512 + 6 * 3_152_384 + 6 * 4_204_032  # tokens, encoder, decoder
    assert not [one.name for one in tensors(Shape()) if "final_norm" in one.name]


def test_what_is_too_long_or_empty_or_has_no_start_is_refused_in_words():
    model = built(SMALL)
    with pytest.raises(CutawayError, match=r"The source is 25 tokens long, and this model has 24 positions"):
        alone(model, [*[1] * 25, START, 2])
    with pytest.raises(CutawayError, match="The target is 26 tokens"):
        alone(model, [1, START, *[2] * 25])
    with pytest.raises(CutawayError, match="The source is empty"):
        alone(model, [START, 2])
    with pytest.raises(CutawayError, match=f"start token \\({START}\\)"):
        take_apart(torch.tensor([[1, 2, 3]]), START)
    with pytest.raises(CutawayError, match=f"no start token \\({START}\\)"):
        torch_runtime(model).open().add([[1, 2]])
    with pytest.raises(CutawayError, match="The source is empty"):
        torch_runtime(model).open().add([[START]])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"width": 30}, "divided between 4 heads"),
        ({"norm": "middle"}, "post, pre"),
        ({"positions": "learned"}, "interleaved, halves"),
        ({"activation": "tanh"}, "relu"),
        ({"start_token": 59}, "cannot begin a target and end it"),
        ({"end_token": 60}, "not in a vocabulary of 60"),
        ({"layers": -1}, "whole number of 1"),
        ({"dropout": 1.0}, "between 0 and 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes, says):
    with pytest.raises(CutawayError, match=says):
        replace(SMALL, **changes)


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_a_folder_gives_the_same_model_and_writing_ends_where_the_targets_positions_end(shape, tmp_path):
    import cutaway

    lm = LanguageModel(built(shape), NoTokenizer(shape.vocabulary, "translator"), "translator")
    lm.save(tmp_path)
    again = cutaway.load(tmp_path)
    assert again.config == shape
    ids = torch.tensor(TEXTS[:1])
    assert torch.equal(again.model(ids), lm.model(ids))
    for search in ({"top_k": 1}, {"beams": 2}):
        written = again.generate([[*SOURCES[0], START]], logit_bias={END: float("-inf")}, **search)[0]
        assert (len(written.ids), written.reason) == (shape.context - 1, "length")  # the source takes no room from it
    with pytest.raises(CutawayError, match="cannot slide over two texts"):
        again.generate([1, START], overflow="slide")
    assert architecture("marian") is architecture("transformer")
