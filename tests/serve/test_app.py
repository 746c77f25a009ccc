"""Every answer is what the Python function says; every mistake is said with its remedy."""

from __future__ import annotations

import numpy as np
import pytest

from cutaway.decoding.sampling import Sampling, probabilities
from cutaway.inspect.attention import attention, heads
from cutaway.inspect.lens import lens
from cutaway.inspect.runs import run
from cutaway.inspect.values import values
from cutaway.serve import explorer as remembering

TEXT = "Once upon a time there was a little fox"


def test_a_trace_gives_the_tokens_and_the_shape(trace, tiny_lm):
    found = trace(TEXT)
    assert [token["id"] for token in found["tokens"]] == tiny_lm.ids(TEXT)
    assert "".join(token["text"] for token in found["tokens"]) == TEXT
    assert found["shape"]["layers"] == 3 and found["shape"]["heads"] == 4


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("attention?layer=-1&head=-1&position=-1", "attention?layer=2&head=3&position=LAST"),
        ("values?name=blocks.1.residual&position=-2", "values?name=blocks.1.residual&position=BEFORE"),
        ("walk/scores?layer=-2&head=-3&position=-1", "walk/scores?layer=1&head=1&position=LAST"),
        (
            "explain?name=final_norm&position=-1&column=-1",
            "explain?name=final_norm&position=LAST&column=47",
        ),
        ("neuron?layer=-1&neuron=-1", "neuron?layer=2&neuron=191"),
        ("neurons?layer=-1&position=-1", "neurons?layer=2&position=LAST"),
        ("lens?first=-2", "lens?first=BEFORE"),
        ("saliency?target=-1", "saliency?target=LAST"),
        ("looking?position=-1&key=-2", "looking?position=LAST&key=BEFORE"),
        ("predict?position=-1", "predict?position=LAST"),
    ],
)
def test_negative_numbers_count_from_the_end(client, trace, first, second):
    found = trace(TEXT)
    last = len(found["tokens"]) - 1
    answers = [
        client.get(f"/api/traces/{found['id']}/{asked.replace('LAST', str(last)).replace('BEFORE', str(last - 1))}")
        for asked in (first, second)
    ]
    assert answers[0].status_code == 200 and answers[0].json() == answers[1].json()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("attention?layer=9&head=0&position=0", "There is no layer 9: there are 3, numbered from 0 to 2"),
        ("attention?layer=0&head=-5&position=0", "no head -5"),
        ("values?name=blocks.1.residual&position=99", "no token 99"),
        ("walk/scores?layer=0&head=0&position=-99", "no token -99"),
        ("explain?name=blocks.1.residual&position=0&column=48", "no column 48"),
        ("neuron?layer=0&neuron=192", "no neuron 192"),
        ("lens?first=99", "no token 99"),
        ("saliency?target=99", "token 99"),
        ("looking?position=99&key=0", "no token 99"),
        ("predict?position=99", "no token 99"),
    ],
)
def test_numbers_out_of_range_are_refused_with_the_range(client, trace, asked, said):
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/{asked}")
    assert 400 <= answer.status_code < 500 and said in answer.json()["error"]["what"]


def test_the_same_question_gives_the_same_id_and_another_text_another(trace, explorer):
    first = trace(TEXT)["id"]
    assert trace(TEXT)["id"] == first
    assert trace(TEXT + ".")["id"] != first
    assert len(explorer.runs) == 2


def test_tokens_picked_after_the_text_are_taken_as_they_are(trace, tiny_lm):
    found = trace("Once", more=[10, 20])
    assert [token["id"] for token in found["tokens"]] == [*tiny_lm.ids("Once"), 10, 20]


def test_nothing_is_read_as_the_end_token(trace, tiny_lm):
    assert [token["id"] for token in trace("")["tokens"]] == [tiny_lm.config.end]


def test_predictions_are_those_of_the_model(client, trace, tiny_lm):
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/predict").json()
    best = tiny_lm.predict(TEXT, k=10)
    assert [token["id"] for token in answer["tokens"]] == [one.id for one in best]
    assert answer["own"][:10] == pytest.approx([one.probability for one in best], rel=1e-5)
    assert answer["chance"] == answer["own"] and answer["possible"] == 320


def test_settings_change_the_chances_as_sampling_does(client, trace, tiny_lm):
    asked = {"temperature": 0.7, "top_k": 7, "top_p": 0.8, "position": 3}
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/predict", params=asked).json()
    wanted = probabilities(tiny_lm.logits(TEXT)[3].numpy(), Sampling(temperature=0.7, top_k=7, top_p=0.8))
    ids = [token["id"] for token in answer["tokens"]]
    assert answer["chance"][:10] == pytest.approx(wanted[ids].tolist(), rel=1e-5)
    assert answer["possible"] == int((wanted > 0).sum()) < 8


def test_a_die_draws_only_what_can_be_chosen(client, trace):
    key = trace(TEXT)["id"]
    for dice in (0, 0.3, 0.6, 0.999999):
        answer = client.get(f"/api/traces/{key}/predict", params={"top_k": 3, "dice": dice}).json()
        assert answer["drawn"] in answer["tokens"][:3]


