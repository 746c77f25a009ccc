"""Explanations: every view over HTTP, with each token of a stream, and changes that touch no neighbour."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cutaway.inspect.runs import run
from cutaway.inspect.view import find

TEXT = "Once upon a time there was a"
ASKED = {
    "attention": {"layer": 1, "head": 2},
    "neuron": {"layer": 1, "neuron": 3},
    "looking": {"position": 3, "key": 1},
    "values": {"name": "blocks.0.attention.weights", "head": 1, "position": 2},
    "change": {"changes": [{"kind": "ablate_head", "layer": 1, "head": 0}]},
    "cache": {"max_tokens": 2},
    "edges": {"token": 70},
    "paths": {"token": 70},
    "direct": {"token": 70},
    "senses": {"other": TEXT},
    "beams": {"beams": 2, "max_tokens": 2},
    "writing": {"max_tokens": 2},
}


def listed(server) -> list[str]:
    return [one["id"] for one in server.http.get("/v1/explanations").json()["data"]]


def test_every_view_of_a_text_has_an_address_and_answers(server, served_lm):
    names = listed(server)
    assert {"attention", "lens", "saliency", "factors", "change", "values", "path"} <= set(names)
    refused = set()
    for one in server.http.get("/v1/explanations").json()["data"]:
        name, asked = one["id"], {**ASKED.get(one["id"], {})}
        if "corrupted" in one["parameters"]:
            same = [TEXT[:-1] + letter for letter in "bcdefghijklmnopqrstuvwxyz"]
            asked["corrupted"] = next(one for one in same if len(served_lm.ids(one)) == len(served_lm.ids(TEXT)))
        answer = server.post(f"/v1/explanations/{name}", input=TEXT, **asked)
        if answer.status_code == 400 and "does not fit" in answer.text:
            refused.add(name)
        else:
            assert answer.status_code == 200, (name, answer.text)
    assert refused == {"gaps", "sentences"}  # which are of an encoder


def test_a_view_over_http_says_what_it_says_in_python(server, served_lm):
    wanted = find("lens").compute(run(served_lm, TEXT), {"position": 2, "k": 3}).to_dict()
    found = server.post("/v1/explanations/lens", input=TEXT, position=2, k=3).json()
    assert found["rank"] == wanted["rank"]
    np.testing.assert_allclose(found["probability"], wanted["probability"], rtol=1e-3)


def test_intermediates_are_filtered_by_layer_head_and_position_as_json_and_safetensors(server, served_lm):
    from safetensors.numpy import load

    body = {"input": TEXT, "names": ["blocks.*.attention.weights", "final_norm"], "layers": [0, -1], "heads": [2]}
    body |= {"positions": [-1, 3]}
    found = server.post("/v1/explanations/tensors", **body).json()["tensors"]
    assert set(found) == {"blocks.0.attention.weights", "blocks.2.attention.weights", "final_norm"}
    whole = served_lm.trace(TEXT)
    last = len(served_lm.ids(TEXT)) - 1
    wanted = whole["blocks.2.attention.weights"][[2]][:, [last, 3]].numpy()
    np.testing.assert_allclose(found["blocks.2.attention.weights"]["values"], wanted, rtol=1e-3, atol=1e-5)
    packed = load(server.post("/v1/explanations/tensors", **body, format="safetensors").content)
    np.testing.assert_allclose(packed["blocks.2.attention.weights"], wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(packed["final_norm"], whole["final_norm"][[last, 3]].numpy(), rtol=1e-3, atol=1e-4)


def test_a_views_arrays_come_as_safetensors_too(server):
    from safetensors.numpy import load

    plain = server.post("/v1/explanations/attention", input=TEXT, **ASKED["attention"]).json()
    answer = server.post("/v1/explanations/attention", input=TEXT, **ASKED["attention"], format="safetensors")
    packed = load(answer.content)
    np.testing.assert_allclose(packed["weights"], np.array(plain["weights"], float), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("lens", {"input": TEXT, "position": 99}, 400),
        ("lens", {"input": TEXT, "nonsense": 1}, 400),
        ("lens", {"input": [5] * 300}, 400),
        ("nothing", {"input": TEXT}, 404),
        ("tensors", {"input": TEXT, "names": ["blocks.9.mlp.hidden"]}, 400),
        ("tensors", {"input": TEXT, "names": ["logits"], "positions": [40]}, 400),
        ("tensors", {"input": [5] * 256, "names": ["*"]}, 413),
    ],
)
def test_what_cannot_be_explained_is_refused_in_a_sentence(server, path, body, status):
    answer = server.post(f"/v1/explanations/{path}", **body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"]


def test_each_streamed_token_comes_with_what_was_asked(server, served_lm, alone):
    wanted = alone(TEXT, max_tokens=4, temperature=0)
    asked = ["lens", {"view": "attention", "layer": 1, "head": 0}, "saliency"]
    asked += [{"view": "tensors", "names": ["blocks.*.residual"], "layers": [-1]}]
    body = {"prompt": TEXT, "max_tokens": 4, "temperature": 0, "explain": asked}
    answer = server.post("/v1/completions", stream=True, **body).text
    told = [json.loads(part.removeprefix("data: ")) for part in answer.split("\n\n")[:-2]]
    explained = [one["choices"][0]["explain"] for one in told if "explain" in one["choices"][0]]
    assert len(explained) == len(wanted.ids)
    prompt = len(wanted.prompt_ids)
    for at, (token, one) in enumerate(zip(wanted.ids, explained, strict=True)):
        assert set(one) == {"lens", "attention", "saliency", "tensors"}
        assert one["lens"]["chosen"][0]["id"] == token and one["lens"]["positions"] == [prompt + at - 1]
        assert one["lens"]["rank"][-1] == [1]  # greedy: after the last layer it was the likeliest
        assert one["saliency"]["targets"][0]["token"]["id"] == token
        weights = np.array(one["attention"]["weights"], dtype=float)
        assert np.nansum(weights) == pytest.approx(1, abs=1e-3)
        [(name, hidden)] = one["tensors"].items()
        written = served_lm.trace(wanted.prompt_ids + wanted.ids[:at])[name][-1:].numpy()
        np.testing.assert_allclose(hidden["values"], written, rtol=1e-3, atol=1e-3)
    whole = server.complete(**body)["choices"][0]
    assert whole["explain"] == explained
    bad = server.post("/v1/completions", prompt=TEXT, explain=["nothing"])
    assert bad.status_code == 404 and "nothing" in bad.json()["error"]["message"]
    for wrong in (
        ["lens", {"view": "lens", "k": 2}],
        [{"view": "tensors", "names": ["blocks.9.residual"]}],
        ["tensors"],
    ):
        refused = server.post("/v1/completions", prompt=TEXT, explain=wrong)
        assert refused.status_code == 400 and refused.json()["error"]["message"]


CHANGES = [
    [{"kind": "ablate_head", "layer": 0, "head": 1}, {"kind": "ablate_head", "layer": 1, "head": 3}],
    [{"kind": "steer", "layer": 1, "toward": "the fox", "away": "a robot", "strength": 4.0}],
    [{"kind": "patch", "name": "blocks.1.residual", "text": "A robot must obey the orders", "position": 2}],
]


def test_changes_of_one_request_touch_no_other_in_the_batch(server, served_lm, alone):
    from cutaway.inspect.change import from_dict

    prompts = [f"{TEXT} {word}" for word in ("fox", "robot", "hill", "time", "order")]
    plain = {"max_tokens": 12, "seed": 3, "temperature": 0.9}

    def ask(number: int) -> str:
        more = {"changes": CHANGES[number % 3]} if number < 3 else {}
        return server.texts(prompts[number % 5], **plain, **more)[0]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, range(8)))
    for number, text in enumerate(found):
        changes = [from_dict(one) for one in CHANGES[number]] if number < 3 else []
        lm = served_lm
        wanted = lm.generate(prompts[number % 5], changes=changes, top_k=None, **plain) if changes else None
        assert text == (wanted or alone(prompts[number % 5], **plain)).text
    assert any(found[number] != alone(prompts[number], **plain).text for number in range(3))


def test_a_stream_under_changes_is_explained_under_them(server):
    body = {"prompt": TEXT, "max_tokens": 2, "temperature": 0, "changes": CHANGES[0], "explain": ["lens"]}
    [choice] = server.complete(**body)["choices"]
    assert [one["lens"]["rank"][-1] for one in choice["explain"]] == [[1]] * len(choice["explain"])
    many = server.post("/v1/completions", prompt=["a", "b"], changes=CHANGES[0])
    assert many.status_code == 400 and many.json()["error"]["param"] == "changes"
