"""`cutaway inspect`: every view is drawn, told as JSON and written as a page, and a mistake is one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cutaway.inspect.attention import attention, heads
from cutaway.inspect.lens import lens
from cutaway.inspect.metric import LogitDifference, Probability
from cutaway.inspect.page import titles
from cutaway.inspect.runs import run
from cutaway.inspect.saliency import saliency

ROOT = Path(__file__).parents[2]
TEXT = "Once upon a time there was a fox"
OTHER = "Once upon the time there was a box"
ARGUMENTS = {
    "attention": [TEXT, "--layer", 1, "--head", 2],
    "heads": [TEXT],
    "roles": ["--tokens", 6, "--texts", 2],
    "path": [TEXT, "--token", "id:7", "--against", "id:9"],
    "lens": [TEXT, "--watch", "id:7"],
    "saliency": [TEXT, "--write", 3],
    "neurons": [TEXT, "--layer", 1, "-k", 2],
    "groups": [TEXT, "-k", 2],
    "factors": [TEXT, "-k", 2],
    "change": [TEXT, "--ablate-head", "1.2"],
    "sweep": [TEXT, OTHER, "--what", "head", "--for", "id:7", "--against", "id:9"],
    "edges": [TEXT, OTHER, "--for", "id:7"],
    "paths": [TEXT, OTHER, "--for", "id:7", "--against", "id:9", "--to", "head 1.2", "--to", "output"],
    "direct": [TEXT],
    "contexts": ["--layer", 1, "--unit", 2],
    "senses": [TEXT, "--other", TEXT],
    "cache": [TEXT, "-n", 3],
    "beams": [TEXT, "-b", 2, "-n", 3],
    "parameters": ["blocks.0.mlp.widen.weight"],
}
SAYS = {
    "attention": "layer 1, head 2", "heads": "entropy", "roles": "12 queries", "path": "what adds to the logit",
    "lens": "the rank of", "saliency": "because of", "neurons": "speaks for", "groups": "neurons, such as",
    "factors": "unexplained: ",
    "change": "what moved most", "sweep": "brings most of the difference back",
    "edges": "the strongest edges", "paths": "head 1.2 queries, head 1.2 keys", "direct": "adds most to the next",
    "contexts": "Nothing has been recorded", "senses": "how alike its two vectors are",
    "cache": "multiplications instead of", "beams": "found",
    "parameters": "root mean square",
}  # fmt: skip


def needs(view: str) -> None:
    if view in ("groups", "factors"):
        pytest.importorskip("sklearn")


@pytest.mark.parametrize("view", ARGUMENTS)
def test_every_view_is_drawn_with_and_without_colour(cutaway, folder, monkeypatch, view):
    needs(view)
    ran = cutaway("inspect", view, *ARGUMENTS[view], "--model", folder)
    assert ran.code == 0, ran.err
    assert SAYS[view] in ran.out and "\x1b" not in ran.out
    monkeypatch.setattr("cutaway.cli.screen.colourful", lambda: True)
    assert cutaway("inspect", view, *ARGUMENTS[view], "--model", folder).code == 0
    monkeypatch.setattr("cutaway.cli.screen.unicode", lambda: False)
    assert cutaway("inspect", view, *ARGUMENTS[view], "--model", folder).code == 0


@pytest.mark.parametrize("view", ARGUMENTS)
def test_every_view_is_told_as_json_and_written_as_a_page(cutaway, folder, tmp_path, view):
    needs(view)
    page = tmp_path / "view.html"
    ran = cutaway("inspect", view, *ARGUMENTS[view], "--model", folder, "--json", "--html", page)
    assert ran.code == 0, ran.err
    assert ran.json["view"] == view
    assert titles()[view] in page.read_text("utf8")
    assert [path.name for path in tmp_path.iterdir()] == ["view.html"]
    said = cutaway("inspect", view, *ARGUMENTS[view], "--model", folder, "--html", page)
    assert said.out == f"{page}\n"


def test_the_json_holds_the_numbers_of_the_python_views(cutaway, folder, tiny_lm):
    seen = run(tiny_lm, TEXT)
    told = cutaway("inspect", "attention", TEXT, "-l", 1, "--head", 2, "-m", folder, "--json").json
    assert told["run"]["tokens"] == seen.to_dict()["tokens"]
    assert told["weights"] == attention(seen, 1, 2).to_dict()["weights"]
    told = cutaway("inspect", "lens", TEXT, "--position", -1, "-k", 2, "-m", folder, "--json").json
    assert told["top"] == lens(seen, [-1], 2).to_dict()["top"]
    told = cutaway("inspect", "saliency", TEXT, "--continuation", " who", "-m", folder, "--json").json
    assert told["share"] == saliency(run(tiny_lm, TEXT, " who")).to_dict()["share"]


def test_a_sweep_is_that_of_python_as_a_lead_or_as_a_probability(cutaway, folder, tiny_lm):
    for options, metric in (([], Probability(7)), (["--against", "id:9"], LogitDifference(7, 9))):
        for what in ("residual", "head"):
            told = cutaway(
                "inspect", "sweep", TEXT, OTHER, "--for", "id:7", *options, "--what", what, "-m", folder, "--json"
            ).json
            found = tiny_lm.sweep(TEXT, OTHER, what, metric=metric).to_dict()
            assert told["view"] == "sweep" and told["metric"] == found["metric"] and told["values"] == found["values"]
    drawn = cutaway("inspect", "sweep", TEXT, OTHER, "--for", "id:7", "--what", "mlp", "-m", folder).out
    layer, at = tiny_lm.sweep(TEXT, OTHER, "mlp", metric=Probability(7)).strongest(1)[0]
    assert re.search(rf"back, .*\n  layer {layer} .*\(token {at}\)", drawn)


def test_a_token_is_named_by_its_text_with_or_without_its_space_or_by_its_id(cutaway, folder, tiny_lm):
    [fox] = tiny_lm.ids(" a")
    for name in (" a", "·a", f"id:{fox}"):
        told = cutaway("inspect", "lens", TEXT, "--watch", name, "-m", folder, "--json").json
        assert told["watch"][0]["token"]["id"] == fox


def test_steering_and_patching_are_done_from_the_command_line(cutaway, folder):
    told = cutaway(
        "inspect", "change", TEXT, "--steer", 1, "--toward", "fox", "--away", "hill", "--strength", 3, "--at", 2,
        "-m", folder, "--json",
    ).json  # fmt: skip
    wanted = {"layer": 1, "toward": "fox", "away": "hill", "strength": 3.0, "position": 2}
    assert told["changes"] == [{"kind": "steer", **wanted}] and max(told["kl"][:2]) == 0 and max(told["kl"]) > 0
    pushed = cutaway(
        "inspect", "change", TEXT, "--push", 2, "--toward", " a", "--strength", 2, "-m", folder, "--json"
    ).json
    assert pushed["changes"] == [{"kind": "toward", "layer": 2, "token": " a", "strength": 2.0, "position": None}]
    assert pushed["moved"][0]["token"]["text"] == " a" and pushed["moved"][0]["after"] > pushed["moved"][0]["before"]
    same = cutaway(
        "inspect", "change", TEXT, "--patch", "blocks.1.residual", "--from", TEXT, "-m", folder, "--json"
    ).json
    assert max(same["kl"]) == 0
    one = cutaway(
        "inspect", "change", TEXT, "--patch", "blocks.1.residual", "--from", "fox", "--from-position", 0, "--at", 2,
        "-m", folder,
    )  # fmt: skip
    assert one.code == 0


def test_negative_numbers_count_from_the_end_on_the_command_line_too(cutaway, folder, tiny_lm):
    last = len(tiny_lm.ids(TEXT)) - 1

    def told(*args):
        answer = cutaway("inspect", *args, "--model", folder, "--json").json
        return {name: value for name, value in answer.items() if name not in ("run", "changes")}

    for first, second in [
        (["change", TEXT, "--ablate-head", "-1.-2"], ["change", TEXT, "--ablate-head", "2.2"]),
        (["change", TEXT, "--ablate-neuron", "-1.-1"], ["change", TEXT, "--ablate-neuron", "2.191"]),
        (["change", TEXT, "--push", -1, "--toward", " a", "--at", -1], ["change", TEXT, "--push", 2, "--toward", " a"]),
        (["attention", TEXT, "-l", -1, "--head", -1, "-p", -1], ["attention", TEXT, "-l", 2, "--head", 3, "-p", last]),
        (["neurons", TEXT, "-l", -1, "-p", -1], ["neurons", TEXT, "-l", 2, "-p", last]),
    ]:
        if "--at" in first:
            second = [*second, "--at", last]
        assert told(*first) == told(*second)


def test_causes_against_a_token_have_a_minus(cutaway, folder, tiny_lm):
    found = saliency(run(tiny_lm, TEXT))
    ran = cutaway("inspect", "saliency", TEXT, "-m", folder)
    for at in found.share[0].argsort()[::-1][:15]:
        assert f"  {at}  {found.signed[0, at]:+.2f}" in ran.out
    several = cutaway("inspect", "saliency", TEXT, "--write", 6, "-m", folder)
    assert re.search(r" -\d+%", several.out) and re.search(r" \d+%", several.out)


def test_induction_says_from_how_many_queries(cutaway, folder, tiny_lm):
    many = heads(run(tiny_lm, TEXT)).induction_queries
    assert f"from {many} queries" in cutaway("inspect", "heads", TEXT, "-m", folder).out
    assert "from 1 query " in cutaway("inspect", "heads", "abca", "-m", folder).out


def test_text_comes_from_a_file_or_a_pipe_too(cutaway, folder, tmp_path):
    (tmp_path / "text").write_text(f"{TEXT}\n")
    said = cutaway("inspect", "heads", TEXT, "-m", folder, "--json").json
    assert cutaway("inspect", "heads", "--file", tmp_path / "text", "-m", folder, "--json").json == said
    assert cutaway("inspect", "heads", "-m", folder, "--json", stdin=TEXT.encode()).json == said


def test_a_long_text_in_the_terminal_and_as_json(cutaway, folder):
    text = "abcdefgh" * 5
    assert cutaway("inspect", "attention", text, "-m", folder).code == 0
    assert cutaway("inspect", "lens", text, "-m", folder).code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["lens", ""], "no text to inspect"),
        (["lens"], "no text to inspect"),
        (["lens", "x " * 60], "48"),
        (["lns", "a"], "Did you mean 'lens'"),
        (["attention", "a b", "--layer", 9], "from 0 to 2"),
        (["attention", "a b", "--head", 9], "no head 9"),
        (["attention", "a b", "--position", 99], "no token 99"),
        (["path", "a b", "--token", "wondrous"], "not one token"),
        (["path", "a b", "--token", "id:999"], "no token 999"),
        (["lens", "a b", "--watch", ""], "not one token"),
        (["saliency", "a b", "--method", "magic"], "gradient, integrated"),
        (["saliency", "a b", "--write", 2, "--continuation", "x"], "not both"),
        (["neurons", "a b", "-k", 0], "1 or more"),
        (["factors", "a b", "-k", 21], "between 2 and 20"),
        (["change", "a b"], "--ablate-head"),
        (["change", "a b", "--ablate-head", "two"], "like 2.1"),
        (["change", "a b", "--ablate-head", "9.0"], "no layer 9"),
        (["change", "a b", "--ablate-neuron", "0.9999"], "no neuron 9999"),
        (["change", "a b", "--steer", 1], "--toward"),
        (["change", "a b", "--push", 1], "--toward"),
        (["change", "a b", "--push", 1, "--toward", "a long text"], "tokens"),
        (["change", "a b", "--patch", "blocks.1.residual"], "--from"),
        (["change", "a b", "--patch", "nothing", "--from", "a b"], "Nothing in this model is called 'nothing'"),
        (["change", "a b", "--ablate-head", "-9.0"], "no layer -9"),
        (["change", "a b", "--ablate-head", "0.0", "--at", 99], "no token 99"),
        (["roles", "--tokens", 99], "between 2 and 23"),
        (["sweep", TEXT, "Once", "--for", "id:7"], "the same number of tokens: the clean one has 15"),
        (["sweep", TEXT, OTHER, "--for", "id:7", "--what", "heads"], "Did you mean 'head'"),
        (["sweep", TEXT, OTHER, "--for", "wondrous"], "not one token"),
        (["sweep", TEXT, OTHER, "--for", "id:7", "--position", 99], "no token 99"),
        (["sweep", "", "", "--for", "id:7"], "The clean text is empty"),
        (["beams", "a b", "-b", 0], "1 or more"),
        (["parameters", "wte.wait"], "Did you mean 'wte.weight'"),
    ],
)
def test_a_mistake_is_one_line_with_the_remedy(cutaway, folder, args, said):
    ran = cutaway("inspect", *args, "--model", folder)
    assert ran.code == 2 and said in ran.err and ran.out == "" and "Traceback" not in ran.err
    told = cutaway("inspect", *args, "--model", folder, "--json")
    assert told.code == 2 and told.err.startswith('{"error": ') and told.out == ""


def test_a_page_that_cannot_be_written_is_refused_and_leaves_nothing(cutaway, folder, tmp_path):
    assert "is a folder" in cutaway("inspect", "heads", TEXT, "-m", folder, "--html", tmp_path).err
    ran = cutaway("inspect", "heads", TEXT, "-m", folder, "--html", tmp_path / "nowhere" / "x.html")
    assert ran.code == 2 and "nowhere" in ran.err and "Traceback" not in ran.err


def test_without_a_view_they_are_listed_and_each_has_an_example(cutaway):
    listed = cutaway("inspect")
    assert listed.code == 0 and listed.err == ""
    for view in ARGUMENTS:
        assert re.search(rf"^. {view} ", listed.out, re.MULTILINE)
        told = re.sub(r"\s+", " ", cutaway("inspect", view, "--help").out)
        assert f"Example: cutaway inspect {view} " in told


@pytest.mark.parametrize("view", ARGUMENTS)
def test_every_option_of_every_view_is_on_the_page(cutaway, view):
    page = (ROOT / "docs" / "cli.md").read_text("utf8")
    section = page.split("\n## inspect\n")[1].split("\n## ")[0] + page.split("\n## Shared\n")[1].split("\n## ")[0]
    options = set(re.findall(r"--[a-z][a-z-]+", cutaway("inspect", view, "--help").out.split("Options")[1])) - {
        "--help"
    }
    assert sorted(option for option in options if option not in section) == []


def test_a_corpus_is_recorded_and_its_contexts_are_found_again(cutaway, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path / "home"))
    corpus = tmp_path / "foxes.txt"
    corpus.write_text("a fox and a box\n\nthe little fox on the hill\n\nOnce upon a time")
    told = cutaway("inspect", "record", corpus, "--model", folder, "--count", 2, "--json").json
    assert told["corpus"] == "foxes" and told["read"] > 10 and Path(told["file"]).is_file()
    assert "tokens read" in cutaway("inspect", "record", corpus, "--model", folder, "--count", 2).out  # it is there
    found = cutaway("inspect", "contexts", "--layer", 1, "--unit", 3, "--model", folder, "--json").json
    assert found["corpus"] == "foxes" and len(found["contexts"]) == 2 and found["tokens"] == told["read"]
    drawn = cutaway("inspect", "contexts", "--layer", 1, "--unit", 3, "--model", folder).out
    assert "neuron 1.3 over" in drawn and "quantiles" in drawn
    ran = cutaway("inspect", "record", tmp_path / "none", "--model", folder, "--count", 2, "--out", tmp_path / "new")
    assert ran.code == 2 and "cannot be read" in ran.err


def test_a_sweep_by_zero_and_by_means_needs_one_text(cutaway, folder, tmp_path, tiny_lm):
    from cutaway.inspect.metric import KL, Loss

    told = cutaway("inspect", "sweep", TEXT, "--how", "zero", "--what", "head", "-m", folder, "--json").json
    assert told["values"] == tiny_lm.sweep(TEXT, what="head", how="zero", metric=KL()).to_dict()["values"]
    (tmp_path / "others.txt").write_text(OTHER)
    asked = ("--how", "mean", "--over", tmp_path / "others.txt", "--what", "mlp", "--metric", "loss", "--for", "id:7")
    told = cutaway("inspect", "sweep", TEXT, *asked, "--layer", 1, "-m", folder, "--json").json
    found = tiny_lm.sweep(TEXT, what="mlp", how="mean", over=[OTHER], metric=Loss(7), layers=[1]).to_dict()
    assert told["values"] == found["values"] and told["layers"] == [1]
    for asked in (("--how", "zero"), ("--estimate", OTHER, "--for", "id:7", "--what", "neuron", "--unit", 3)):
        assert cutaway("inspect", "sweep", TEXT, *asked, "-m", folder).code == 0
