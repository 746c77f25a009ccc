"""A text in the tiny model, with some tokens twice, and the run over it; and a model whose circuit is known."""

from __future__ import annotations

import pytest
import torch

from cutaway.inspect.runs import Run, run
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

TEXT = "Once upon a time there was a little fox who wanted to see a little hill"


@pytest.fixture(scope="session")
def seen(tiny_lm) -> Run:
    return run(tiny_lm, TEXT)


@pytest.fixture(scope="session")
def induction_lm(tiny_lm) -> LanguageModel:
    """A model written by hand, whose circuit is known: head 0.0 looks at the token before and notes which it is, and
    head 1.1 looks where the note is this token, and says what stands there. Nothing else does anything.
    """
    vocabulary, context = len(tiny_lm.tokenizer), 48
    width = 3 * vocabulary + context
    shape = Config(vocabulary=vocabulary, context=context, width=width, layers=2, heads=2, mlp_width=1, tied=False)
    model = GPT(shape).eval()
    token, place, before, said = (
        slice(0, vocabulary), slice(vocabulary, vocabulary + context),
        slice(vocabulary + context, 2 * vocabulary + context), slice(2 * vocabulary + context, width),
    )  # fmt: skip
    sharp, short = 30.0, width // 2
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if "norm.weight" in name else 0.0)
        model.token_embedding.weight[:, token] = torch.eye(vocabulary)
        model.position_embedding.weight[:, place] = torch.eye(context)
        first, second = model.blocks[0].attention, model.blocks[1].attention
        queries, keys, values = first.queries_keys_values.weight.split(width)  # head 0 has the first half of each
        queries[:context, place] = sharp * torch.eye(context).roll(-1, 0)
        keys[:context, place] = torch.eye(context)
        values[:vocabulary, token] = torch.eye(vocabulary)
        first.projection.weight[before, :vocabulary] = torch.eye(vocabulary)
        queries, keys, values = second.queries_keys_values.weight.split(width)
        queries[short : short + vocabulary, token] = sharp * torch.eye(vocabulary)
        keys[short : short + vocabulary, before] = torch.eye(vocabulary)
        values[short : short + vocabulary, token] = torch.eye(vocabulary)
        second.projection.weight[said, short : short + vocabulary] = torch.eye(vocabulary)
        model.output.weight[:, said] = torch.eye(vocabulary)
    return LanguageModel(model, tiny_lm.tokenizer, "induction")
