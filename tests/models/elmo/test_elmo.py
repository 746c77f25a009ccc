"""ELMo: the equations, word by word and character by character; the same alone and in a padded batch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import cutaway
from cutaway.errors import CutawayError
from cutaway.inspect.runs import run
from cutaway.inspect.walk import walk
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import count_parameters, places, tensors
from cutaway.models.elmo.model import Elmo
from cutaway.models.elmo.shape import Shape
from cutaway.models.steps import model_map
from cutaway.parts.trace import Trace
from cutaway.text.spelled_words import PADDING, SpelledWords

WORDS = SpelledWords.learn(["Let's stick to it, improvisation!", "a stick in the wood"], 40)
SHAPES = [
    Shape(words=len(WORDS.listed), width=6, cell_width=9, filters=((1, 3), (3, 5)), highways=2, layers=2, longest=12),
    Shape(words=len(WORDS.listed), width=4, cell_width=7, filters=((2, 4),), highways=0, layers=1),
    Shape(words=len(WORDS.listed), width=4, cell_width=5, filters=((5, 4),), highways=1, layers=3),
]
EVERY = pytest.mark.parametrize("shape", SHAPES, ids=lambda one: f"{one.layers}-layers-{one.highways}-highways")
TEXTS = ["Let's stick to it", "a", "a stick in the improvisation; wood"]


def built(shape: Shape) -> Elmo:
    torch.manual_seed(0)
    model = Elmo(shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def ids(text: str) -> list[int]:
    return WORDS.frame(WORDS.encode(text))


def spelled(text: str, longest: int) -> list[list[int]]:
    """Each word as its characters."""
    row = ids(text)
    return [row[a:b][:longest] for a, b in WORDS.spans(row)]


def literal_word(model: Elmo, characters: list[int]) -> Tensor:
    """From characters to a word's vector: windows one after the other, the largest value of each filter."""
    vectors, found = [model.character_embedding.weight[one] for one in characters], []
    nothing = torch.zeros(model.config.character_width)
    for convolution in model.filters:
        seen = convolution.weight.shape[2]
        values = []
        for at in range(len(vectors)):
            window = [vectors[at + i] if at + i < len(vectors) else nothing for i in range(seen)]
            values.append(sum(convolution.weight[:, :, i] @ one for i, one in enumerate(window)) + convolution.bias)
        found.append(torch.stack(values).max(0).values)
    x = torch.cat(found).clamp(min=0)
    for highway in model.highways:
        gate = torch.sigmoid(highway.gate.weight @ x + highway.gate.bias)
        x = gate * x + (1 - gate) * (highway.change.weight @ x + highway.change.bias).clamp(min=0)
    return model.projection.weight @ x + model.projection.bias


def literal_layer(cell: nn.LSTM, words: list[Tensor]) -> list[Tensor]:
    """One LSTM with a projection, one word after the other."""
    h, c, states = torch.zeros(cell.proj_size), torch.zeros(cell.hidden_size), []
    for word in words:
        gates = cell.weight_ih_l0 @ word + cell.bias_ih_l0 + cell.weight_hh_l0 @ h + cell.bias_hh_l0
        i, f, g, o = gates.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = cell.weight_hr_l0 @ (torch.sigmoid(o) * torch.tanh(c))
        states.append(h)
    return states


def literal(model: Elmo, text: str) -> tuple[Tensor, Tensor, Tensor]:
    """The mix, and the scores of both directions."""
    words = [literal_word(model, one) for one in spelled(text, model.config.longest)]
    layers = [torch.stack([torch.cat([word, word]) for word in words])]
    before, after = words, words
    for number, block in enumerate(model.blocks):
        ahead = literal_layer(block.forwards.cell, before)
        back = literal_layer(block.backwards.cell, after[::-1])[::-1]
        before = [x + h if number else h for x, h in zip(before, ahead, strict=True)]
        after = [x + h if number else h for x, h in zip(after, back, strict=True)]
        layers.append(torch.stack([torch.cat(pair) for pair in zip(before, after, strict=True)]))
    shares = model.mix.weights.exp() / model.mix.weights.exp().sum()
    mixed = model.mix.scale * sum(share * layer for share, layer in zip(shares, layers, strict=True))
    scores = [torch.stack(one) @ model.output.weight.T + model.output.bias for one in (before, after)]
    return mixed, scores[0], scores[1]


@EVERY
@torch.no_grad()
def test_the_numbers_are_those_of_the_equations_and_the_map_names_them_all(shape):
    model, trace = built(shape), Trace()
    assert {one.name: one.ours for one in tensors(shape)} == {n: tuple(p.shape) for n, p in model.named_parameters()}
    found = model(torch.tensor([ids(TEXTS[2])]), trace=trace)[0]
    mixed, forwards, backwards = literal(model, TEXTS[2])
    assert mixed.std() > 0.05
    assert (found - mixed).abs().max() < 1e-4
    assert (trace["forwards.logits"][0] - forwards).abs().max() < 1e-4
    assert (trace["backwards.logits"][0] - backwards).abs().max() < 1e-4
    assert list(trace) == list(places(shape))
    for place in places(shape).values():
        assert len(place.axes) == trace[place.name].ndim - 1, place.name
        assert not place.module or model.get_submodule(place.module)
    assert (model.read(torch.tensor([ids(TEXTS[2])]))[0] - mixed).abs().max() < 1e-4  # nobody watches


