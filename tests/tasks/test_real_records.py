"""The tasks on real data, where it is at hand: every record becomes examples that read as they should."""

from __future__ import annotations

from itertools import islice

import pytest

from cutaway.tasks import Classification, Translation
from cutaway.text.tokenizer import Tokenizer
from cutaway.train.data.records import records


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load("gpt2").with_specials(["<|to-french|>", "<|to-english|>", "<|start|>", "<|extract|>"])


def test_captions_become_pairs_that_decode_to_both_languages(shared_data, tokenizer):
    task = Translation("<|to-french|>", "<|to-english|>", limit=128)
    files = [shared_data / "multi30k/val.en.gz", shared_data / "multi30k/val.fr.gz"]
    for record, _ in islice(records(files, fields=task.fields), 200):
        there, back = task.examples(record, tokenizer)
        assert tokenizer.decode(there.ids[: there.arrays["answer"][0]]) == record["source"].strip() + "<|to-french|>"
        assert tokenizer.decode(there.ids[there.arrays["answer"][0] :]) == record["target"].strip() + "<|endoftext|>"
        assert (
            tokenizer.decode(back.ids)
            == f"{record['target'].strip()}<|to-english|>{record['source'].strip()}<|endoftext|>"
        )


def test_short_sentences_become_pairs(shared_data, tokenizer):
    task = Translation("<|to-french|>")
    path = shared_data / "tatoeba_fra_eng_short/fra.txt"
    rows = [record for record, _ in records([path], columns={"source": 0, "target": 1}, fields=task.fields)]
    assert len(rows) == 18_066
    assert all(len(task.examples(record, tokenizer)) == 1 for record in rows[::100])


def test_sentiment_becomes_two_classes_with_names_or_learned(shared_data, tokenizer):
    task = Classification(("negative", "positive"))
    columns = {"text": 0, "label": 1}
    rows = [record for record, _ in records([shared_data / "sst2/dev.tsv"], columns=columns, fields=task.fields)]
    assert len(rows) == 872
    labels = [task.examples(record, tokenizer)[0].arrays["label"][0] for record in rows]
    assert sorted({labels.count(0), labels.count(1)}) == [428, 444]
    assert Classification().learn_classes(rows).labels == ("0", "1")
