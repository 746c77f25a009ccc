"""`cutaway translate`: by the translator that ships, or one that was trained on other pairs of sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from cutaway.cli import lines, options
from cutaway.cli.options import option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.inspect.two_texts import Alignment
    from cutaway.language_model import LanguageModel
    from cutaway.tasks.answer import Answer


def translate(
    text: Annotated[str | None, options.argument(metavar="TEXT", help="The text to translate.")] = None,
    file: lines.File = None,
    back: Annotated[
        bool, option("--back", help="The other direction, if the model was trained for both (task.back).")
    ] = False,
    alignment: Annotated[
        bool,
        option("--alignment", help="Show which tokens of the source were looked at for each token written, too."),
    ] = False,
    beams: lines.Beams = 4,
    max_tokens: lines.MaxTokens = None,
    length_penalty: lines.LengthPenalty = 1.0,
    model: options.Model = "builtin",
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Translate a text, or many, line by line.

    The translator included is small and knows short, everyday sentences: English becomes French, French English.

    The text is the argument; a file or a pipe has one on each line, and each line is answered by one.

    Example: cutaway translate "I am happy."

    Example: cutaway translate "Je suis heureux."

    Example: cutaway translate --file letter.txt --model my-translator

    Example: cutaway translate "The fox runs." --model my-transformer --alignment
    """
    from cutaway.tasks import Translation, load_task

    model = lines.shipped(model, "translator")
    task = load_task(options.locate(model))
    if not isinstance(task, Translation):
        raise lines.untrained(model, task, "translation", "pairs.tsv")
    if back and model == "translator":
        raise CutawayError("The translator included recognizes the language by itself: leave out --back.")
    task = task.turned() if back else task
    texts = lines.read_lines(text, file, beams)
    lm = options.load(model, device, dtype)
    from cutaway.tasks import answer

    answers = answer.translate(lm, task, texts.each, beams, max_tokens, length_penalty, texts.at_once)
    lines.show_answers(lm.name, answers, as_json, aligned(lm) if alignment else None)


def aligned(lm: LanguageModel) -> Callable[[Answer], Alignment | None]:
    """A function: an answer -> what each of its tokens was looked up in; None for an empty one."""
    from cutaway.inspect.two_texts import alignment

    return lambda answer: alignment(lm, answer.source.strip(), answer.text) if answer.text else None
