"""The endpoints of Tasks say what the tasks themselves say, and where the model looked."""

from __future__ import annotations

import pytest

from cutaway.checkpoint.locate import DATA
from cutaway.inspect.between import between
from cutaway.inspect.runs import run

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
    from cutaway.loading import load
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


@pytest.fixture(scope="session")
def judges(tiny_lm, tmp_path_factory) -> dict[str, str]:
    """Untrained judges of several texts, and a translator that must be told the direction, each in a folder."""
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.tasks import Choice, Entailment, Similarity, Translation, save_task
    from cutaway.tasks.head import Classifier, write_classifier

    home = tmp_path_factory.mktemp("judges")
    tokenizer = tiny_lm.tokenizer.with_specials(["<|start|>", "<|delimiter|>", "<|extract|>", "<|there|>", "<|back|>"])

    def gpt() -> GPT:
        torch.manual_seed(4)
        shape = {"context": 48, "width": 48, "layers": 2, "heads": 4, "end_token": tokenizer.end}
        return GPT(Config(vocabulary=len(tokenizer), **shape))

    tasks = [Entailment(("yes", "no", "maybe")), Similarity(("no", "yes")), Choice(3)]
    for task in tasks:
        write_classifier(Classifier(gpt(), task.outputs), tokenizer, task, home / task.name)
    LanguageModel(gpt(), tokenizer, "two ways").save(home / "translation")
    save_task(Translation("<|there|>", "<|back|>"), home / "translation")
    return {name: str(home / name) for name in ("entailment", "similarity", "choice", "translation")}


@pytest.fixture
def ask(explorer, client, judges):
    explorer.models.folders = list(judges.values())

    def ask(name: str, **more):
        return client.post("/api/tasks/answers", json={"model": judges[name], "text": "the fox runs", **more})

    return ask


@pytest.mark.parametrize(
    ("name", "others", "record", "forms"),
    [
        ("entailment", ["on the hill"], {"premise": "the fox runs", "hypothesis": "on the hill"}, 1),
        ("similarity", ["a hill"], {"first": "the fox runs", "second": "a hill"}, 2),
        ("choice", ["up", "on", "to a hill"], {"context": "the fox runs", "choices": ["up", "on", "to a hill"]}, 3),
    ],
)
def test_several_texts_are_judged_together_and_each_reading_can_be_looked_into(
    ask, client, judges, name, others, record, forms
):
    from cutaway.tasks.answer import classify, load_classifier

    listed = {one["name"]: one for one in client.get("/api/tasks").json()}
    assert listed[judges[name]] == {
        "name": judges[name], "task": name, "there": True, "others": len(others), "two_way": False,
    }  # fmt: skip
    judge = load_classifier(judges[name])
    wanted = next(classify(judge, [record]))
    read = judge.task.forms(record, judge.tokenizer)
    found = ask(name, others=others).json()
    assert (found["label"], found["forms"]) == (wanted.label, forms)
    assert dict(found["probabilities"]) == pytest.approx(wanted.probabilities, rel=1e-4)
    assert found["form"] == (wanted.number if name == "choice" else 0)
    for form in range(forms):
        seen = ask(name, others=others, form=form).json()
        assert [one["id"] for one in seen["tokens"]] == read[form].ids
        source = judge.tokenizer.decode([seen["tokens"][at]["id"] for at in seen["source"]])
        assert "<|" not in source and "the fox runs" in source
        table = client.get(f"/api/tasks/answers/{seen['id']}/between", params={"layer": 1}).json()
        assert len(table["weights"][0]) == len(seen["source"])


def test_a_text_that_is_missing_is_said(ask):
    answer = ask("choice", others=["up", " "])
    assert answer.status_code == 422 and "2 of them" in answer.json()["error"]["what"]


def test_a_translator_of_two_ways_is_told_which(ask, client, judges):
    assert {one["name"]: one["two_way"] for one in client.get("/api/tasks").json()}[judges["translation"]]
    marks = [{one["text"] for one in ask("translation", back=back).json()["tokens"]} for back in (False, True)]
    assert "<|there|>" in marks[0] - marks[1] and "<|back|>" in marks[1] - marks[0]