@pytest.mark.parametrize("stage", ["scores", "masked", "weights"])
def test_a_head_arrives_number_by_number(client, trace, tiny_lm, stage):
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/attention/{stage}", params={"layer": 1, "head": 2})
    assert answer.headers["X-Type"] == "float32"
    shape = [int(size) for size in answer.headers["X-Shape"].split(",")]
    found = np.frombuffer(answer.content, dtype="<f4").reshape(shape)
    wanted = tiny_lm.trace(TEXT)[f"blocks.1.attention.{stage}"][2].numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_large_tables_travel_as_float16(tiny_lm, monkeypatch, client, trace):
    monkeypatch.setattr("cutaway.serve.arrays.EXACT", 4)
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/attention/weights", params={"layer": 0, "head": 0})
    assert answer.headers["X-Type"] == "float16"
    size = len(tiny_lm.ids(TEXT))
    rows = np.frombuffer(answer.content, dtype="<f2").reshape(size, size).astype(np.float32).sum(axis=1)
    np.testing.assert_allclose(rows, 1, atol=2e-3)


def test_json_views_are_exactly_those_of_inspect(client, trace, tiny_lm):
    key, whole = trace(TEXT)["id"], run(tiny_lm, TEXT)

    def ask(view: str, **query: object) -> object:
        answer = client.get(f"/api/traces/{key}/{view}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert ask("heads", picture=16) == heads(whole, picture=16).to_dict()
    assert ask("heads", layer=1, picture=16) == heads(whole, [1], 16).to_dict()
    assert ask("attention", layer=0, head=3, position=5) == attention(whole, 0, 3, 5).to_dict(
        parts=("scores", "masked", "weights")
    )
    assert ask("lens", first=2, count=4, k=3, watch=[5, 6]) == lens(whole, [2, 3, 4, 5], 3, watch=(5, 6)).to_dict()
    name = "blocks.2.attention.queries"
    assert ask("values", name=name, position=1, head=0) == values(whole, name, 1, 0).to_dict()


def test_words_and_ids_become_tokens(client, tiny_lm):
    answer = client.post("/api/tokens", json={"model": "tiny", "text": " fox", "ids": [255]}).json()
    assert [token["id"] for token in answer] == [*tiny_lm.ids(" fox"), 255]


def test_a_text_too_long_is_refused_with_its_numbers(client):
    answer = client.post("/api/traces", json={"model": "tiny", "text": "Zq " * 60})
    error = answer.json()["error"]
    assert answer.status_code == 422 and error["code"] == "too_long"
    assert error["values"]["context"] == 48 and error["values"]["tokens"] > 48
    assert "Shorten" in error["remedy"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/traces/0123456789abcdef/predict", 404, "forgotten"),
        ("/api/nothing", 404, "missing"),
        ("/api/traces/{key}/attention/weights?layer=3&head=0", 422, "no_layer"),
        ("/api/traces/{key}/attention/weights?layer=0&head=4", 422, "no_head"),
        ("/api/traces/{key}/attention/nothing?layer=0&head=0", 422, "mistake"),
        ("/api/traces/{key}/predict?position=99", 422, "no_token"),
        ("/api/traces/{key}/predict?temperature=-1", 422, "mistake"),
        ("/api/traces/{key}/predict?top_p=7", 422, "mistake"),
        ("/api/traces/{key}/lens?watch=4000", 422, "mistake"),
        ("/api/traces/{key}/lens?count=999", 422, "mistake"),
        ("/api/traces/{key}/values?name=blocks.9.residual", 422, "mistake"),
    ],
)
def test_mistakes_are_said_as_json(client, trace, path, status, code):
    answer = client.get(path.format(key=trace("Once upon")["id"]))
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code and error["what"].endswith(".")


def test_a_bug_is_called_a_bug(client, trace, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("cutaway.inspect.next.predict", broken)
    answer = client.get(f"/api/traces/{trace('Once')['id']}/predict")
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "bug"


def test_a_model_asleep_is_named_so(client):
    answer = client.post("/api/traces", json={"model": "builtin", "text": "Once"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "asleep")


def test_only_the_last_runs_are_remembered_and_never_none(trace, explorer, monkeypatch):
    monkeypatch.setattr(remembering, "RUNS", 2)
    first = trace("Once")["id"]
    trace("Once upon"), trace("Once upon a")
    assert len(explorer.runs) == 2 and first not in explorer.runs
    monkeypatch.setattr(remembering, "MEMORY", 0)
    last = trace("Once upon a time")["id"]
    assert list(explorer.runs) == [last]


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": ""}]
)
def test_pages_from_elsewhere_are_refused(client, headers):
    assert client.get("/api/models", headers=headers).status_code == 403
    assert client.post("/api/models", json={"name": "builtin"}, headers=headers).status_code == 403


def test_its_own_page_is_answered(client):
    assert client.get("/api/health", headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200


def test_the_page_and_its_files_come_from_here_alone(client):
    page = client.get("/")
    assert page.status_code == 200 and 'id="app"' in page.text
    assert "http://" not in page.text.replace("http://www.w3.org", "") and "https://" not in page.text
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert client.get("/assets/index.js").status_code == 200
