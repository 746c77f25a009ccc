"""One catalogue: the same keys, the same gaps to fill, in every language; and nothing asked for that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "web" / "src"
MESSAGES = SOURCE / "messages"
LANGUAGES = ("en", "zh-Hans", "ru")
PLURALS = {"en": {"one", "other"}, "zh-Hans": {"other"}, "ru": {"one", "few", "many", "other"}}


def catalogue(language: str) -> dict[str, str | dict[str, str]]:
    return {
        f"{file.stem}.{key}": message
        for file in sorted((MESSAGES / language).glob("*.json"))
        for key, message in json.loads(file.read_text()).items()
    }


def forms(message: str | dict[str, str]) -> list[str]:
    return [message] if isinstance(message, str) else list(message.values())


def test_there_are_these_languages():
    assert {folder.name for folder in MESSAGES.iterdir()} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_language_has_the_same_keys(language):
    assert catalogue(language).keys() == catalogue("en").keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_says_something_and_has_every_form(language):
    for key, message in catalogue(language).items():
        assert all(form.strip() for form in forms(message)), key
        if isinstance(message, dict):
            assert set(message) == PLURALS[language], key


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_values_and_terms_are_the_same_in_every_language(language):
    def gaps(message: str | dict[str, str]) -> set[str]:
        return {gap for form in forms(message) for gap in re.findall(r"\{\w+\}|\[\w+(?=\|)", form)}

    english = catalogue("en")
    for key, message in catalogue(language).items():
        assert gaps(message) == gaps(english[key]), key


def test_every_term_is_in_the_glossary():
    known = catalogue("en")
    used = {term for message in known.values() for form in forms(message) for term in re.findall(r"\[(\w+)\|", form)}
    for file in SOURCE.rglob("*.svelte"):
        used |= set(re.findall(r'<Term name="(\w+)"', file.read_text()))
    assert used
    for term in used:
        assert f"glossary.{term}" in known and f"glossary.{term}_is" in known, term


def test_every_message_asked_for_is_there_and_none_is_left_over():
    known = set(catalogue("en"))
    code = "\n".join(file.read_text() for kind in ("*.svelte", "*.ts") for file in SOURCE.rglob(kind))
    asked = set(re.findall(r"""(?:\bt\(|message=|\bknown\()['"]([\w.]+)['"]""", code))
    assert asked <= known
    begun = set(re.findall(r"t\(`([\w.]+)\$", code))  # t(`attention.kind_${kind}`)
    ended = set(re.findall(r"(?:t|known)\(`\$\{[^}]+\}(\.[\w.]+)`", code))  # t(`${page.name}.title`)
    for key in known - asked:
        assert key.startswith(tuple(begun)) or key.endswith(tuple(ended)), f"nobody says {key}"
