"""A tag for each word, and where an answer stands: arrays by hand, transformers' folders, the one loop, scores."""

from __future__ import annotations

import json

import pytest
import torch

import cutaway
from cutaway import cli, train
from cutaway.errors import CutawayError
from cutaway.evaluate.run import evaluate
from cutaway.tasks import LeftOut, Questions, Tagging, load_task
from cutaway.tasks.marks import entities
from cutaway.tasks.scores import exact_and_f1

TAGS = ("O", "B-ANIMAL", "I-ANIMAL")
TAGGED = [
    {"words": "the little fox sat on the mat", "tags": "O B-ANIMAL I-ANIMAL O O O O"},
    {"words": "the robots obey a cat", "tags": "O O O O B-ANIMAL"},
    {"words": "a little cat sat", "tags": "O B-ANIMAL I-ANIMAL O"},
    {"words": "the robot must obey", "tags": "O O O O"},
]
ASKED = [
    {"question": "the fox ?", "context": "the little fox sat . the robot obeyed", "answer": "sat"},
    {"question": "the robot ?", "context": "the little fox sat . the robot obeyed", "answer": "obeyed"},
    {"question": "the cat ?", "context": "the cat obeyed . the fox sat", "answer": "obeyed"},
    {"question": "the fox ?", "context": "the cat obeyed . the fox sat", "answer": "sat"},
]


