"""Facts: each value is the one that the model's own numbers give, found here in another way."""

from __future__ import annotations

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.inspect.facts import FACTS, facts, first_of, place_of
from cutaway.inspect.gallery import stuck
from cutaway.inspect.pairs import pair_run
from cutaway.inspect.parameters import parameters
from cutaway.inspect.runs import Run, run
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

TEXT = "Tom had a red ball. He liked to play with it."


@pytest.fixture(scope="module")
def told(tiny_lm) -> Run:
    return run(tiny_lm, TEXT)


def ask(seen: Run, kind: str, **about) -> dict:
    return {name: value.value for name, value in facts(seen, {"one": {"of": kind, **about}})["one"].items()}


def test_a_word_stands_for_the_token_that_ends_it_where_it_occurs_last(told):
    pieces = [token.bytes for token in told.tokens]
    for word in ("ball", "it", "Tom", "play with"):
        before = b"".join(pieces[: place_of(told, word) + 1])
        assert TEXT.encode()[: len(before)] == before
        assert (
            TEXT.rindex(word) + len(word)
            <= len(before)
            < TEXT.rindex(word) + len(word) + len(pieces[place_of(told, word)])
        )
    assert place_of(told, "") == len(told) - 1
    with pytest.raises(CutawayError, match="does not occur"):
        place_of(told, "Lily")


def test_what_comes_next_is_the_prediction(told):
    best = told.lm.predict(list(told.ids), k=1)[0]
    found = ask(told, "next")
    assert found["token"][0].id == best.id and found["share"] == pytest.approx(best.probability, rel=1e-5)


def test_what_comes_next_is_compared_with_the_word_that_should(told):
    best = told.lm.predict(list(told.ids), k=1)[0].id
    known = next(w for w in ("the", "Tom", "ball", "dog", "and") if first_of(told, w) != best)
    assert ask(told, "next", word=known)["right"] == 0
    own = told.lm.tokenizer.decode([best]).strip()
    if first_of(told, own) == best:
        assert ask(told, "next", word=own)["right"] == 1


@pytest.mark.parametrize(
    ("ids", "around"),
    [
        ([1, 2, 3, 4, 5, 6], 0),
        ([5, 5, 5, 5, 5, 5], 1),
        ([9, 8, 1, 2, 1, 2, 1, 2], 2),
        ([1, 2, 3, 1, 2, 3, 1, 2, 3], 3),
        ([7, 1, 2, 3, 4, 4], 0),  # twice is no loop yet, in a text of six
        ([1, 2, 3, 1, 2, 4], 0),
        ([1, 2, 1, 2, 3, 4, 5, 6, 7], 0),  # left again
        ([], 0),
    ],
)
def test_a_loop_is_what_the_end_of_a_text_repeats(ids, around):
    assert (stuck(ids)[1] or 0) == around


def test_a_loop_is_looked_for_in_what_the_model_writes(told):
    found = ask(told, "loop", tokens=30)
    likeliest = told.lm.generate(list(told.ids), max_tokens=30, top_k=1).ids
    drawn = told.lm.generate(list(told.ids), max_tokens=30, temperature=1.0, top_k=40, seed=1).ids
    around = stuck(list(likeliest))[1]
    assert (found["period"], found["written"]) == (around or 0, len(likeliest))
    assert (found["found"], found["freed"]) == (around is not None, stuck(list(drawn))[1] is None)


def test_branches_are_what_the_model_writes_by_itself(told):
    found = ask(told, "branches", tokens=3)
    best = told.lm.generate(list(told.ids), max_tokens=3, top_k=1)
    assert found["more"][: len(best.ids)] == list(best.ids)
    assert found["tree"].startswith(f"{found['more'][0]}(") and found["tree"].count(",") == 1
    second = told.lm.predict(list(told.ids), k=2)[1]
    assert found["other"][0].id == second.id and found["tree"].split(",")[1].split("(")[0] == str(second.id)


def test_a_word_and_its_pieces(told):
    found = ask(told, "cut", word="liked")
    assert b"".join(piece.bytes for piece in found["list"]).strip() == b"liked"
    assert (
        found["pieces"] == len(found["list"]) and found["tokens"] == len(told) and found["words"] == len(TEXT.split())
    )


def test_the_head_between_two_words_is_the_one_with_the_largest_weight(told):
    start, end = place_of(told, "it"), place_of(told, "ball")
    found = ask(told, "looking", start="it", end="ball")
    weights = {
        (layer, head): float(told[f"blocks.{layer}.attention.weights"][head, start, end])
        for layer in range(told.lm.config.layers)
        for head in range(told.lm.config.heads)
    }
    assert weights[found["layer"], found["head"]] == max(weights.values()) == pytest.approx(found["weight"])
    row = told[f"blocks.{found['layer']}.attention.weights"][found["head"], start]
    assert found["share"] == pytest.approx(float(row.max())) and found["most"][0] == told.tokens[int(row.argmax())]
    assert found["position"] == start


def test_the_nearest_rows_are_nearest(told):
    found = ask(told, "alike", at="ball")
    rows = told.lm.model.token_embedding.weight[: len(told.lm.tokenizer)]
    unit = rows / rows.norm(dim=-1, keepdim=True)
    own = found["token"][0].id
    near = (unit @ unit[own]).tolist()
    best = sorted((i for i in range(len(near)) if i != own), key=lambda i: -near[i])[:3]
    assert [token.id for token in found["list"]] == best