@EVERY
@torch.no_grad()
def test_a_padded_batch_gives_what_each_text_gives_alone(shape):
    model, longest = built(shape), max(len(ids(text)) for text in TEXTS)
    rows = torch.tensor([[*ids(text), *[PADDING] * (longest - len(ids(text)))] for text in TEXTS])
    together, heard = model.read(rows), model.heard(rows)
    for row, text in enumerate(TEXTS):
        alone = model.read(torch.tensor([ids(text)]))[0]
        assert int(heard[row].sum()) == len(alone)
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-6, rtol=0)


@torch.no_grad()
def test_each_direction_knows_only_what_it_has_read():
    model = built(SHAPES[0])
    traces = [Trace(), Trace()]
    for trace, last in zip(traces, ("wood", "stick"), strict=True):
        model(torch.tensor([ids(f"a stick in the {last}")]), trace=trace)
    for name, same in (("forwards", slice(0, 5)), ("backwards", slice(6, 7))):
        one, two = (trace[f"blocks.1.{name}.output"][0] for trace in traces)
        assert torch.equal(one[same], two[same])
        assert not torch.equal(one[5], two[5])
    assert not torch.equal(traces[0]["mixed"][0, 2], traces[1]["mixed"][0, 2])  # the mix knows both sides


@torch.no_grad()
def test_a_word_is_its_characters_whatever_stands_around_it_or_is_in_the_list():
    model = built(SHAPES[0])
    trace, other = Trace(), Trace()
    model(torch.tensor([ids("a zyx stick")]), trace=trace)
    model(torch.tensor([ids("stick qwv\n  zyx")]), trace=other)
    torch.testing.assert_close(trace["word"][0, 2], other["word"][0, 3])
    assert (trace["word"][0, 2] - other["word"][0, 2]).abs().max() > 0.01  # two words that no list has differ
    assert (trace["word"][0, 1] - trace["word"][0, 3]).abs().max() > 0.01


@torch.no_grad()
def test_a_word_is_read_up_to_the_longest():
    model = built(SHAPES[0])
    same = [model.read(torch.tensor([ids("improvisation" + end)])) for end in ("s", "al")]
    assert torch.equal(*same)


def test_a_folder_goes_there_and_back(tmp_path):
    lm = LanguageModel(built(SHAPES[0]), WORDS)  # type: ignore[arg-type]
    lm.save(tmp_path / "elmo")
    again = cutaway.load(tmp_path / "elmo")
    assert again.config == lm.config
    assert again.tokenizer.listed == WORDS.listed
    assert torch.equal(again.trace(TEXTS[0])["mixed"], lm.trace(TEXTS[0])["mixed"])
    assert count_parameters(lm.config) == sum(one.numel() for one in lm.model.parameters())


def test_what_a_text_is_asked_for_and_what_is_refused():
    lm = LanguageModel(built(SHAPES[0]), WORDS)  # type: ignore[arg-type]
    found = run(lm, lm.ids(TEXTS[0]))
    assert [one.text for one in found.tokens] == ["<S>", "Let's", "stick", "to", "it", "</S>"]
    assert len(found) == len(found["mixed"]) == 6
    mean = found["mixed"].mean(0)
    torch.testing.assert_close(lm.embed([TEXTS[0], "a"])[0], mean, atol=1e-6, rtol=0)
    for asked, says in (
        (lambda: lm.generate("a"), "no next token"),
        (lambda: lm.fill("a [MASK]"), r"no \[MASK\]"),
        (lambda: lm.logits("a"), "no scores over the vocabulary"),
        (lambda: lm.embed([]), "list is empty"),
    ):
        with pytest.raises(CutawayError, match=says):
            asked()


def test_the_walk_takes_every_step_of_the_map():
    lm = LanguageModel(built(SHAPES[0]), WORDS)  # type: ignore[arg-type]
    found = run(lm, lm.ids(TEXTS[0]))
    for step in model_map(lm.config).steps:
        shown = walk(found, step.name, position=2)
        assert step.name in ("token", "choice") or shown.parts, step.name
    parts = {part.role: part.values for part in walk(found, "word", position=2).parts}
    assert any((values[-1] == found["word"][2].numpy()).all() for values in parts.values() if values.shape[1] == 6)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"filters": ()}, "pairs of whole numbers"),
        ({"filters": ((1, 0),)}, "pairs of whole numbers"),
        ({"cell_width": 6}, "wider cell"),
        ({"layers": 0}, "whole number"),
        ({"words": 2}, "whole number"),
        ({"dropout": 1.0}, "between 0 and 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes, says):
    with pytest.raises(CutawayError, match=says):
        Shape(**{"width": 6, "cell_width": 9, **changes})
