"""The recurrent translator: the equations of the article, step by step; the same whether cached, padded or neither."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.models.architecture import places, tensors
from cutaway.models.seq2seq.model import Seq2Seq
from cutaway.models.seq2seq.shape import ATTENTIONS, CELLS, Shape
from cutaway.parts.trace import Trace
from cutaway.runtime.torch_batch import torch_runtime

START = 48
SHAPES = [
    Shape(vocabulary=50, width=12, layers=layers, cell=cell, attention=attention, bidirectional=both)
    for (cell, attention), (layers, both) in product(product(CELLS, ATTENTIONS), ((2, False), (1, True)))
]
EVERY = pytest.mark.parametrize(
    "shape", SHAPES, ids=lambda one: f"{one.cell}-{one.attention}{'-both' if one.bidirectional else ''}"
)
SOURCES, TARGETS = [[1, 2, 3, 4], [7], [8, 9]], [[11, 12, 13], [14], [15, 16]]
TEXTS = [[*source, START, *target] for source, target in zip(SOURCES, TARGETS, strict=True)]


def built(shape: Shape) -> Seq2Seq:
    torch.manual_seed(0)
    model = Seq2Seq(shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def alone(model: Seq2Seq, text: list[int]) -> Tensor:
    return model(torch.tensor([text]))[0]


def step(weights: dict[str, Tensor], name: str, x: Tensor, h: Tensor, c: Tensor | None, back: str = "") -> tuple:
    """One step of a GRU, or with a cell's state of an LSTM, written out."""
    of_word, of_state, word_bias, state_bias = (
        weights[f"{name}.cell.{one}_l0{back}"] for one in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    word, state = of_word @ x + word_bias, of_state @ h + state_bias
    if c is None:
        (r1, z1, n1), (r2, z2, n2) = word.chunk(3), state.chunk(3)
        reset, update = torch.sigmoid(r1 + r2), torch.sigmoid(z1 + z2)
        return (1 - update) * torch.tanh(n1 + reset * n2) + update * h, None
    i, f, g, o = (word + state).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def literal(model: Seq2Seq, source: list[int], target: list[int]) -> tuple[Tensor, list[Tensor]]:
    """The article, one word after the other: the scores after each word of the target, and what was looked at."""
    shape, weights = model.config, dict(model.named_parameters())
    embedding = weights["token_embedding.weight"]
    words, ends = [embedding[one] for one in source], []
    for layer in range(shape.layers):
        ways = [("", words), ("_reverse", words[::-1])] if shape.bidirectional else [("", words)]
        read = []
        for back, order in ways:
            h = torch.zeros(shape.width // len(ways))
            c = torch.zeros_like(h) if shape.cell == "lstm" else None
            states = []
            for word in order:
                h, c = step(weights, f"encoder.blocks.{layer}", word, h, c, back)
                states.append(h)
            read.append((states if not back else states[::-1], h, c))
        words = [torch.cat(pair) for pair in zip(*(states for states, _, _ in read), strict=True)]
        last_c = None if shape.cell == "gru" else torch.cat([c for _, _, c in read])
        ends.append((torch.cat([h for _, h, _ in read]), last_c))
    hidden_states, scores, looked = words, [], []
    for word in [START, *target]:
        x = embedding[word]
        for layer, (h, c) in enumerate(ends):
            ends[layer] = step(weights, f"decoder.blocks.{layer}", x, h, c)
            x = ends[layer][0]
        if shape.attention != "none":
            keys = [weights["attention.keys.weight"] @ one for one in hidden_states]
            if shape.attention == "additive":
                query = weights["attention.queries.weight"] @ x
                fits = [weights["attention.vector.weight"][0] @ torch.tanh(query + key) for key in keys]
            else:
                fits = [x @ key for key in keys]
            attention = torch.stack(fits).softmax(0)
            looked.append(attention)
            context = sum(weight * one for weight, one in zip(attention, hidden_states, strict=True))
            x = torch.cat([x, context])  # [h; c]
        output = torch.tanh(weights["feed_forward.weight"] @ x + weights["feed_forward.bias"])
        scores.append(embedding @ output + weights["output_bias"])
    return torch.stack(scores), looked


@EVERY
@torch.no_grad()
def test_the_numbers_are_those_of_the_equations_and_the_map_names_them_all(shape):
    model, trace = built(shape), Trace()
    assert {one.name: one.ours for one in tensors(shape)} == {n: tuple(p.shape) for n, p in model.named_parameters()}
    found = model(torch.tensor(TEXTS[:1]), trace=trace)[0, len(SOURCES[0]) :]
    expected, looked = literal(model, SOURCES[0], TARGETS[0])
    assert expected.std() > 0.1
    assert (found - expected).abs().max() < 1e-4
    assert list(trace) == list(places(shape))
    for place in places(shape).values():
        assert len(place.axes) == trace[place.name].ndim - 1, place.name
        assert not place.module or model.get_submodule(place.module)
    if looked:
        torch.testing.assert_close(trace["decoder.attention.weights"][0], torch.stack(looked), atol=1e-5, rtol=0)


@EVERY
def test_padded_is_alone_and_read_on_is_read_whole(shape):
    model, longest = built(shape), max(map(len, TEXTS))
    together = model(torch.tensor([[*text, *[0] * (longest - len(text))] for text in TEXTS]))
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(together[row, : len(text)], alone(model, text), atol=1e-5, rtol=0)
    batch = torch_runtime(model).open()
    batch.add([TEXTS[0][:-1], TEXTS[1][:-1]])
    batch.step([TARGETS[0][2], TARGETS[1][0]])
    batch.add([TEXTS[2]])
    batch.keep([2, 0, 0])
    scores = batch.step([17, 18, 19])
    for row, text in enumerate(([*TEXTS[2], 17], [*TEXTS[0], 18], [*TEXTS[0], 19])):
        torch.testing.assert_close(torch.from_numpy(scores[row]), alone(model, text)[-1], atol=1e-5, rtol=0)


def test_without_attention_only_the_last_hidden_state_goes_over():
    model = built(replace(SHAPES[0], attention="none"))
    state = model.begin([SOURCES[0]])
    before = model.decode(torch.tensor([[START]]), state)
    state = model.begin([SOURCES[0]])
    state.memory.zero_()
    assert torch.equal(model.decode(torch.tensor([[START]]), state), before)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cell": "rnn"}, "gru, lstm"),
        ({"attention": "dot"}, "additive, multiplicative"),
        ({"width": 11, "bidirectional": True}, "two directions"),
        ({"start_token": 50}, "not in a vocabulary"),
        ({"layers": 0}, "whole number"),
        ({"dropout": -1.0}, "between 0 and 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes, says):
    with pytest.raises(CutawayError, match=says):
        replace(SHAPES[0], **changes)
