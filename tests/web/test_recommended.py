"""A model whose tokens are some of GPT-2's, and that recommends settings: both ids are shown, and it writes so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def served(server) -> Iterator[Any]:
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.text.tokenizer import Tokenizer
    from cutaway.text.vocabulary import END, Vocabulary

    gpt2 = Tokenizer.load("gpt2")
    tokens = {name: place for place, (name, token) in enumerate(gpt2.vocabulary.items()) if token < 256 + 1500}
    part = Tokenizer(Vocabulary(tokens, gpt2.merges[:1500], {END: len(tokens)}, END))
    torch.manual_seed(0)
    lm = LanguageModel(GPT(Config(len(part), 64, 16, 2, 2, end_token=part.end)), part, "part")
    lm.recommended = {"temperature": 0.65, "top_k": 12}
    served = server(lm)
    yield served
    served.stop()


def test_the_id_in_gpt2_stands_beside_the_models_own(show):
    page = show("#/walk?model=part&text=the+end%3C&step=1")
    assert page.locator("[data-gpt2]").first.get_attribute("data-gpt2") == "27"
    assert "(GPT-2: 886)" in page.locator(".chips button").nth(1).get_attribute("title")


def test_a_text_is_written_with_what_the_model_recommends(show):
    page = show("#/generate?model=part&text=the+end")
    asked = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    written = [one for one in asked if "/writing?" in one]
    assert written and all("temperature=0.65" in one and "top_k=12" in one for one in written)
