"""Translating, summarising and classifying with models that have learned a handful of answers by heart."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.tasks import Choice, Classification, Language, Summary, Translation, save_task
from cutaway.tasks.answer import TextClassifier, classify, load_classifier, summarize, trained_for, translate
from cutaway.tasks.head import Classifier, label_loss, write_classifier

PAIRS = {"the fox runs": "le renard court", "the dog sleeps in the sun": "le chien dort", "the hill": "la colline"}
STORIES = {"the fox runs over the hill": "fox runs", "the little dog sleeps in the sun": "dog sleeps"}
MOODS = {"the fox runs": "wild", "the dog sleeps": "calm", "over the hill": "wild", "in the sun": "calm"}


def gpt(tokenizer, context: int = 48) -> GPT:
    torch.manual_seed(1)
    return GPT(Config(vocabulary=len(tokenizer), context=context, width=48, layers=2, heads=4, end_token=tokenizer.end))


def padded(rows):
    length = max(map(len, rows))
    return torch.tensor([row + [0] * (length - len(row)) for row in rows])


def learn(model, loss, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
    assert value.item() < 0.1
    return model


def taught(task, records, tokenizer) -> LanguageModel:
    """A model that has learned the records, from the positions that count and no others."""
    examples = [example for record in records for example in task.examples(record, tokenizer)]
    ids = padded([example.ids for example in examples])
    targets = torch.full_like(ids, -100)
    for row, example in enumerate(examples):
        targets[row, example.arrays["answer"][0] : len(example.ids)] = ids[
            row, example.arrays["answer"][0] : len(example.ids)
        ]
    model = gpt(tokenizer)
    learn(model, lambda: F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), targets[:, 1:]), steps=60)
    return LanguageModel(model, tokenizer, "taught")


@pytest.fixture(scope="module")
def translator(tokenizer):
    task = Translation(back="<|back|>")
    return taught(task, [{"source": one, "target": other} for one, other in PAIRS.items()], tokenizer), task


@pytest.fixture(scope="module")
def mood(tokenizer):
    task = Classification(("calm", "wild"))
    examples = [task.examples({"text": text, "label": label}, tokenizer)[0] for text, label in MOODS.items()]
    classifier = Classifier(gpt(tokenizer), task.outputs)
    ids, last = padded([one.ids for one in examples]), torch.tensor([len(one.ids) - 1 for one in examples])
    labels = torch.tensor([one.arrays["label"][0] for one in examples])
    learn(classifier, lambda: label_loss(classifier(ids, last), labels, task).sum / len(labels), steps=30)
    return TextClassifier(classifier, tokenizer, task, "mood")


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("batch", [1, 2, 32])
def test_translations_come_in_order_whatever_the_batch_and_the_search(translator, beams, batch):
    lm, task = translator
    answers = list(translate(lm, task, PAIRS, beams=beams, batch=batch))
    assert [(answer.source, answer.text) for answer in answers] == list(PAIRS.items())
    assert all(answer.whole and answer.cut == 0 and answer.logprob > -0.5 for answer in answers)


def test_the_same_model_translates_back(translator):
    lm, task = translator
    answers = translate(lm, task.turned(), PAIRS.values(), beams=1)
    assert [answer.text for answer in answers] == list(PAIRS)


def test_an_empty_line_stays_an_empty_line(translator):
    lm, task = translator
    answers = list(translate(lm, task, ["", "the hill", " \n"], beams=1))
    assert [answer.text for answer in answers] == ["", "la colline", ""]
    assert list(translate(lm, task, ["", ""])) and not list(translate(lm, task, []))


def test_texts_are_taken_no_earlier_than_needed(translator):
    lm, task = translator
    taken = []

    def texts():
        for text in PAIRS:
            taken.append(text)
            yield text

    answers = translate(lm, task, texts(), beams=1, batch=1)
    next(answers)
    assert len(taken) == 1


def test_a_text_too_long_to_translate_is_refused_by_its_number(translator):
    lm, task = translator
    answers = translate(lm, task, ["the hill", "the fox " * 40], beams=1, batch=1)
    assert next(answers).text == "la colline"
    with pytest.raises(CutawayError, match=r"Text 2: .*too long to be translated"):
        next(answers)


def test_an_answer_that_was_stopped_says_so(translator):
    lm, task = translator
    [answer] = translate(lm, task, ["the fox runs"], beams=1, max_tokens=2)
    assert not answer.whole
    assert PAIRS["the fox runs"].startswith(answer.text)


def test_separators_are_never_written(translator):
    lm, task = translator
    with torch.no_grad():
        wish = LanguageModel(gpt(lm.tokenizer), lm.tokenizer)
        wish.model.token_embedding.weight[lm.tokenizer.specials["<|back|>"]] += 10 * wish.model.final_norm.weight
        wish.model.final_norm.bias += 1  # a model that would write <|back|> all the time
    for beams in (1, 2):
        [answer] = translate(wish, task, ["the fox"], beams=beams, max_tokens=5)
        assert "<|" not in answer.text


def test_summaries_come_in_order_and_say_what_was_not_read(tokenizer):
    task = Summary(room=12)
    lm = taught(task, [{"article": one, "summary": other} for one, other in STORIES.items()], tokenizer)
    assert [answer.text for answer in summarize(lm, task, STORIES, beams=1)] == list(STORIES.values())
    long = "the fox runs over the hill " * 20
    [answer] = summarize(lm, task, [long])
    assert answer.cut == len(tokenizer.encode(long.strip())) - (48 - 2 - 12)


@pytest.mark.parametrize("batch", [1, 3, 32])
def test_classes_come_in_order_with_their_probabilities(mood, batch):
    judgements = list(classify(mood, MOODS, batch=batch))
    assert [one.label for one in judgements] == list(MOODS.values())
    for one in judgements:
        assert one.probability == max(one.probabilities.values()) > 0.5
        assert sum(one.probabilities.values()) == pytest.approx(1)
        assert list(one.probabilities) == ["calm", "wild"]
        assert one.label == mood.task.class_name(one.number)


def test_a_long_text_is_classified_by_its_beginning_and_says_so(mood):
    [one] = classify(mood, ["the dog sleeps " * 40])
    assert one.cut > 0


@pytest.mark.parametrize(("wrong", "message"), [("", "'text' is empty"), ({"txt": "a"}, "'text' is missing")])
def test_a_record_that_cannot_be_read_is_refused_by_its_number(mood, wrong, message):
    judgements = classify(mood, ["the fox runs", wrong], batch=1)
    next(judgements)
    with pytest.raises(CutawayError, match=f"Text 2: .*{message}"):
        next(judgements)


def test_a_choice_is_answered_by_its_number(tokenizer):
    task = Choice(2)
    chooser = TextClassifier(Classifier(gpt(tokenizer), 1), tokenizer, task)
    record = {"context": "the fox", "choices": ["runs", "sleeps"]}
    [one], [other] = classify(chooser, [record]), classify(chooser, [{**record, "choices": ["sleeps", "runs"]}])
    assert (one.number, other.number) in ((0, 1), (1, 0))
    assert one.probability == pytest.approx(other.probability, rel=1e-4)


def test_a_classifier_is_loaded_with_its_task_and_tokenizer(mood, tmp_path):
    write_classifier(mood.model, mood.tokenizer, mood.task, tmp_path)
    loaded = load_classifier(tmp_path)
    assert loaded.task == mood.task
    assert list(classify(loaded, MOODS)) == list(classify(mood, MOODS))


def test_a_model_is_refused_for_a_task_it_was_not_trained_for(translator, mood, tmp_path):
    lm, task = translator
    lm.save(tmp_path)
    with pytest.raises(CutawayError, match="trained for language, not for translation"):
        trained_for(tmp_path, Translation)
    save_task(task, tmp_path)
    assert trained_for(tmp_path, Translation) == task
    with pytest.raises(CutawayError, match="trained for translation, and has no classes"):
        load_classifier(tmp_path)
    with pytest.raises(CutawayError, match="2 scores and its task asks for 3"):
        TextClassifier(mood.model, mood.tokenizer, Classification(("a", "b", "c")))
    save_task(Language(), tmp_path)
    with pytest.raises(CutawayError, match="not for summary"):
        trained_for(tmp_path, Summary)
