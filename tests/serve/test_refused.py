"""Silent failure is the worst thing here: what would explain nothing is refused, in Python, on the command line and
over HTTP, with the same words.
"""

from __future__ import annotations

import pytest

from cutaway import cli
from cutaway.errors import CutawayError
from cutaway.inspect.change import from_dict
from cutaway.inspect.circuit import edges, paths
from cutaway.inspect.runs import run
from cutaway.inspect.views_causal import metric_of

TEXT, OTHER = "Once upon a time", "Once upon the time"
"""Of one length in any vocabulary that has these words."""
LEAD = {"token": "id:7", "against": "id:9"}


def flags(asked: dict) -> list[str]:
    """What is asked of a server, as a command line."""
    names = {"token": "--for", "unit": "--unit"}
    return [word for name, value in asked.items() for word in (names.get(name, f"--{name}"), str(value))]


@pytest.fixture(scope="module")
def folder(tiny_lm, tmp_path_factory) -> str:
    made = tmp_path_factory.mktemp("refused") / "tiny"
    tiny_lm.save(made)
    return str(made)


def told_by_the_command_line(capsys, args: list[str]) -> str:
    capsys.readouterr()
    assert cli.run(["inspect", *args]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "Traceback" not in told.err
    return " ".join(told.err.split())


def told_over_http(answer) -> str:
    assert 400 <= answer.status_code < 500
    error = answer.json()["error"]
    return f"{error['what']} {error['remedy']}"


SWEEPS = [
    # a source of another length
    ({"other": "Once upon", **LEAD}, "The two texts must have the same number of tokens"),
    # a position out of range: of the metric, of what is patched
    ({**LEAD, "position": 99}, "There is no token 99"),
    ({**LEAD, "layer": 99}, "There is no layer 99"),
    ({**LEAD, "what": "head", "unit": 99}, "There is no head 99"),
    ({**LEAD, "what": "mlp", "unit": -99}, "There is no token -99"),
    ({**LEAD, "position": 0}, "there is nothing to explain"),
    # a metric that is constant
    ({"token": "id:7", "against": "id:7"}, "over itself, which is always 0"),
    ({"other": TEXT, **LEAD}, "are the same: there is no difference to explain"),
    # what there is not
    ({**LEAD, "what": "heads"}, "There is no sweep of 'heads'. Did you mean 'head'?"),
    ({**LEAD, "how": "swap"}, "Pieces are not replaced by 'swap'."),
]


@pytest.mark.parametrize(("given", "said"), SWEEPS)
def test_a_sweep_that_would_explain_nothing(client, trace, tiny_lm, folder, capsys, given, said):
    asked = dict(given)
    other = asked.pop("other", OTHER)
    chosen = {name: [asked[one]] for name, one in (("layers", "layer"), ("units", "unit")) if one in asked}
    metric = metric_of(asked["token"], asked.get("against"), asked.get("position", -1))
    with pytest.raises(CutawayError) as python:
        rest = {name: asked[name] for name in ("what", "how") if name in asked}
        tiny_lm.sweep(TEXT, other, metric=metric, **rest, **chosen)
    assert said in str(python.value)
    assert said in told_by_the_command_line(capsys, ["sweep", TEXT, other, *flags(asked), "--model", folder])
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/sweep", params={"corrupted": other, **asked})
    assert said in told_over_http(answer)


def test_a_metric_that_no_cell_moves(client, trace, tiny_lm, folder, capsys):
    """The likeliest token stays the likeliest, whichever neuron of these is taken out."""
    token = f"id:{int(tiny_lm.logits(TEXT)[-1].argmax())}"
    asked = {"what": "neuron", "how": "zero", "metric": "rank", "token": token, "layer": 0, "unit": 1}
    said = "No cell moves the metric, which is 1 in all of them"
    with pytest.raises(CutawayError, match=said):
        metric = metric_of(token, name="rank")
        tiny_lm.sweep(TEXT, what="neuron", how="zero", metric=metric, layers=[0], units=[1])
    assert said in told_by_the_command_line(capsys, ["sweep", TEXT, *flags(asked), "--model", folder])
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/sweep", params=asked)
    assert said in told_over_http(answer)


CHANGES = [
    # matches nothing
    ({"kind": "patch", "name": "blocks.1.mpl.output", "text": OTHER}, "Nothing in this model is called", "--patch"),
    ({"kind": "patch", "name": "blocks.*.residual", "text": OTHER}, "names several intermediates", "--patch"),
    ({"kind": "ablate_head", "layer": 9, "head": 0}, "There is no layer 9", "--ablate-head"),
    ({"kind": "ablate_head", "layer": 0, "head": 9}, "There is no head 9", "--ablate-head"),
    # a position out of range
    ({"kind": "ablate_head", "layer": 0, "head": 0, "position": 99}, "There is no token 99", "--ablate-head"),
    ({"kind": "patch", "name": "blocks.1.residual", "text": OTHER, "position": 99}, "no token 99", "--patch"),
    # a source of another length
    ({"kind": "patch", "name": "blocks.1.residual", "text": "Once"}, "this one {tokens}: name a position", "--patch"),
    ({"kind": "patch", "name": "blocks.1.attention.weights", "text": "Once"}, "texts of one length", "--patch"),
]


@pytest.mark.parametrize(("change", "said", "option"), CHANGES)
def test_a_change_that_would_change_nothing(client, trace, tiny_lm, folder, capsys, change, said, option):
    said = said.replace("{tokens}", str(len(tiny_lm.ids(TEXT))))
    with pytest.raises(CutawayError) as python:
        run(tiny_lm, TEXT, changes=[from_dict(change)])
    assert said in str(python.value)
    with pytest.raises(CutawayError) as written:
        tiny_lm.generate(TEXT, max_tokens=2, changes=[from_dict(change)])
    assert said in str(written.value)
    args = [option, change.get("name") or f"{change['layer']}.{change['head']}"]
    args += ["--from", change["text"]] if "text" in change else []
    args += ["--at", str(change["position"])] if "position" in change else []
    assert said in told_by_the_command_line(capsys, ["change", TEXT, *args, "--model", folder])
    answer = client.post(f"/api/traces/{trace(TEXT)['id']}/change", json={"changes": [change]})
    assert said in told_over_http(answer)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"corrupted": "Once", **LEAD}, "the same number of tokens"),
        ({"corrupted": TEXT, **LEAD}, "are the same: there is no difference to explain"),
        ({"corrupted": OTHER, "token": "id:7", "against": "id:7"}, "over itself, which is always 0"),
        ({"corrupted": OTHER, **LEAD, "position": 99}, "There is no token 99"),
    ],
)
def test_edges_and_paths_that_would_explain_nothing(client, trace, tiny_lm, folder, capsys, asked, said):
    metric = metric_of(asked["token"], asked["against"], asked.get("position", -1))
    for name, look in (("edges", edges), ("paths", paths)):
        with pytest.raises(CutawayError) as python:
            look(tiny_lm, TEXT, asked["corrupted"], metric=metric)
        assert said in str(python.value)
        rest = flags({key: value for key, value in asked.items() if key != "corrupted"})
        assert said in told_by_the_command_line(capsys, [name, TEXT, asked["corrupted"], *rest, "--model", folder])
        answer = client.get(f"/api/traces/{trace(TEXT)['id']}/{name}", params=asked)
        assert said in told_over_http(answer)
