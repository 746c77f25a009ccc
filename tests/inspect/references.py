"""What other programs say about one small model, written down for the tests: `python tests/inspect/references.py`.

nnsight, TransformerLens and inseq want versions of their own of what we use, so that they are no packages of ours, and
not installed where the tests run. Each is run once in an environment that has it (with Cutaway on its path), and its
numbers are added to references.json with its version:

    python -m venv there && there/bin/pip install transformer-lens==3.9.0 nnsight tiktoken        # inseq: another one
    PYTHONPATH=src there/bin/python tests/inspect/references.py

The weights are numpy's random numbers, which are the same on every processor.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.tokenizer import Tokenizer

WRITTEN = Path(__file__).with_suffix(".json")
SENTENCE = "Once upon a time there was a little fox who wanted to see what was on the other side of the hill. "
CLEAN = "Once upon a time there was a fox on the side"
TOKEN, AGAINST = 68, 72
NEURONS = 24
"""Every so many-th neuron is patched."""


def reference_lm() -> LanguageModel:
    """Three blocks of four heads, with weights large enough that patches matter."""
    model = GPT(Config(vocabulary=320, context=48, width=48, layers=3, heads=4)).eval()
    numbers = np.random.default_rng(16)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            middle = 1.0 if name.endswith("norm.weight") else 0.0
            drawn = middle + 0.15 * numbers.standard_normal(parameter.shape, np.float32)
            parameter.copy_(torch.from_numpy(drawn.astype(np.float32)))
    return LanguageModel(model, Tokenizer.train([SENTENCE] * 3, size=320), "reference")


def texts(lm: LanguageModel) -> tuple[list[int], list[int]]:
    """The clean one, and the corrupted one, in which two tokens are others."""
    clean = lm.ids(CLEAN)
    corrupted = [100 if at == 2 else 205 if at == 5 else one for at, one in enumerate(clean)]
    assert clean != corrupted
    return clean, corrupted


def hugging_face(lm: LanguageModel, folder: str) -> Any:
    from transformers import GPT2LMHeadModel

    lm.save(folder)
    return GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()


def by_nnsight(lm: LanguageModel) -> dict[str, Any]:
    """Activation patching cell by cell, with nnsight's interventions on transformers' model."""
    from nnsight import NNsight

    clean, corrupted = (torch.tensor([ids]) for ids in texts(lm))
    places: dict[str, Any] = {
        "residual": lambda block: block.input,
        "attention": lambda block: block.attn.c_proj.output,
        "mlp": lambda block: block.mlp.output,
        "head": lambda block: block.attn.c_proj.input,
        "neuron": lambda block: block.mlp.c_proj.input,
    }
    tokens, width = range(clean.shape[1]), lm.config.head_width
    cells: dict[str, list[Any]] = {name: [(slice(None), token) for token in tokens] for name in places}
    heads = [slice(head * width, (head + 1) * width) for head in range(lm.config.heads)]
    cells["head"] = [(slice(None), slice(None), columns) for columns in heads]
    cells["neuron"] = [(slice(None), slice(None), neuron) for neuron in range(0, lm.config.mlp_width, NEURONS)]
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model = NNsight(hugging_face(lm, folder))
        for name, place in places.items():
            told[name] = []
            for block in model.transformer.h:
                with model.trace(clean):
                    source = place(block).clone().save()
                row = []
                for index in cells[name]:
                    with model.trace(corrupted):
                        place(block)[index] = source[index]
                        logits = model.lm_head.output.save()
                    row.append(float(logits[0, -1, TOKEN] - logits[0, -1, AGAINST]))
                told[name].append(row)
    return told


def by_transformer_lens(lm: LanguageModel) -> dict[str, Any]:
    """Its own sweeps, and its direct logit attribution of every head."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    import sweep as benchmark
    from transformer_lens import patching

    hooked = benchmark.theirs(lm)
    clean, corrupted = (torch.tensor([ids]) for ids in texts(lm))

    def metric(logits: torch.Tensor) -> torch.Tensor:
        return logits[0, -1, TOKEN] - logits[0, -1, AGAINST]

    with torch.no_grad():
        _, kept = hooked.run_with_cache(clean)
        sweeps = {
            "residual": patching.get_act_patch_resid_pre,
            "attention": patching.get_act_patch_attn_out,
            "mlp": patching.get_act_patch_mlp_out,
            "head": patching.get_act_patch_attn_head_out_all_pos,
            "attention pattern": patching.get_act_patch_attn_head_pattern_all_pos,
        }
        told = {name: sweep(hooked, corrupted, kept, metric).tolist() for name, sweep in sweeps.items()}
        # Its logit_attrs leaves the norm's weight out unless it is folded in: scaled by it, the direction is the same.
        way = (hooked.W_U[:, TOKEN] - hooked.W_U[:, AGAINST]) * hooked.ln_final.w
        way = way - way.mean()
        heads = kept.stack_head_results(-1, pos_slice=-1)
        scaled = kept.apply_ln_to_stack(heads, -1, pos_slice=-1, recompute_ln=False)[:, 0]
        told["direct"] = (scaled @ way).view(lm.config.layers, -1).tolist()
    return told


def by_inseq(lm: LanguageModel) -> dict[str, Any]:
    """Gradient x input of the next token's logit, and of its lead over another."""
    import inseq
    from transformers import PreTrainedTokenizerFast

    with tempfile.TemporaryDirectory() as folder:
        model = hugging_face(lm, folder)
        end = lm.tokenizer.decode([lm.tokenizer.end])
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=f"{folder}/tokenizer.json", bos_token=end, eos_token=end, pad_token=end, unk_token=end
        )
        ids = lm.ids(CLEAN)
        words = [lm.tokenizer.decode([one]) for one in (TOKEN, AGAINST)]
        told: dict[str, Any] = {}
        attributed = inseq.load_model(model, "input_x_gradient", tokenizer=tokenizer)
        for name, extra in (
            ("gradient", {"attributed_fn": "logit"}),
            ("rather", {"attributed_fn": "contrast_logits_diff", "contrast_targets": CLEAN + words[1]}),
        ):
            found = attributed.attribute(CLEAN, CLEAN + words[0], show_progress=False, **extra)
            parts = found.sequence_attributions[0].target_attributions  # [token, written, width]
            assert parts.shape[1] == 1 and parts.shape[0] >= len(ids), parts.shape
            told |= {name: parts[: len(ids), 0].sum(-1).tolist()}
            told |= {f"{name} norm": parts[: len(ids), 0].norm(dim=-1).tolist()}
    return told


BY = {"nnsight": by_nnsight, "transformer_lens": by_transformer_lens, "inseq": by_inseq}


def main() -> None:
    told = json.loads(WRITTEN.read_text()) if WRITTEN.exists() else {}
    for package, ask in BY.items():
        if importlib.util.find_spec(package):
            told[package] = {"version": version(package.replace("_", "-")), **ask(reference_lm())}
            print(package, told[package]["version"])
    WRITTEN.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
