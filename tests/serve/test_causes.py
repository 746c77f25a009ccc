"""Causes' endpoint is `saliency`, for one target at a time."""

from __future__ import annotations

import pytest

from cutaway.inspect.runs import run
from cutaway.inspect.saliency import saliency

TEXT = "Once upon a time there was"


@pytest.mark.parametrize("method", ["gradient", "integrated"])
def test_the_shares_are_those_of_saliency_and_sum_to_one(client, trace, tiny_lm, method):
    found = trace(TEXT)
    for target in (2, len(found["tokens"])):
        answer = client.get(f"/api/traces/{found['id']}/saliency", params={"target": target, "method": method}).json()
        wanted = saliency(run(tiny_lm, TEXT), [target], method).to_dict()
        assert answer["targets"] == wanted["targets"]
        assert answer["share"][0] == pytest.approx(wanted["share"][0], rel=1e-4)
        assert sum(answer["share"][0]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("wrong", [{"target": 0}, {"target": 99}, {"target": 1, "method": "guess"}, {}])
def test_a_wrong_target_or_method_is_refused(client, trace, wrong):
    assert client.get(f"/api/traces/{trace(TEXT)['id']}/saliency", params=wrong).status_code == 422
