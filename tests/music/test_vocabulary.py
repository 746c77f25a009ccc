"""Events as a vocabulary: names there and back, through files, and through transformers."""

from __future__ import annotations

import pytest

from cutaway.errors import CutawayError
from cutaway.music import Events
from cutaway.music.vocabulary import event_tokenizer, is_of_events
from cutaway.text.tokenizer import Tokenizer


def test_every_event_has_a_name_of_its_own_that_is_read_back():
    tokenizer, every = event_tokenizer(), list(range(388))
    assert len(tokenizer) == len(Events()) and tokenizer.end == Events.end
    assert tokenizer.encode(tokenizer.decode(every)) == every
    assert tokenizer.decode([375, 60, 305, 188]) == "<velocity-20><on-60><wait-500><off-60>"
    with pytest.raises(CutawayError, match="events of a performance"):
        tokenizer.encode("hello")


def test_it_comes_back_from_its_files_which_are_the_same_again(tmp_path):
    event_tokenizer().save(tmp_path / "one")
    again = Tokenizer.load(tmp_path / "one")
    again.save(tmp_path / "two")
    assert is_of_events(again) and not is_of_events(Tokenizer.load("gpt2"))
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    text = "<velocity-20><on-60><wait-500><off-60>"
    transformers = pytest.importorskip("transformers")
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "one").encode(text) == again.encode(text)
