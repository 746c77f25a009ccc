"""`cutaway summarize`: by a model that was trained on articles with their summaries."""

from __future__ import annotations

from typing import Annotated

from cutaway.cli import lines, options


def summarize(
    text: Annotated[str | None, options.argument(metavar="TEXT", help="The text to summarize.")] = None,
    file: lines.File = None,
    beams: lines.Beams = 4,
    max_tokens: lines.MaxTokens = None,
    length_penalty: lines.LengthPenalty = 1.0,
    model: options.Model = "builtin",
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Summarize a text, or many, line by line.

    The text is the argument; a file or a pipe has one on each line, and each line is answered by one.

    The model included is small and writes titles for abstracts of papers.

    If a text is too long for the model, its end is ignored.

    Example: cutaway summarize "$(cat abstract.txt)"

    Example: cutaway summarize --file articles.txt --model my-summarizer
    """
    from cutaway.tasks import Summary, load_task

    model = lines.shipped(model, "summarizer")
    task = load_task(options.locate(model))
    if not isinstance(task, Summary):
        raise lines.untrained(model, task, "summary", "articles.jsonl")
    texts = lines.read_lines(text, file, beams)
    lm = options.load(model, device, dtype)
    from cutaway.tasks import answer

    answers = answer.summarize(lm, task, texts.each, beams, max_tokens, length_penalty, texts.at_once)
    lines.show_answers(lm.name, answers, as_json)
