"""Every page on a model of GPT-2's size: a folder, with GPT-2's own tokenizer; 3 and 1,000 tokens, phone and desk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.slow
PAGES = ("predict", "walk", "attention", "layers", "causes", "neurons", "generate", "change", "weights", "tasks")
LANGUAGES = ("en", "zh-CN", "ru")
SHORT = "The cat sat"
SENTENCES = (
    "A robot must obey the orders given it by human beings. The little fox was on the other side of the hill, and "
    "nobody in the village knew how it had come there; the old man said that he had seen it in the snow. "
)
SOMETHING = {
    "predict": ".bars .row", "walk": ".picture canvas", "attention": ".ground canvas", "layers": "tbody button",
    "causes": ".saliency button", "neurons": "[data-neuron]", "generate": "tr.chosen", "change": ".kl data",
    "weights": ".picture canvas", "tasks": "[data-answer]",
}  # fmt: skip
"""What must be on a page once its picture is there."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """Random weights as wide and as deep as GPT-2's, strong enough that heads look at different things."""
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import SIZES
    from cutaway.text.tokenizer import Tokenizer

    torch.manual_seed(1)
    model = GPT(SIZES["gpt2"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("queries_keys_values.weight", "projection.weight")):
                parameter.mul_(4)
    path = tmp_path_factory.mktemp("models") / "gpt2-sized"
    LanguageModel(model, Tokenizer.load("gpt2"), "gpt2-sized").save(path)
    return str(path)


@pytest.fixture(scope="module")
def served(server, folder) -> Iterator[Any]:
    served = server(folders=[folder])
    yield served
    served.stop()


@pytest.fixture(scope="module")
def texts() -> dict[int, str]:
    from cutaway.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load("gpt2")
    found = {3: SHORT, 1_000: tokenizer.decode(tokenizer.encode(SENTENCES * 30)[:1_000])}
    assert {count: len(tokenizer.encode(text)) for count, text in found.items()} == {3: 3, 1_000: 1_000}
    return found


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("tokens", [3, 1_000])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page(show, settle, folder, texts, name, tokens, language):
    """Languages, lengths and pages in all combinations; the widths take turns, so that each meets all of them."""
    turn = PAGES.index(name) + LANGUAGES.index(language) + (tokens > 3)
    width, height = ((1280, 900), (390, 844))[turn % 2]
    begun = time.perf_counter()
    reads_any_length = "&with=summarizer" if name == "tasks" else ""
    page = show(
        f"#/{name}?model={quote(folder)}&text={quote(texts[tokens])}{reads_any_length}",
        width=width, height=height, language=language, dark=turn % 4 > 1, wait=False,
    )  # fmt: skip
    page.set_default_timeout(150_000)
    page.wait_for_selector(".textbox .chips button")
    page.wait_for_selector(SOMETHING[name], state="attached")
    settle(page)
    print(f"{name:10} {tokens:5} tokens {width:5} px {language:6} {time.perf_counter() - begun:6.1f} s")
    assert page.locator(".textbox .chips button").count() == tokens
    assert page.locator("[role=alert]").count() == 0
    assert page.locator("h1").inner_text().strip()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.lang").startswith(language[:2])


def test_typing_at_the_end_of_a_long_text_reads_only_what_is_new(show, settle, served, folder, texts):
    page = show(f"#/predict?model={quote(folder)}&text={quote(texts[1_000])}", wait=False)
    page.set_default_timeout(150_000)
    page.wait_for_selector(".bars .row")
    settle(page)
    read = []
    lm = served.explorer.models.get(folder)
    hook = lm.model.blocks[0].register_forward_pre_hook(lambda block, given: read.append(given[0].shape[1]))
    try:
        page.keyboard.press("e")
        page.locator("#text-field").press("End")
        page.locator("#text-field").press_sequentially(" and the sea", delay=30)
        settle(page)
    finally:
        hook.remove()
    assert page.locator(".textbox .chips button").count() == 1_003
    assert read and max(read) < 20
    best = lm.predict(texts[1_000] + " and the sea", k=10)
    shown = [float(one.get_attribute("value")) for one in page.query_selector_all(".bars .share data")]
    assert shown == pytest.approx([one.probability for one in best], rel=1e-3)