@pytest.fixture(scope="module")
def folder(bert_lm, tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "bert"
    bert_lm.save(made)
    return made


def spelled(tokenizer, ids):
    return " ".join(tokenizer.spelling(token) for token in ids)


def test_a_word_is_tagged_at_its_first_piece_and_what_does_not_fit_is_cut(bert_lm):
    tokenizer, task = bert_lm.tokenizer, Tagging(TAGS)
    record = {"words": ["Robots", "obey", "cat"], "tags": ["O", "O", "B-ANIMAL"]}
    [one] = task.examples(record, tokenizer)
    assert spelled(tokenizer, one.ids) == "[CLS] robot ##s obey c ##a ##t [SEP]"
    assert one.arrays["targets"] == [-100, 0, -100, 0, 1, -100, -100, -100] and one.cut == 0
    [one] = Tagging(TAGS, limit=7).examples(record, tokenizer)
    assert spelled(tokenizer, one.ids) == "[CLS] robot ##s obey [SEP]" and one.cut == 3
    assert one.arrays["targets"] == [-100, 0, -100, 0, -100]
    with pytest.raises(LeftOut):
        Tagging(TAGS, limit=3).examples(record, tokenizer)
    with pytest.raises(CutawayError, match="2 words and 1 tags"):
        task.examples({"words": "a cat", "tags": "O"}, tokenizer)
    with pytest.raises(CutawayError, match=r"no tag 'B-ANIMALS'.*B-ANIMAL"):
        task.examples({"words": "cat", "tags": "B-ANIMALS"}, tokenizer)
    assert Tagging().learn_classes(TAGGED).labels == TAGS


def test_an_answer_is_found_among_the_tokens_and_a_long_context_is_read_in_windows(bert_lm):
    tokenizer = bert_lm.tokenizer
    record = {"question": "a fox ?", "context": "The robots  obey. A little fox sat!", "answer": "little fox"}
    [one] = Questions().examples(record, tokenizer)
    assert spelled(tokenizer, one.ids).startswith("[CLS] a fox ? [SEP] the robot ##s obey . a little fox sat ! [SEP]")
    first, last = one.arrays["span"]
    assert spelled(tokenizer, one.ids[first : last + 1]) == "little fox"
    windows = Questions(limit=14).examples(record, tokenizer)
    assert len(windows) == 2 and all(len(window.ids) <= 14 for window in windows)
    spans = [window.arrays["span"] for window in windows]
    assert [spelled(tokenizer, one.ids[a : b + 1]) for one, (a, b) in zip(windows, spans, strict=True)] == [
        "little fox", "little fox",
    ]  # fmt: skip
    early = {**record, "answer": "The robots"}
    assert [one.arrays["span"] == [0, 0] for one in Questions(limit=14).examples(early, tokenizer)] == [False, True]
    second = {"question": "a ?", "context": "fox, fox", "answer": ["fox"], "start": 5}
    [one] = Questions().examples(second, tokenizer)
    assert one.arrays["span"] == [6, 6]
    for wrong in ({"answer": "Fox"}, {"start": 1}):
        with pytest.raises(CutawayError, match="letter by letter"):
            Questions().examples({**second, **wrong} | {}, tokenizer)
    none = {"question": "a ?", "context": "fox", "answer": ""}
    assert Questions().learn_classes([none]).unanswerable and not Questions().learn_classes([second]).unanswerable
    with pytest.raises(LeftOut, match="question"):
        Questions(limit=13).examples({**record, "question": "a fox sat on the mat . "}, tokenizer)


def theirs(kind, end, tmp_path, tokenizer, **more):
    transformers = pytest.importorskip("transformers")
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    names = names if kind == "Bert" else ("dim", "n_layers", "n_heads", "hidden_dim")
    size = {"vocab_size": len(tokenizer), "max_position_embeddings": 32}
    torch.manual_seed(3)
    config = getattr(transformers, f"{kind}Config")(**dict(zip(names, (24, 2, 3, 40), strict=True)), **size, **more)
    model = getattr(transformers, f"{kind}{end}")(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    return model


@pytest.mark.parametrize("kind", ["Bert", "DistilBert"])
def test_a_tagger_that_transformers_wrote_says_the_same(kind, bert_lm, tmp_path):
    model = theirs(kind, "ForTokenClassification", tmp_path, bert_lm.tokenizer, id2label=dict(enumerate(TAGS)))
    task, lm = load_task(tmp_path), cutaway.load(tmp_path)
    assert task == Tagging(TAGS)
    records = [{"words": one["words"]} for one in TAGGED]
    for record, one in zip(records, task.answer(lm, records), strict=True):
        ids, starts, _ = task.form(record["words"].split(), bert_lm.tokenizer)
        with torch.no_grad():
            wanted = model(torch.tensor([ids])).logits[0, starts].softmax(-1).max(-1)
        assert one.tags == tuple(TAGS[number] for number in wanted.indices)
        assert one.probabilities == pytest.approx(wanted.values.tolist(), abs=1e-4)


@pytest.mark.parametrize("kind", ["Bert", "DistilBert"])
def test_a_reader_that_transformers_wrote_finds_the_same_answer(kind, bert_lm, tmp_path):
    model = theirs(kind, "ForQuestionAnswering", tmp_path, bert_lm.tokenizer)
    task, lm = load_task(tmp_path), cutaway.load(tmp_path)
    assert task == Questions()
    for record, one in zip(ASKED, task.answer(lm, ASKED), strict=True):
        [window] = task.windows(record, bert_lm.tokenizer)
        ids = torch.tensor([window.ids])
        more = {"token_type_ids": lm.model.segments_of(ids)} if kind == "Bert" else {}
        with torch.no_grad():
            found = model(ids, **more)
        best = max(
            (float(found.start_logits[0, a] + found.end_logits[0, b]), a, b)
            for a in range(window.first, len(window.ids) - 1)
            for b in range(a, len(window.ids) - 1)
        )
        first, last = window.offsets[best[1] - window.first][0], window.offsets[best[2] - window.first][1]
        assert (one.start, one.end, one.text) == (first, last, record["context"][first:last])


SETTINGS = {"batch": 8, "learning_rate": 4e-3, "held_out": 0}


def test_the_one_loop_teaches_tags_and_transformers_reads_the_folder(folder, tmp_path, capsys):
    out = tmp_path / "out"
    train.run(
        out, records=TAGGED * 8, task="tagging", from_=folder, steps=40, cache=str(tmp_path / "cache"), **SETTINGS
    )
    lm, task = cutaway.load(out), load_task(out)
    assert task.labels == TAGS and lm.config.head == "tags"
    assert [one.tags for one in task.answer(lm, TAGGED)] == [tuple(one["tags"].split()) for one in TAGGED]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(one) + "\n" for one in TAGGED))
    measured = evaluate(lm, tmp_path / "test.jsonl", task).result
    assert (measured.name, measured.value, measured.parts["words right"]) == ("F1", 100, 100)
    model = pytest.importorskip("transformers").AutoModelForTokenClassification.from_pretrained(out).eval()
    assert model.config.id2label == dict(enumerate(TAGS))
    ids, *_ = task.form(TAGGED[0]["words"].split(), lm.tokenizer)
    with torch.no_grad():
        assert torch.allclose(model(torch.tensor([ids])).logits, lm.model(torch.tensor([ids])), atol=1e-4)
    assert cli.run(["classify", "A little fox sat", "--model", str(out)]) == 0
    assert capsys.readouterr().out == "ANIMAL: little fox\n"
    assert cli.run(["classify", "A little fox sat", "--model", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tags"] == ["O", "B-ANIMAL", "I-ANIMAL", "O"]


def test_the_one_loop_teaches_to_answer_and_transformers_reads_the_folder(folder, tmp_path, capsys):
    given = {"records": ASKED * 8, "task": "question answering", "from_": folder, "cache": str(tmp_path / "cache")}
    train.run(tmp_path / "whole", steps=60, **given, **SETTINGS)
    lm, task = cutaway.load(tmp_path / "whole"), load_task(tmp_path / "whole")
    found = task.answer(lm, ASKED)
    assert [one.text for one in found] == [one["answer"] for one in ASKED]
    assert task.score(found, ASKED).parts == {"exact match": 100}
    assert cli.run(["classify", "the robot ?", ASKED[0]["context"], "--model", str(tmp_path / "whole")]) == 0
    assert capsys.readouterr().out.startswith("obeyed\t")
    assert cli.run(["classify", "the robot ?", "--model", str(tmp_path / "whole")]) == 2
    assert "a question and its context" in capsys.readouterr().err
    model = pytest.importorskip("transformers").AutoModelForQuestionAnswering.from_pretrained(tmp_path / "whole")
    ids = torch.tensor([task.windows(ASKED[0], lm.tokenizer)[0].ids])
    with torch.no_grad():
        logits = model.eval()(ids, token_type_ids=lm.model.segments_of(ids))
    assert torch.allclose(torch.stack([logits.start_logits, logits.end_logits], -1), lm.model(ids), atol=1e-4)


def test_what_has_no_answer_is_told_so(folder, tmp_path):
    records = [ASKED[0], {"question": "a cat ?", "context": ASKED[0]["context"], "answer": ""}] * 8
    train.run(
        tmp_path / "out", records=records, task="question answering", from_=folder, steps=80,
        cache=str(tmp_path / "cache"), **SETTINGS,
    )  # fmt: skip
    lm, task = cutaway.load(tmp_path / "out"), load_task(tmp_path / "out")
    assert task.unanswerable
    [none, some] = task.answer(lm, [records[1], records[0]])
    assert (none.text, none.start) == ("", None) and some.text == "sat"


def test_a_model_without_the_head_is_refused(bert_lm):
    with pytest.raises(CutawayError, match="no head for tagging"):
        Tagging(TAGS).answer(bert_lm, [{"words": "a fox"}])


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ("O B-PER I-PER O", [("PER", 1, 2)]),
        ("B-PER B-PER I-LOC", [("PER", 0, 0), ("PER", 1, 1), ("LOC", 2, 2)]),
        ("I-PER I-PER O I-PER", [("PER", 0, 1), ("PER", 3, 3)]),
        ("S-LOC B-PER I-PER E-PER", [("LOC", 0, 0), ("PER", 1, 3)]),
        ("NOUN VERB", []),
    ],
)
def test_entities_are_counted_as_conll_does(tags, wanted):
    assert entities(tags.split()) == wanted


def test_answers_are_scored_as_squad_does():
    score = exact_and_f1(["the Fox!", "a red fox", "", "dog"], [["fox"], ["red cat", "fox red hen"], [""], ["", "cat"]])
    assert score.parts["exact match"] == 50
    assert score.value == pytest.approx(100 * (1 + 2 * 2 / 5 + 1 + 0) / 4)


def test_entity_f1_by_hand():
    from cutaway.tasks.marked import Tagged

    said = [Tagged(("a", "b", "c"), ("B-PER", "O", "B-LOC"), (1.0,) * 3, ()), Tagged(("d",), (), (), (), cut=1)]
    truth = [{"words": "a b c", "tags": "B-PER I-PER B-LOC"}, {"words": "d", "tags": "B-PER"}]
    score = Tagging(("O", "B-PER", "I-PER", "B-LOC")).score(said, truth)
    assert score.parts["precision"] == 50 and score.parts["recall"] == pytest.approx(100 / 3)
    assert score.value == pytest.approx(40)
