"""The endpoint of Change says what `cutaway.inspect.change` says."""

from __future__ import annotations

import pytest

from cutaway.inspect.change import changed, from_dict
from cutaway.inspect.runs import run

TEXT = "A robot must obey the orders"
CHANGES = [
    [],
    [{"kind": "ablate_head", "layer": 1, "head": 2}],
    [{"kind": "ablate_neuron", "layer": 0, "neuron": 5, "position": 2}],
    [{"kind": "steer", "layer": 1, "toward": " the", "away": " a", "strength": 2.5}],
    [{"kind": "toward", "layer": 2, "token": "a", "strength": -0.5}, {"kind": "ablate_head", "layer": 0, "head": 0}],
    [{"kind": "patch", "name": "blocks.1.residual", "text": "Another text", "position": 3, "source": 1}],
]


@pytest.mark.parametrize("changes", CHANGES)
def test_before_and_after_are_those_of_python(client, trace, tiny_lm, changes):
    made, before = trace(TEXT), run(tiny_lm, TEXT)
    after = run(tiny_lm, TEXT, changes=[from_dict(one) for one in changes])
    for position in (-1, 3):
        asked = {"changes": changes, "position": position, "k": 5}
        answer = client.post(f"/api/traces/{made['id']}/change", json=asked)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        key = found.pop("id")
        assert found == changed(before, after, position, 5).to_dict()
        assert client.get(f"/api/traces/{key}/heads").status_code == 200  # every view works on the changed run


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "ablate_head", "layer": 99, "head": 0}, "no layer 99"),
        ({"kind": "ablate_neuron", "layer": 0, "neuron": 10**6}, "no neuron"),
        ({"kind": "toward", "layer": 0, "token": "several tokens here"}, "tokens"),
        ({"kind": "explode"}, "no change of the kind"),
        ({"kind": "patch", "name": "blocks.0.residual", "text": "shorter"}, "name a position"),
    ],
)
def test_a_change_that_cannot_be_is_refused_with_words(client, trace, change, said):
    answer = client.post(f"/api/traces/{trace(TEXT)['id']}/change", json={"changes": [change]})
    assert 400 <= answer.status_code < 500
    error = answer.json()["error"]
    assert said in f"{error['what']} {error['remedy']}"
