"""In models written by hand, whose circuit is known and whose other heads do something else, sweeps find exactly it."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch

from cutaway.inspect.circuit import paths
from cutaway.inspect.metric import LogitDifference
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.no_tokenizer import NoTokenizer

CONTEXT, HEADS, SHARP = 8, 4, 30.0
END, ASK, MORE, LESS = 20, 21, 22, 23
"""Beside the numbers or names from 0 to 19: the beginning, the question, and two answers."""
VOCABULARY = 24


class ByHand:
    """A model without any weights, to write them into: a one-hot token, a one-hot place, and columns by name."""

    def __init__(self, layers: int, **columns: int):
        self.at: dict[str, slice] = {}
        for name, count in {"token": VOCABULARY, "place": CONTEXT, **columns, "idle": 8}.items():
            first = max((one.stop for one in self.at.values()), default=0)
            self.at[name] = slice(first, first + count)
        width = -(-self.at["idle"].stop // (HEADS * 8)) * HEADS * 8
        while width // HEADS < VOCABULARY:
            width += HEADS
        shape = Config(
            vocabulary=VOCABULARY, context=CONTEXT, width=width, layers=layers, heads=HEADS, mlp_width=4, tied=False
        )
        self.model, self.short = GPT(shape).eval(), width // HEADS
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.fill_(1.0 if "norm.weight" in name else 0.0)
            self.model.token_embedding.weight[:, self.at["token"]] = torch.eye(VOCABULARY)
            self.model.position_embedding.weight[:, self.at["place"]] = torch.eye(CONTEXT)
            for block in self.model.blocks:  # every head attends somewhere, and adds it to columns that nobody reads
                drawn = block.attention.queries_keys_values.weight
                drawn.copy_(0.1 * torch.empty(drawn.shape).normal_(generator=generator))
                drawn = block.attention.projection.weight[self.at["idle"]]
                drawn.copy_(0.02 * torch.empty(drawn.shape).normal_(generator=generator))

    def head(self, layer: int, head: int, query: int, key: slice, found: slice, to: slice) -> None:
        """At the token `query` attend to where the column(s) `key` are 1, and add what stands in `found` to `to`."""
        attention, own = self.model.blocks[layer].attention, slice(head * self.short, (head + 1) * self.short)
        with torch.no_grad():
            queries, keys, values = (one[own] for one in attention.queries_keys_values.weight.chunk(3))
            for one in (queries, keys, values):
                one.zero_()
            attention.projection.weight[:, own] = 0
            queries[0, self.at["token"].start + query] = SHARP
            keys[0, key] = 1.0
            count = found.stop - found.start
            values[:count, found] = torch.eye(count)
            attention.projection.weight[to, own.start : own.start + count] = torch.eye(count)

    def lm(self, name: str) -> LanguageModel:
        return LanguageModel(self.model, NoTokenizer(VOCABULARY, name), name)


@pytest.fixture(scope="module")
def copying() -> LanguageModel:
    """Asked, head 1.2 looks at the names (tokens 0 to 9), and says the one that is there."""
    hand = ByHand(2, said=VOCABULARY)
    names = slice(hand.at["token"].start, hand.at["token"].start + 10)
    hand.head(1, 2, ASK, names, hand.at["token"], hand.at["said"])
    with torch.no_grad():
        hand.model.output.weight[:, hand.at["said"]] = torch.eye(VOCABULARY)
    return hand.lm("copying")


@pytest.fixture(scope="module")
def comparing() -> LanguageModel:
    """Asked, head 0.1 fetches the number at place 1 and head 0.3 that at place 2; of the MLP of block 1, neuron 0 says
    by how much the first is larger, neuron 2 by how much the second is.
    """
    hand = ByHand(2, size=1, first=1, second=1, more=1, less=1)
    at = {name: one.start for name, one in hand.at.items()}
    for head, place, to in ((1, 1, "first"), (3, 2, "second")):
        key = slice(at["place"] + place, at["place"] + place + 1)
        hand.head(0, head, ASK, key, hand.at["size"], hand.at[to])
    mlp = hand.model.blocks[1].mlp
    with torch.no_grad():
        hand.model.token_embedding.weight[:20, at["size"]] = torch.arange(20) / 20
        for neuron, sign, answer in ((0, 1.0, "more"), (2, -1.0, "less")):
            mlp.widen.weight[neuron, at["first"]], mlp.widen.weight[neuron, at["second"]] = 4 * sign, -4 * sign
            mlp.projection.weight[at[answer], neuron] = 1.0
        hand.model.output.weight[MORE, at["more"]] = hand.model.output.weight[LESS, at["less"]] = 1.0
    return hand.lm("comparing")


def found(sweep, least: float = 0.5) -> set[tuple[int, int]]:
    """The cells that bring back more than this share; and nobody else brings back a tenth of it."""
    strong = {tuple(one) for one in (sweep.recovered > least).nonzero().tolist()}
    others = torch.ones_like(sweep.recovered, dtype=torch.bool)
    for one in strong:
        others[one] = False
    assert not others.any() or sweep.recovered[others].abs().max() < 0.1, sweep.recovered
    if sweep.what == "head":
        assert (sweep.values != sweep.base).sum() > len(strong)  # the others do something all the same
    return strong


def test_the_copy_head_is_found_wherever_the_name_stands(copying):
    for place in (1, 3, 4):
        clean = [END, 11, 12, 13, 14, ASK]
        corrupted = list(clean)
        clean[place], corrupted[place] = 4, 8
        assert int(copying.logits(clean)[-1].argmax()) == 4 and int(copying.logits(corrupted)[-1].argmax()) == 8
        metric = LogitDifference(4, 8)
        assert found(copying.sweep(clean, corrupted, "head", metric=metric)) == {(1, 2)}
        assert found(copying.sweep(clean, corrupted, "attention", metric=metric)) == {(1, 5)}
        assert found(copying.sweep(clean, corrupted, "residual", metric=metric)) == {(0, place), (1, place)}
        assert paths(copying, clean, corrupted, ["output"], metric=metric).strongest(1)[0][0] == "head 1.2"
        told = paths(copying, clean, corrupted, ["head 1.2 values"], metric=metric)
        assert told.strongest(1)[0][0] == "embedding" and told.strongest(1)[0][1] > 0.9
        without = copying.sweep(clean, what="head", how="zero", metric=metric)
        assert without.strongest(1) == [(1, 2)] and abs(float(without.values[1, 2])) < 0.1 * without.clean


def test_that_it_attends_to_names_is_found_in_its_pattern(copying):
    """The same name at another place: what the head finds is the same, where it attends is not."""
    clean, corrupted = [END, 4, 12, 13, ASK], [END, 11, 12, 4, ASK]
    metric = LogitDifference(4, 12)
    # With the pattern of the other text, head 1.2 finds no name there: the answer is lost.
    lost = copying.sweep(clean, corrupted, "attention pattern", metric=LogitDifference(4, 11), how="patch")
    assert lost.strongest(1) == [(1, 2)] and float(lost.values[1, 2]) < 0.1 * lost.clean
    kept = copying.sweep(clean, corrupted, "head", metric=metric, how="resample")
    assert abs(float(kept.effect[1, 2])) < 0.1 * kept.clean


def test_the_comparer_compares(comparing):
    pairs = list(permutations(range(0, 20, 3), 2))
    logits = comparing.model(torch.tensor([[END, one, other, ASK] for one, other in pairs]))[:, -1]
    assert all(
        (bool(row[MORE] > row[LESS]), one) == (one > other, one)
        for row, (one, other) in zip(logits, pairs, strict=True)
    )


@pytest.mark.parametrize(
    ("clean", "corrupted", "head", "place"),
    [((15, 9), (3, 9), (0, 1), 1), ((9, 15), (9, 3), (0, 3), 2), ((2, 9), (12, 9), (0, 1), 1)],
)
def test_of_a_comparison_the_head_that_fetches_the_changed_number_is_found(comparing, clean, corrupted, head, place):
    clean, corrupted = [END, *clean, ASK], [END, *corrupted, ASK]
    metric = LogitDifference(MORE, LESS)
    assert found(comparing.sweep(clean, corrupted, "head", metric=metric)) == {head}
    assert found(comparing.sweep(clean, corrupted, "residual", metric=metric)) == {(0, place), (1, 3)}
    assert found(comparing.sweep(clean, corrupted, "mlp", metric=metric)) == {(1, 3)}
    neurons = comparing.sweep(clean, corrupted, "neuron", metric=metric)
    assert set(neurons.strongest(2)) == {(1, 0), (1, 2)}
    assert (neurons.recovered[1, [0, 2]] > 0.25).all()
    assert (neurons.values[0] == neurons.corrupted).all() and (neurons.values[1, [1, 3]] == neurons.corrupted).all()
    told = paths(comparing, clean, corrupted, ["mlp 1"], metric=metric)
    assert told.strongest(1)[0][0] == f"head {head[0]}.{head[1]}"


def test_with_both_numbers_exchanged_both_heads_are_found_and_no_other(comparing):
    pairs = [([END, one, other, ASK], [END, other, one, ASK]) for one, other in ((15, 9), (9, 4), (17, 2), (12, 6))]
    swept = comparing.sweeps(pairs, "head", metric=LogitDifference(MORE, LESS))
    assert set(swept.strongest(2)) == {(0, 1), (0, 3)} and set(swept.certain()) >= {(0, 1), (0, 3)}
    others = torch.ones_like(swept.recovered, dtype=torch.bool)
    others[0, [1, 3]] = False
    assert swept.recovered[others].abs().max() < 0.1 < swept.recovered[0, [1, 3]].min()
