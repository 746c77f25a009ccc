"""The classifier: the same numbers as transformers' GPT2ForSequenceClassification, and folders both can read."""

from __future__ import annotations

import json
import weakref

import pytest
import torch
import torch.nn.functional as F

import cutaway
from cutaway.checkpoint import huggingface
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.tasks import Choice, Classification, Similarity, load_task
from cutaway.tasks.head import Classifier, by_record, label_loss, read_classifier, write_classifier

TASK = Classification(("no", "perhaps", "yes"))
ROWS = [[5, 7, 9, 11, 250], [3, 250], [8, 1, 250]]


def small(tied: bool = True, vocabulary: int = 300) -> GPT:
    torch.manual_seed(3)
    model = GPT(Config(vocabulary=vocabulary, context=32, width=32, layers=2, heads=4, tied=tied, end_token=256)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def padded(rows: list[list[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    length = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    return ids, torch.tensor([len(row) - 1 for row in rows])


@pytest.mark.parametrize("tied", [True, False])
def test_a_folder_written_here_gives_the_same_scores_in_transformers(tmp_path, tied):
    from transformers import AutoModelForSequenceClassification

    classifier = Classifier(small(tied), TASK.outputs).eval()
    write_classifier(classifier, None, TASK, tmp_path / "judge")
    there = AutoModelForSequenceClassification.from_pretrained(tmp_path / "judge").eval()
    assert there.config.id2label == {0: "no", 1: "perhaps", 2: "yes"}
    assert there.config.label2id["yes"] == 2
    ids, last = padded(ROWS, pad=classifier.gpt.config.end)
    with torch.no_grad():
        ours, theirs = classifier(ids, last), there(ids).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert load_task(tmp_path / "judge") == TASK


@pytest.mark.parametrize("tied", [True, False])
def test_a_classifier_is_the_same_after_writing_and_reading(tmp_path, tied):
    classifier = Classifier(small(tied), TASK.outputs).eval()
    write_classifier(classifier, None, TASK, tmp_path)
    again = read_classifier(tmp_path)
    assert not again.training
    for (name, one), (_, other) in zip(classifier.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(one, other), name
    assert again.gpt.config == classifier.gpt.config


def test_a_classifier_of_transformers_is_read_here(tmp_path):
    from transformers import GPT2Config, GPT2ForSequenceClassification

    torch.manual_seed(0)
    there = GPT2ForSequenceClassification(
        GPT2Config(vocab_size=60, n_positions=16, n_embd=16, n_layer=1, n_head=2, num_labels=4, pad_token_id=59)
    ).eval()
    there.save_pretrained(tmp_path)
    ids, last = padded([[1, 2, 3], [4, 5]], pad=59)
    with torch.no_grad():
        ours, theirs = read_classifier(tmp_path)(ids, last), there(ids).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_padding_on_the_right_changes_nothing():
    classifier = Classifier(small(), 3).eval()
    ids, last = padded(ROWS, pad=0)
    with torch.no_grad():
        together = classifier(ids, last)
        alone = torch.cat([classifier(*padded([row], pad=0)) for row in ROWS])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)


def test_similarity_scores_the_sum_of_both_vectors():
    task = Similarity(("no", "yes"))
    classifier = Classifier(small(), task.outputs).eval()
    ids, last = padded([[5, 6, 250], [6, 5, 250], [1, 250], [2, 250]], pad=0)
    with torch.no_grad():
        vectors = classifier.gpt.read(ids)[torch.arange(4), last]
        expected = classifier.score(vectors[0::2] + vectors[1::2])
        torch.testing.assert_close(by_record(classifier(ids, last), task), expected, rtol=1e-4, atol=1e-5)


def test_a_choice_is_a_softmax_over_the_choices():
    task = Choice(3)
    scores = torch.randn(6, 1)
    records = by_record(scores, task)
    assert torch.equal(records, scores.view(2, 3))
    labels = torch.tensor([2, 2, 2, 0, 0, 0])
    torch.testing.assert_close(
        label_loss(scores, labels, task).sum / 2, F.cross_entropy(scores.view(2, 3), torch.tensor([2, 0]))
    )


def test_the_head_and_the_model_below_it_learn(tokenizer):
    torch.manual_seed(0)
    classifier = Classifier(small(vocabulary=len(tokenizer)), TASK.outputs).train()
    texts = {"the fox runs": "no", "the dog sleeps": "perhaps", "the little sun": "yes"}
    examples = [TASK.examples({"text": text, "label": label}, tokenizer)[0] for text, label in texts.items()]
    ids, last = padded([example.ids for example in examples], pad=0)
    labels = torch.tensor([example.arrays["label"][0] for example in examples])
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=3e-3)
    for _ in range(30):
        loss = label_loss(classifier(ids, last), labels, TASK).sum / len(labels)
        optimizer.zero_grad()
        loss.backward()
        assert all(parameter.grad is not None for parameter in classifier.parameters())  # nothing is left over for DDP
        optimizer.step()
    assert loss.item() < 0.1


def test_a_language_model_is_not_taken_for_a_classifier(tmp_path):
    huggingface.write_model(small(), None, tmp_path, None, 10**9, {})
    with pytest.raises(CutawayError, match=r"not a classifier: it has no score\.weight"):
        read_classifier(tmp_path)


def test_a_classifier_is_not_taken_for_a_language_model(tmp_path):
    write_classifier(Classifier(small(), 3), None, TASK, tmp_path / "judge")
    with pytest.raises(
        CutawayError, match=r"judge holds a classifier.*cutaway classify --model .*judge.*load_classifier"
    ):
        cutaway.load(tmp_path / "judge")


def test_a_value_too_large_for_the_kind_of_number_asked_for_is_refused(tmp_path):
    classifier = Classifier(small(), 3)
    with torch.no_grad():
        classifier.score.weight[0, 0] = 1e6
    with pytest.raises(CutawayError, match=r"score\.weight cannot be written as F16: it has values too large for it"):
        write_classifier(classifier, None, TASK, tmp_path / "judge", dtype=torch.float16)
    assert not (tmp_path / "judge").exists()


def test_the_weights_are_written_one_by_one_with_no_second_copy_of_them_all(tmp_path, monkeypatch):
    """The library's writer would hold a copy of all tensors; here each copy goes before the next is made."""
    copies: weakref.WeakSet[torch.Tensor] = weakref.WeakSet()
    most = 0

    def watched(tensor: torch.Tensor, *args: object) -> torch.Tensor:
        nonlocal most
        copy = plain(tensor, *args)
        copies.add(copy)
        most = max(most, len(copies))
        return copy

    plain = torch.Tensor.to
    classifier = Classifier(small(), 3)
    monkeypatch.setattr(torch.Tensor, "to", watched)
    write_classifier(classifier, None, TASK, tmp_path, dtype=torch.float16)
    assert 1 <= most <= 2


def test_weights_that_are_no_numbers_are_neither_written_nor_read(tmp_path):
    classifier = Classifier(small(), 3)
    write_classifier(classifier, None, TASK, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with torch.no_grad():
        classifier.score.weight[0, 0] = torch.nan
    with pytest.raises(CutawayError, match=r"score\.weight cannot be written as F32: it has NaN"):
        write_classifier(classifier, None, TASK, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_head_of_another_width_is_refused(tmp_path):
    write_classifier(Classifier(small(), 3), None, TASK, tmp_path)
    from safetensors.torch import load_file, save_file

    tensors = load_file(tmp_path / "model.safetensors")
    save_file({**tensors, "score.weight": torch.zeros(3, 31)}, tmp_path / "model.safetensors")
    with pytest.raises(CutawayError, match=r"shape \[3, 31\], and the width is 32"):
        read_classifier(tmp_path)


def test_bfloat16_is_written_as_asked(tmp_path):
    write_classifier(Classifier(small(), 3), None, TASK, tmp_path, dtype=torch.bfloat16)
    assert json.loads((tmp_path / "config.json").read_text())["torch_dtype"] == "bfloat16"
    assert read_classifier(tmp_path, dtype=torch.bfloat16).score.weight.dtype == torch.bfloat16
    assert read_classifier(tmp_path).score.weight.dtype == torch.float32
