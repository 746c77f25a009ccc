"""The endpoints of Weights say what `cutaway.inspect` says."""

from __future__ import annotations

from cutaway.inspect.distribution import distribution
from cutaway.inspect.parameters import find, parameters
from cutaway.inspect.picture import picture


def test_the_table_is_that_of_python(client, tiny_lm):
    answer = client.get("/api/weights", params={"model": "tiny"})
    assert answer.json() == {"model": "tiny", **parameters(tiny_lm.config).to_json()}


def test_picture_and_distribution_are_those_of_python(client, tiny_lm):
    for name in ("wte.weight", "blocks.1.attention.queries_keys_values.weight", "final_norm.bias"):
        found = client.get("/api/weights/matrix", params={"model": "tiny", "name": name, "size": 8, "bins": 9}).json()
        assert found["picture"] == picture(tiny_lm, find(tiny_lm.config, name).stored, 8).to_dict()
        assert found["distribution"] == distribution(tiny_lm, name, 9).to_dict()


def test_small_pictures_come_together(client, tiny_lm):
    names = [one.name for one in parameters(tiny_lm.config).block(1)]
    found = client.get("/api/weights/pictures", params={"model": "tiny", "name": names, "size": 6}).json()["pictures"]
    assert list(found) == names
    for name in names:
        assert found[name]["mean"] == picture(tiny_lm, find(tiny_lm.config, name).stored, 6).to_dict()["mean"]


def test_the_four_sizes_need_no_weights(client):
    from cutaway.models.gpt2.shape import SIZES

    found = {one["name"]: one for one in client.get("/api/weights/sizes").json()}
    assert list(found) == list(SIZES)
    assert [one["total"] for one in found.values()] == [124_439_808, 354_823_168, 774_030_080, 1_557_611_200]
    assert [one["paper"]["millions"] for one in found.values()] == [117, 345, 762, 1_542]
    for name, one in found.items():
        assert round(one["paper"]["with_gpt1_vocabulary"] / 1e6) == one["paper"]["millions"]
        told = client.get("/api/weights", params={"size": name}).json()
        assert told == {"model": name, **parameters(SIZES[name]).to_json()}


def test_mistakes_are_refused(client):
    answer = client.get("/api/weights", params={"size": "gpt2-huge"})
    assert answer.status_code == 422 and "no size" in answer.json()["error"]["what"]
    assert client.get("/api/weights", params={"model": "nobody"}).status_code == 409
    answer = client.get("/api/weights/matrix", params={"model": "tiny", "name": "nothing"})
    assert 400 <= answer.status_code < 500 and "No matrix" in answer.json()["error"]["what"]
    asked = {"model": "tiny", "name": "wte.weight", "size": 10_000}
    assert client.get("/api/weights/matrix", params=asked).status_code == 422
