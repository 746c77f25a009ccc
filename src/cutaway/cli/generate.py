"""`cutaway generate`: continue a prompt, or write from nothing."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cutaway.cli import options, screen
from cutaway.cli.options import CHOOSING, option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.decoding.sequence import Result
    from cutaway.language_model import LanguageModel

LENGTH, SEVERAL = "Length", "Several texts"


def generate(
    prompt: Annotated[str | None, options.argument(metavar="PROMPT", help="The text to continue.")] = None,
    file: options.File = None,
    batch: Annotated[
        bool, option("--batch", help="Each line of the file is a prompt; blank lines are skipped.")
    ] = False,
    interactive: Annotated[
        bool, option("--interactive", "-i", help="Ask for a prompt, continue it, ask again; Ctrl-D exits.")
    ] = False,
    special: options.Special = False,
    temperature: options.Temperature = None,
    top_k: options.TopK = None,
    top_p: Annotated[
        float | None,
        option("--top-p", value="P", panel=CHOOSING, help="From the smallest set that reaches this probability."),
    ] = None,
    min_p: Annotated[
        float | None,
        option("--min-p", value="P", panel=CHOOSING, help="From tokens at least P times as likely as the top one."),
    ] = None,
    greedy: Annotated[
        bool, option("--greedy", panel=CHOOSING, help="Always the most likely token: same as --temperature 0.")
    ] = False,
    repetition_penalty: Annotated[
        float | None,
        option(
            "--repetition-penalty",
            value="N",
            panel=CHOOSING,
            help="Above 1: tokens already in the text become less likely.",
        ),
    ] = None,
    presence_penalty: Annotated[
        float,
        option("--presence-penalty", value="N", panel=CHOOSING, help="Subtracted from a used token's logit once."),
    ] = 0.0,
    frequency_penalty: Annotated[
        float,
        option(
            "--frequency-penalty",
            value="N",
            panel=CHOOSING,
            help="Subtracted from a used token's logit per occurrence.",
        ),
    ] = 0.0,
    logit_bias: Annotated[
        list[str] | None,
        option(
            "--logit-bias", value="ID=N", panel=CHOOSING, help="Added to a token's logit; -inf forbids it. Repeatable."
        ),
    ] = None,
    seed: options.Seed = None,
    max_tokens: Annotated[
        int | None, option("--max-tokens", "-n", value="N", panel=LENGTH, help="Stop after N tokens.")
    ] = None,
    stop: Annotated[
        list[str] | None, option("--stop", value="TEXT", panel=LENGTH, help="Stop before this text. Repeatable.")
    ] = None,
    overflow: Annotated[
        str,
        option(
            "--overflow", value="RULE", panel=LENGTH, help="When the context is full: stop, or slide (drop the oldest)."
        ),
    ] = "stop",
    samples: Annotated[int | None, option("--samples", value="N", panel=SEVERAL, help="Generate N texts.")] = None,
    beams: Annotated[
        int | None,
        option("--beams", value="N", panel=SEVERAL, help="Beam search for the most likely text with N beams."),
    ] = None,
    best: Annotated[
        int | None, option("--best", value="N", panel=SEVERAL, help="Show the N best texts of the beam search.")
    ] = None,
    length_penalty: Annotated[
        float,
        option("--length-penalty", value="N", panel=SEVERAL, help="With beams: higher favours longer texts."),
    ] = 1.0,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    engine: options.Engine = "auto",
    weights: options.Weights = None,
    as_json: options.AsJson = False,
) -> None:
    """Continue a prompt, or start from scratch.

    The prompt is the argument, a file, or standard input when it is piped; without one, the text starts from scratch.

    Example: cutaway generate "Once upon a time" --max-tokens 60 --temperature 0.8
    """
    settings: dict[str, Any] = {
        **options.given_settings(temperature, 1 if greedy else top_k, top_p, min_p, repetition_penalty),
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
        "logit_bias": read_bias(logit_bias or []),
        "seed": seed,
        "max_tokens": max_tokens,
        "stop": tuple(stop or ()),
        "overflow": overflow,
        "samples": samples,
        "beams": beams,
        "best": best,
        "length_penalty": length_penalty,
    }
    if interactive and (batch or file or prompt is not None):
        raise CutawayError("--interactive asks for its prompts: give it none, and no --file or --batch.")
    if batch and prompt is not None:
        raise CutawayError("--batch reads prompts from --file or standard input: leave out the prompt.")
    prompts = [] if interactive else read_prompts(prompt, file, batch)
    writer = Writer(options.load(model, device, dtype, engine, weights, tokenizer), settings, special, as_json)
    if interactive:
        converse(writer)
    elif batch:
        writer.write_together(prompts)
    else:
        writer.write(prompts[0])


def read_prompts(prompt: str | None, file: Path | None, batch: bool) -> list[str]:
    text = options.read_text(prompt, file)
    if not batch:
        return [text]
    prompts = [line for line in re.split("\r?\n", text) if line.strip()]
    if not prompts:
        raise CutawayError("There is no prompt in the batch: write one on each line.")
    return prompts


def read_bias(given: list[str]) -> dict[int, float]:
    """`["50256=-100"]` -> `{50256: -100.0}`."""
    bias = {}
    for one in given:
        token, _, number = one.partition("=")
        try:
            bias[int(token)] = float(number)
        except ValueError:
            raise CutawayError(
                f"--logit-bias takes a token's id and a number, like 50256=-inf, not {one!r}. "
                "`cutaway tokens` shows the ids of a text."
            ) from None
    return bias


class Writer:
    """A model and the settings it writes with; shows what it writes as text or as JSON."""

    def __init__(self, lm: LanguageModel, settings: dict[str, Any], special: bool, as_json: bool):
        self.lm, self.special, self.as_json = lm, special, as_json
        lm.ids(list(settings["logit_bias"]))  # refuses an id that is not in the vocabulary before anything is written
        length = settings.pop("max_tokens")
        self.settings = vars(lm.settings(settings, length))

    def ids(self, prompt: str) -> list[int]:
        return self.lm.ids(prompt, special=self.special)

    def write(self, prompt: str) -> None:
        """Continue one prompt: shown as it is written, unless several texts come of it."""
        if self.settings["samples"] or self.settings["beams"]:
            self.write_together([prompt], listed=bool(self.settings["samples"] or self.settings["best"]))
            return
        begun = time.perf_counter()
        stream = self.lm.stream(self.ids(prompt), **self.settings)
        if self.as_json:
            for _ in stream:
                pass
            screen.show_json(self.to_json(prompt, stream.result))
            return
        screen.put(prompt, "dim")
        try:
            for piece in stream:
                screen.put(piece)
        finally:
            screen.put("\n")
        screen.aside(self.footer(stream.result.explanation, [stream.result], time.perf_counter() - begun))

    def write_together(self, prompts: list[str], listed: bool = True) -> None:
        """Many texts at once, shown when they are all there."""
        begun = time.perf_counter()
        with screen.working("writing"):
            results = self.lm.generate([self.ids(prompt) for prompt in prompts], **self.settings)
        seconds = time.perf_counter() - begun
        each = len(results) // len(prompts)
        pairs = [(prompts[index // each], result) for index, result in enumerate(results)]
        if self.as_json:
            found = [self.to_json(prompt, result) for prompt, result in pairs]
            screen.show_json(found if listed else found[0])
            return
        for number, (prompt, result) in enumerate(pairs, 1):
            if len(pairs) > 1:
                screen.show(heading(number, len(pairs), result), style="dim")
            screen.put(prompt, "dim")
            screen.put(result.text + "\n")
        explanation = results[0].explanation if len(results) == 1 else f"{len(results)} texts"
        screen.aside(self.footer(explanation, results, seconds))

    def footer(self, explanation: str, results: list[Result], seconds: float) -> str:
        """Why it ended, how much it is, how fast it was, and what would bring it back."""
        count = sum(len(result.ids) for result in results)
        parts = [explanation.rstrip("."), f"{count:,} token{'' if count == 1 else 's'}"]
        if count:
            parts.append(f"{count / max(seconds, 1e-9):,.1f} tokens/s")
        if dropped := sum(result.dropped for result in results):
            parts.append(f"the {dropped:,} oldest dropped")
        if results[0].seed is not None and self.settings["top_k"] != 1 and self.settings["temperature"]:
            parts.append(f"seed {results[0].seed}")
        return " · ".join(parts)

    def to_json(self, prompt: str, result: Result) -> dict[str, Any]:
        return {
            "model": self.lm.name,
            "prompt": prompt,
            "text": result.text,
            "reason": result.reason,
            "explanation": result.explanation,
            "prompt_ids": result.prompt_ids,
            "ids": result.ids,
            "logprobs": result.logprobs,
            "dropped": result.dropped,
            "score": result.score,
            "seed": result.seed,
            "settings": self.settings,
        }


def converse(writer: Writer) -> None:
    """Ask for a prompt, continue it, ask again. Ctrl-C ends a text, Ctrl-D the conversation."""
    while (prompt := screen.ask("prompt> ")) is not None:
        try:
            writer.write(prompt)
        except KeyboardInterrupt:
            screen.aside("interrupted")
        except CutawayError as error:
            screen.complain(str(error))


def heading(number: int, of: int, result: Result) -> str:
    score = "" if result.score is None else f" · score {result.score:.4f}"
    return f"── {number} of {of}{score} · {result.explanation}"
