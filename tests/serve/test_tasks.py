"""The endpoints of Tasks say what the tasks themselves say, and where the model looked."""

from __future__ import annotations

import pytest

from cutaway.checkpoint.locate import DATA
from cutaway.inspect.between import between
from cutaway.inspect.run import run

needs = {
    name: pytest.mark.skipif(not (DATA / name / "task.json").is_file(), reason=f"the {name} does not ship here")
    for name in ("translator", "summarizer", "classifier")
}
TEXT = "A man in a blue shirt is standing on a ladder."


def test_every_shipped_model_is_listed_there_or_not(client):
    listed = {one["name"]: one for one in client.get("/api/tasks").json()}
    for name in needs:
        assert listed[name]["there"] == (DATA / name / "task.json").is_file()


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs[name]) for name in ("translator", "summarizer")])
def test_a_written_answer_is_the_verbs_and_its_attention_that_of_a_run(client, name):
    from cutaway.language_model import load
    from cutaway.tasks import load_task
    from cutaway.tasks.answer import summarize, translate

    lm, ask = load(name), {"translator": translate, "summarizer": summarize}[name]
    wanted = next(ask(lm, load_task(DATA / name), [TEXT], beams=2))
    found = client.post("/api/tasks/answers", json={"model": name, "text": TEXT, "beams": 2}).json()
    assert (found["text"], found["whole"], found["cut"]) == (wanted.text, wanted.whole, wanted.cut)
    ids = [one["id"] for one in found["tokens"]]
    assert lm.tokenizer.decode([ids[at] for at in found["answer"]]).strip() == wanted.text
    assert lm.tokenizer.decode([ids[at] for at in found["source"]]) == TEXT
    for head in (None, 1):
        asked = {"layer": 1} | ({} if head is None else {"head": head})
        seen = client.get(f"/api/tasks/answers/{found['id']}/between", params=asked).json()
        mine = between(run(lm, ids), found["rows"], found["source"], 1, head).to_dict()
        assert seen == {"id": found["id"], **mine}
        for row, rest in zip(seen["weights"], seen["rest"], strict=True):
            assert sum(row) + rest == pytest.approx(1, abs=1e-4)


@needs["classifier"]
def test_a_judgement_is_the_classifiers(client):
    from cutaway.tasks.answer import classify, load_classifier

    wanted = next(classify(load_classifier("classifier"), ["a wonderful film"]))
    found = client.post("/api/tasks/answers", json={"model": "classifier", "text": "a wonderful film"}).json()
    assert found["label"] == wanted.label
    assert dict(found["probabilities"]) == pytest.approx(wanted.probabilities, rel=1e-4)
    seen = client.get(f"/api/tasks/answers/{found['id']}/between", params={"layer": 0}).json()
    assert len(seen["weights"]) == 1 and len(seen["weights"][0]) == len(found["source"])


def test_mistakes_are_refused_with_words(client):
    answer = client.post("/api/tasks/answers", json={"model": "nobody", "text": TEXT})
    assert 400 <= answer.status_code < 500 and "nobody" in answer.json()["error"]["what"]
    answer = client.get("/api/tasks/answers/0123/between")
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "forgotten"
