"""One catalogue: the same keys, the same gaps to fill, in every language; and nothing asked for that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "web" / "src"
MESSAGES = SOURCE / "messages"
LANGUAGES = ("en", "zh-Hans", "ru")
FORMS = {"en": 2, "zh-Hans": 1, "ru": 3}
"""How many forms a counted word has: token, tokens; 词元; токен, токена, токенов."""
PERCENT = {"en": r"\d\s+%", "zh-Hans": r"\d\s+%", "ru": r"\d[^\u00a0]?%"}
"""How a percentage is not written: Russian puts a no-break space before the sign, the others nothing."""
FORBIDDEN = {
    "en": r"beginning of the list|numbers are others|weights are others|multiplied with|Less the mean|\bgrounds?\b|"
    r"wider and higher|began as chance|\bWaking\b|\bspeaks (?:for|against)\b|\bchances\b|(?<!\.)\bplaces\b",
    "zh-Hans": r"机会|照亮|[^第]一块|掩码之后的谁|推动|直到结尾|骰子是|唤醒|漫步|，  \.|[你妳]|"
    r"第 \{head\} 个|要紧|记号",
    "ru": r"раз множитель|слово перед собой|простого текста|низшее|высшее|\bИграть|говорит за|Новые кости|"
    r"\bнорм[аыуе]\b|нормировк|всё письмо|просыпается|\bток\.|\bсл\.|\bгол\.|говорит против|обозревател|"
    r"Наведите на|без костей|\bшанс|\bгуще\b",
}
"""Words that stood here once and that a textbook would not print."""
MISPRINTS = {
    "en": r"\w'\w|\"|\.\.\.|§ …",
    "zh-Hans": r"[\u4e00-\u9fff）”][,;:?!()]|[,;:?!()][\u4e00-\u9fff]|[\u4e00-\u9fff]\w*\.(?!\w)|\.\.\.",
    "ru": r"\d\.\d|\d[ ,]\d{3}\b|[“”\"]| [-–] |\.\.\.|\d (?:млн|млрд|кБ|МБ)",
}
"""Signs that are wrong in a language: straight quotes, a half-width comma after 汉字, a decimal point in Russian."""


def catalogue(language: str) -> dict[str, str]:
    return {
        f"{file.stem}.{key}": message
        for file in sorted((MESSAGES / language).glob("*.json"))
        for key, message in json.loads(file.read_text()).items()
    }


def everything(language: str) -> dict[str, str]:
    """What the page says: the catalogue, and the words of the tour."""
    said = catalogue(language)
    for file in sorted((SOURCE / "tour").glob("[0-9]*.json")):
        step = json.loads(file.read_text())
        said |= {f"{file.stem}.{part}": step[part][language] for part in ("title", "words", "try")}
        said |= {f"{file.stem}.here.{i}": claim[language] for i, claim in enumerate(step.get("here", []))}
    return said


def counted(message: str) -> list[str]:
    """The forms of each counted word: `{n|# token|# tokens}`."""
    return re.findall(r"\{[\w.]+\|([^}]*)\}", message)


def test_there_are_these_languages():
    assert {folder.name for folder in MESSAGES.iterdir()} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_language_has_the_same_keys(language):
    assert catalogue(language).keys() == catalogue("en").keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_says_something_and_has_every_form(language):
    for key, message in everything(language).items():
        assert isinstance(message, str) and message.strip(), key
        for forms in counted(message):
            assert len(forms.split("|")) == FORMS[language], key
            assert all("#" in form for form in forms.split("|")), key


def test_what_is_counted_in_english_is_counted_in_russian():
    russian = everything("ru")
    for key, message in everything("en").items():
        for name in re.findall(r"\{(\w+)\|", message):
            # where the word does not follow the number there is nothing to agree with it
            assert re.search(rf"\{{{name}\||[(:] ?(\w+ ){{0,2}}\{{{name}\}}|не больше \{{{name}\}}", russian[key]), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_is_back_that_was_taken_out(language):
    for key, message in everything(language).items():
        found = re.search(FORBIDDEN[language], message)
        assert found is None, (key, found)
        assert re.search(PERCENT[language], message) is None, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_signs_and_numbers_are_those_of_the_language(language):
    for key, message in everything(language).items():
        prose = re.sub(r"cutaway explore --model \{name\}|pip install .*", "", message)
        prose = re.sub(r"\[\w+\|([^]]*)\]", r"\1", re.sub(r"\{[^}]*\}", "§", prose))
        found = re.search(MISPRINTS[language], prose)
        assert found is None, (key, found)


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_values_and_terms_are_the_same_in_every_language(language):
    def gaps(message: str) -> set[str]:
        return set(re.findall(r"\{\w+|\[\w+(?=\|)", message))

    english = everything("en")
    for key, message in everything(language).items():
        assert gaps(message) == gaps(english[key]), key


def test_every_term_is_in_the_glossary():
    known = catalogue("en")
    used = {term for message in known.values() for term in re.findall(r"\[(\w+)\|", message)}
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
    begun = set(re.findall(r"t\(`([\w.]+)\$|`(\w+\.\w+_)\$", code))  # t(`attention.kind_${kind}`), `walk.op_${x}`
    begun = {one or other for one, other in begun}
    ended = set(re.findall(r"(?:t|known)\(`\$\{[^}]+\}(\.[\w.]+)`", code))  # t(`${page.name}.title`)
    for key in known - asked:
        assert key.startswith(tuple(begun)) or key.endswith(tuple(ended)), f"nobody says {key}"


def test_every_mistake_with_a_code_has_a_sentence_and_is_given_its_values():
    from typing import get_args

    from cutaway.errors import Code

    known = catalogue("en")
    source = "\n".join(file.read_text() for file in (SOURCE.parents[1] / "src" / "cutaway").rglob("*.py"))
    for code in get_args(Code):
        assert f"errors.{code}" in known and f"errors.{code}_remedy" in known, code
        assert len(re.findall(rf'"{code}"', source)) > 1, f"nobody raises {code}"