def test_the_head_that_is_missed_is_really_missed(told):
    """Of those that speak for the token most directly none lowers it more; the numbers are those of a real run."""
    from cutaway.inspect.change import AblateHead
    from cutaway.inspect.facts import speakers

    found = ask(told, "missed")
    token = found["token"][0].id
    without = {
        at: float(run(told.lm, list(told.ids), changes=[AblateHead(*at)]).logits([-1])[0].softmax(-1)[token])
        for at in speakers(told, token)
    }
    assert without[found["layer"], found["head"]] == min(without.values()) == pytest.approx(found["after"])
    assert found["before"] == pytest.approx(float(told.logits([-1])[0].softmax(-1).max()))


def test_layers_are_those_of_the_lens(told):
    from cutaway.inspect.lens import lens

    found, table = ask(told, "layers"), lens(told, k=1)
    best = table.top[..., 0]
    assert found["repeats"] == sum(int(a == b) for a, b in zip(best[0], told.ids, strict=True))
    assert found["first"] == sum(int(one == 1) for one in table.rank[-1][:-1]) and found["places"] == len(told) - 1
    assert found["settled"] == -1 or best[found["settled"] + 1, -1] == best[-1, -1]
    assert found["settled"] == -1 or best[found["settled"], -1] != best[-1, -1]


def test_sizes_and_sums(told):
    size = ask(told, "size")
    assert size["total"] == parameters(told.lm.config).total and size["small"] == 124_439_808
    sums = told["blocks.1.mlp.hidden"][-1]
    assert ask(told, "neurons", layer=1)["negative"] == pytest.approx(float((sums < 0).float().mean()))
    assert ask(told, "neurons", layer=99)["layer"] == told.lm.config.layers - 1
    added = ask(told, "added", layer=1)
    parts = told["blocks.1.mlp.output"][-1].norm() / told["blocks.1.residual.middle"][-1].norm()
    assert added["share"] == pytest.approx(float(parts)) and added["root"] == pytest.approx(told.lm.config.width**0.5)
    heat = ask(told, "temperatures", cold=0.3, hot=2.0)
    assert heat["cold"] > heat["own"] > heat["hot"]
    race = ask(told, "race", one="ball", other="it")
    assert race["rank"] < race["beaten"]


def test_every_kind_answers_for_a_model_of_one_layer_and_head_and_a_text_of_one_token(tiny_lm):
    torch.manual_seed(0)
    model = GPT(Config(vocabulary=320, context=8, width=8, layers=1, heads=1, tied=False)).eval()
    seen = run(LanguageModel(model, tiny_lm.tokenizer, "small"), [40])
    word = seen.text
    about = {
        "place": {"at": word},
        "cut": {"word": word},
        "looking": {"start": word, "end": word},
        "race": {"one": "a", "other": "b"},
        "sense": {"other": word, "word": word},
    }
    for kind in FACTS.keys() - {"carried", "aligned"}:  # of models of two texts
        facts(seen, {"one": {"of": kind, **about.get(kind, {})}})


def test_mistakes_are_said(told):
    with pytest.raises(CutawayError, match=r"no fact of the kind 'nxt'.*next"):
        facts(told, {"one": {"of": "nxt"}})
    with pytest.raises(CutawayError, match="is not about where"):
        facts(told, {"one": {"of": "next", "where": 3}})


def test_what_a_translator_looked_at_is_what_its_trace_says():
    lm = cutaway.load("rnn")
    source, target = "She bought a red car.", "Elle a acheté une voiture rouge."
    seen = pair_run(lm, lm.pair(source))
    ids = lm.pair(source, target)
    begins = ids.index(lm.config.start)
    weights = lm.trace(ids)["decoder.attention.weights"]  # [target token, source token]
    found = ask(seen, "aligned", one="voiture", other="rouge")
    for name, word in (("one", " voiture"), ("other", " rouge")):
        row = weights[[lm.tokenizer.decode([one]) for one in ids[begins:]].index(word) - 1]
        assert found[f"{name}_weight"] == pytest.approx(float(row.max()), rel=1e-4)
        assert found[f"{name}_at"][0].id == ids[int(row.argmax())]
    assert found["turned"] == 1
    state = lm.trace(ids)["encoder.blocks.0.hidden"]
    assert ask(seen, "carried") == {"tokens": begins, "width": state.shape[-1], "both": 1}
    with pytest.raises(CutawayError, match="'chat' is no token of the translation"):
        ask(seen, "aligned", one="chat", other="rouge")
    with pytest.raises(CutawayError, match="reads one text, not two"):
        ask(run(cutaway.load(), source), "carried")


def test_gaps_senses_and_stacks_are_the_views_own(told, bert_lm):
    assert ask(told, "gap") == {"there": 0}
    best = bert_lm.fill("the fox [MASK] .", 1)[0].predictions[0]
    found = ask(run(bert_lm, "the fox [MASK] ."), "gap")
    assert found["there"] == 1 and found["token"][0].id == best.id
    assert found["share"] == pytest.approx(best.probability, rel=1e-5)
    with pytest.raises(CutawayError, match=r"no \[MASK\] to fill"):
        ask(run(bert_lm, "the fox ."), "gap")
    assert ask(told, "stacked") == {"blocks": told.lm.config.layers, "attentions": 1}
    one, other = (run(told.lm, text) for text in ("a red ball", "the ball is red"))
    vectors = [
        [seen[name][place_of(seen, "ball")] for name in ("residual.0", f"blocks.{told.lm.config.layers - 1}.residual")]
        for seen in (one, other)
    ]
    if all(len(seen.lm.ids(" ball")) == 1 for seen in (one, other)):
        cosines = [float(torch.cosine_similarity(a, b, dim=0)) for a, b in zip(*vectors, strict=True)]
        assert list(ask(one, "sense", other="the ball is red", word="ball").values()) == pytest.approx(
            cosines, abs=1e-4
        )
