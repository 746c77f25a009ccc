"""Neurons' endpoints are the Python functions."""

from __future__ import annotations

import numpy as np
import pytest

from cutaway.inspect.neurons import neuron, neurons
from cutaway.inspect.runs import run

TEXT = "Once upon a time there was a little fox"


def test_activations_arrive_number_by_number(client, trace, tiny_lm):
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/activations", params={"layer": 1})
    shape = [int(size) for size in answer.headers["X-Shape"].split(",")]
    found = np.frombuffer(answer.content, dtype="<f4").reshape(shape)
    np.testing.assert_allclose(found, run(tiny_lm, TEXT)["blocks.1.mlp.activation"].numpy(), rtol=1e-5, atol=1e-6)


def test_the_strongest_neurons_and_one_of_them(client, trace, tiny_lm):
    key, whole = trace(TEXT)["id"], run(tiny_lm, TEXT)
    asked = {"layer": [0, 2], "position": 3, "top": 4}
    answer = client.get(f"/api/traces/{key}/neurons", params=asked).json()
    assert answer == neurons(whole, [0, 2], 4, 3).to_dict()
    answer = client.get(f"/api/traces/{key}/neuron", params={"layer": 2, "neuron": 5}).json()
    assert answer == neuron(whole, 2, 5).to_dict()


def test_groups_and_factors(client, trace, tiny_lm):
    pytest.importorskip("sklearn", reason="the extra `inspect` is not installed")
    from cutaway.inspect.factors import factors, groups

    key, whole = trace(TEXT)["id"], run(tiny_lm, TEXT)
    answer = client.get(f"/api/traces/{key}/factors", params={"count": 3, "layer": [1]}).json()
    assert answer == factors(whole, 3, [1]).to_dict()
    answer = client.get(f"/api/traces/{key}/groups", params={"count": 3}).json()
    assert answer == groups(whole, 3).to_dict()


@pytest.mark.parametrize(
    ("view", "wrong"),
    [
        ("activations", {"layer": 9}), ("neuron", {"layer": 0, "neuron": 9_999}), ("neurons", {"top": 0}),
        ("factors", {"count": 21}), ("factors", {"count": 1}), ("groups", {"count": 65}),
    ],
)  # fmt: skip
def test_what_there_is_not_is_refused(client, trace, view, wrong):
    assert client.get(f"/api/traces/{trace(TEXT)['id']}/{view}", params=wrong).status_code == 422
