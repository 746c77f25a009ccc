"""WikiText's form undone, and its words counted."""

from __future__ import annotations

import pytest

from cutaway.evaluate.wikitext import count_words, detokenize


@pytest.mark.parametrize(
    ("spaced", "plain"),
    [
        ("a guest @-@ starring role of 1 @,@ 000 or 2 @.@ 5 . It", "a guest-starring role of 1,000 or 2.5. It"),
        ("film , television ; theatre : all ! or ? none", "film, television; theatre: all! or? none"),
        ('the " Teddy \'s Story " of ( the ) [ long ] { firm }', 'the "Teddy\'s Story" of (the) [long] {firm}'),
        ("the students ' books", "the students' books"),
        (" \n = Robert Boulter = \n \n = = Career = = \n", "\n= Robert Boulter =\n\n== Career ==\n"),
        (" = = = Plot = = = \n", " === Plot ===\n"),
        ("at 5 ° 30 ' north", "at 5°30 ' north"),
    ],
)
def test_spaces_go_where_people_write_none(spaced, plain):
    assert detokenize(spaced) == plain


def test_a_quotation_mark_lost_in_one_article_spoils_no_other():
    broken = ' = One = \n \n a lost " mark \n'
    whole = ' = Two = \n \n the " M " road \n'
    assert detokenize(broken + whole).endswith('the "M" road\n')


def test_words_are_counted_with_the_ends_of_lines():
    assert count_words(" = A = \n \n one two \n") == 8


def test_the_published_numbers_of_words_are_found(shared_data):
    for file, words in {
        "wikitext2_raw/wiki.test.raw": 245_569,
        "wikitext103/wiki.test.tokens": 245_569,
        "wikitext103/wiki.valid.tokens": 217_646,
    }.items():
        assert count_words((shared_data / file).read_text()) == words


def test_the_rules_are_those_of_lm_eval(shared_data):
    """Article by article, as lm-eval reads them: but for the space before a title, the very same text."""
    preprocess = pytest.importorskip("lm_eval.tasks.wikitext.preprocess_wikitext", reason="lm-eval is not installed")
    from cutaway.evaluate.wikitext import ARTICLE

    text = (shared_data / "wikitext2_raw/wiki.test.raw").read_text()
    pages = ARTICLE.split(text)
    assert len(pages) == 63
    theirs = [preprocess.wikitext_detokenizer({"page": page}).strip() for page in pages]
    ours = [page.strip() for page in map(detokenize, pages)]
    assert ours == theirs
    assert " ".join(detokenize(text).split()) == " ".join(" ".join(theirs).split())
