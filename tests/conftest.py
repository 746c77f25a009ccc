"""Small models with random weights, and the same weights in transformers, our oracle."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a shell's background jobs; what we start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # pytest-xdist already uses every core
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["CUTAWAY_OFFLINE"] = "1"

import pytest
import torch

from cutaway import processor
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

torch.set_num_threads(1)

OTHER_PROCESSOR = "not the processor that CUTAWAY_PROCESSOR says"
TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parents[1] / "shared"


def wild(model: GPT, seed: int = 0) -> GPT:
    """Weights large enough that predictions differ from token to token, and nothing is zero or one."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.1 if "norm" in name or name.endswith("bias") else 0.15
            parameter.add_(torch.empty(parameter.shape).normal_(std=spread, generator=generator))
    return model.eval()


@pytest.fixture(scope="session")
def tiny() -> GPT:
    """Three blocks of four heads, a vocabulary of 320 and a context of 48; shared, not to be changed."""
    torch.manual_seed(0)
    return wild(GPT(Config(vocabulary=320, context=48, width=48, layers=3, heads=4)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where a browser or a server of another thread takes part, a test that failed is run once more, by itself.

    The summary names it (RERUN), so that its cause is looked for; what fails twice has failed.
    """
    for item in items:
        if {"web", "serve"} & set(item.path.relative_to(TESTS).parts):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line that says what was skipped and how to have it."""
    reasons = Counter(
        str(one.longrepr[2]).removeprefix("Skipped: ") for one in terminalreporter.stats.get("skipped", [])
    )
    reasons.pop(OTHER_PROCESSOR, None)
    if reasons:
        why = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(
            f"{reasons.total()} skipped: {why}. `make complete` installs all that pip and npm have."
        )


@pytest.fixture(params=processor.KINDS)
def sees(request, monkeypatch) -> str:
    """Each kind of processor in turn, as the code sees it; where .ci/run has said one, that one only."""
    if os.environ.get("CUTAWAY_PROCESSOR", request.param) != request.param:
        pytest.skip(OTHER_PROCESSOR)
    monkeypatch.setenv("CUTAWAY_PROCESSOR", request.param)
    return str(request.param)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The data beside the project; a test that wants more than the repository holds is skipped where there is none."""
    if not (SHARED / "data").is_dir():
        pytest.skip("there is no ../shared/data beside this checkout")
    return SHARED / "data"


@pytest.fixture(scope="session")
def twin():
    """A function: our model -> transformers' GPT-2 on the very same weights (views of them, so that XL fits)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    spelling = (
        ("token_embedding", "wte"), ("position_embedding", "wpe"), ("final_norm", "ln_f"), ("blocks.", "h."),
        ("attention.queries_keys_values", "attn.c_attn"), ("attention.projection", "attn.c_proj"),
        ("mlp.widen", "mlp.c_fc"), ("mlp.projection", "mlp.c_proj"), ("attention_norm", "ln_1"), ("mlp_norm", "ln_2"),
    )  # fmt: skip

    def name_there(name: str) -> str:
        for ours, theirs in spelling:
            name = name.replace(ours, theirs)
        return f"transformer.{name}"

    def make(model: GPT) -> GPT2LMHeadModel:
        config = model.config
        with torch.device("meta"):
            there = GPT2LMHeadModel(
                GPT2Config(
                    vocab_size=config.vocabulary, n_positions=config.context, n_embd=config.width,
                    n_layer=config.layers, n_head=config.heads, n_inner=config.mlp_width,
                    activation_function="gelu_new", resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                    layer_norm_epsilon=config.norm_epsilon, bos_token_id=config.end, eos_token_id=config.end,
                )
            )  # fmt: skip
        weights = {
            name_there(name): (value.detach().T if ".c_" in name_there(name) and value.ndim == 2 else value.detach())
            for name, value in model.named_parameters()
        }
        weights["lm_head.weight"] = model.token_embedding.weight.detach()
        there.load_state_dict(weights, assign=True)
        there.tie_weights()
        for parameter in there.parameters():
            parameter.requires_grad_(True)
        there.name_there = name_there
        return there.eval()

    return make


@pytest.fixture(scope="session")
def tiny_lm(tiny):
    """The tiny model with a tokenizer of its own: 256 bytes, 63 merges and the end token."""
    from cutaway.language_model import LanguageModel
    from cutaway.text.tokenizer import Tokenizer

    texts = ["A robot must obey the orders given it by human beings, except where such orders would conflict. "] * 3
    texts += ["Once upon a time there was a little fox who wanted to see what was on the other side of the hill. "] * 3
    tokenizer = Tokenizer.train(texts, size=320)
    assert len(tokenizer) == 320
    assert tokenizer.end == tiny.config.end
    return LanguageModel(tiny, tokenizer, "tiny")


@pytest.fixture
def encoder_lm(tiny_lm, monkeypatch) -> Any:
    """The model of another kind that tests/models/test_architecture.py registers from outside, known for one test."""
    from importlib.util import module_from_spec, spec_from_file_location

    from cutaway.language_model import LanguageModel
    from cutaway.models import architecture

    spec = spec_from_file_location("encoder", Path(__file__).parent / "models" / "test_architecture.py")
    assert spec and spec.loader
    outside = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "encoder", outside)  # where a dataclass looks for the names of its fields
    spec.loader.exec_module(outside)
    monkeypatch.setattr(architecture, "_KNOWN", dict(architecture._KNOWN))
    architecture.register(outside.TinyEncoder())
    torch.manual_seed(0)
    return LanguageModel(outside.Encoder(outside.Shape(len(tiny_lm.tokenizer))), tiny_lm.tokenizer, "encoder")


@pytest.fixture(scope="session")
def bert_lm():
    """A BERT with a masked-word head and a vocabulary of words and pieces; shared, not to be changed."""
    from cutaway.language_model import LanguageModel
    from cutaway.models.bert.model import Bert
    from cutaway.models.bert.shape import Config as BertConfig
    from cutaway.text.wordpiece import WordPiece

    words = [
        "the", "a", "robot", "##s", "must", "obey", "##ed", "little", "fox", "sat", "on", "mat", ".", ",", "!", "?",
        "1", "2", "c", "##a", "##t",
    ]  # fmt: skip
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    tokenizer = WordPiece({token: at for at, token in enumerate(tokens)}, {"do_lower_case": True})
    torch.manual_seed(0)
    config = BertConfig(len(tokens), 32, 24, 2, 3, head="pretraining", end_token=tokenizer.end)
    return LanguageModel(wild(Bert(config)), tokenizer, "bert")
