"""`cutaway parameters`: every matrix of a model, its shape and its count. Needs neither weights nor torch."""

from __future__ import annotations

import textwrap

from rich.text import Text

from cutaway.cli import options, screen
from cutaway.inspect.parameters import GPT1_VOCABULARY, InThePaper, Matrix, Parameters, in_the_paper
from cutaway.inspect.parameters import parameters as count

NAME, SHAPE, COUNT = 38, 14, 16
"""The widths of the columns."""


def parameters(model: options.Model = "builtin", as_json: options.AsJson = False) -> None:
    """Count the weights of a model, matrix by matrix.

    gpt2, gpt2-medium, gpt2-large and gpt2-xl are counted from their shapes: nothing is downloaded.

    Example: cutaway parameters --model gpt2-xl
    """
    found = count(options.read_config(model))
    if as_json:
        screen.show_json({"model": model, **found.to_json()})
        return
    _header(model, found)
    _matrices(found)
    screen.show()
    rows = [screen.Row(f"{kind:<20}{number:>15,}", number / found.total) for kind, number in found.parts().items()]
    screen.show(screen.bars(rows, number=False))
    if paper := in_the_paper(found.config):
        screen.show()
        _explain(paper, found)


def _header(model: str, found: Parameters) -> None:
    said = {"width": "{} wide", "heads": "{} heads", "vocabulary": "{:,} tokens", "context": "{:,} positions"}
    parts = [text.format(getattr(found.config, name)) for name, text in said.items() if hasattr(found.config, name)]
    stack = f"{found.blocks} blocks × " if found.blocks else ""
    screen.show(Text.assemble((model, "bold"), f"  {stack}{', '.join(parts)}"))
    screen.show()


def _matrices(found: Parameters) -> None:
    """The first block stands for all of them: their shapes are equal."""
    for matrix in found.before:
        _line(matrix.name, matrix)
    if blocks := found.blocks:
        screen.show(f"  blocks.0{f' … blocks.{blocks - 1}' if blocks > 1 else ''}", style="dim")
        for matrix in found.block():
            _line("  " + matrix.name.removeprefix("blocks.0."), matrix)
        _sum("in one block", found.per_block)
        _sum(f"× {blocks} block{'s' if blocks > 1 else ''}", found.per_block * blocks)
    for matrix in found.after:
        _line(matrix.name, matrix)
    if getattr(found.config, "tied", False):
        screen.show(f"  {'output':<{NAME}}the token embedding again: counted once", style="dim")
    _sum("in all", found.total, "bold")


def _line(name: str, matrix: Matrix) -> None:
    line = Text(f"  {name:<{NAME}}{' × '.join(map(str, matrix.shape)):>{SHAPE}}{matrix.count:>{COUNT},}")
    if screen.out().width >= len(line) + 36:
        line.append(f"   {matrix.what}", "dim")
    screen.show(line)


def _sum(label: str, number: int, style: str = "dim") -> None:
    screen.show(Text.assemble((f"{label:>{2 + NAME + SHAPE}}", "dim"), (f"{number:>{COUNT},}", style)))


def _explain(paper: InThePaper, found: Parameters) -> None:
    """Why the paper's number differs: what OpenAI said, and what the arithmetic shows; no more than that."""
    shape = found.config
    explanation = (
        f"The GPT-2 paper printed {paper.millions:,}M for this model. OpenAI later wrote that its counts were wrong "
        f"due to an error, and did not say which. This much can be computed: with GPT-1's vocabulary of "
        f"{GPT1_VOCABULARY:,} tokens instead of {shape.vocabulary:,} it would have {paper.with_gpt1_vocabulary:,}, "
        f"and the printed numbers of the other three sizes come out the same way."
    )
    screen.show(textwrap.fill(explanation, screen.width()), style="dim")
