"""A patching sweep beside TransformerLens', in one process and in turns, on the same weights.

    python benchmarks/sweep.py                            # the shape of the built-in model, then that of GPT-2 small
    python benchmarks/sweep.py --shapes gpt2 --alone      # only ours
    python benchmarks/sweep.py --every 16                 # theirs at every 16th cell, its time times 16

Random weights (speed does not depend on what they are), 64 tokens, which differ at one (`--at`, counted from 0): cells
before it are known without a run. TransformerLens is not among our packages: install it in an environment of its own
(transformer-lens==3.9.0 is the last version with HookedTransformer), with Cutaway on its path. Without it, only our
times are told. On a busy machine the processor's time says more than the clock: with OMP_NUM_THREADS=1 it is what one
core needs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from cutaway.inspect.metric import Own
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.no_tokenizer import NoTokenizer


def ours(config: Config) -> LanguageModel:
    """A model of this shape, with weights large enough that patches matter."""
    torch.manual_seed(0)
    model = GPT(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(4)
    return LanguageModel(model, NoTokenizer(config.vocabulary, "random"), "random")


def theirs(lm: LanguageModel) -> Any:
    """The same model as a HookedTransformer."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    shape = lm.config
    hooked = HookedTransformer(
        HookedTransformerConfig(
            n_layers=shape.layers, d_model=shape.width, n_ctx=shape.context, d_head=shape.head_width,
            n_heads=shape.heads, d_mlp=shape.mlp_width, d_vocab=shape.vocabulary, act_fn="gelu_new",
            eps=shape.norm_epsilon,
            normalization_type="LN", device="cpu", default_prepend_bos=False,
        )
    )  # fmt: skip
    heads = shape.heads
    weights: dict[str, Tensor] = {
        "embed.W_E": lm.model.token_embedding.weight,
        "pos_embed.W_pos": lm.model.position_embedding.weight,
        "unembed.W_U": lm.model.output_matrix.T,
        "unembed.b_U": torch.zeros(shape.vocabulary),
        "ln_final.w": lm.model.final_norm.weight,
        "ln_final.b": lm.model.final_norm.bias,
    }
    for layer, block in enumerate(lm.model.blocks):
        at, attention, mlp = f"blocks.{layer}.", block.attention, block.mlp
        for name, weight, bias in zip(
            "QKV",
            attention.queries_keys_values.weight.chunk(3),
            attention.queries_keys_values.bias.chunk(3),
            strict=True,
        ):
            weights[f"{at}attn.W_{name}"] = weight.unflatten(0, (heads, -1)).transpose(1, 2)
            weights[f"{at}attn.b_{name}"] = bias.unflatten(0, (heads, -1))
        weights[f"{at}attn.W_O"] = attention.projection.weight.T.unflatten(0, (heads, -1))
        weights[f"{at}attn.b_O"] = attention.projection.bias
        weights |= {f"{at}mlp.W_in": mlp.widen.weight.T, f"{at}mlp.b_in": mlp.widen.bias}
        weights |= {f"{at}mlp.W_out": mlp.projection.weight.T, f"{at}mlp.b_out": mlp.projection.bias}
        for name, norm in (("ln1", block.attention_norm), ("ln2", block.mlp_norm)):
            weights |= {f"{at}{name}.w": norm.weight, f"{at}{name}.b": norm.bias}
    missing, unexpected = hooked.load_state_dict(
        {name: value.detach().clone() for name, value in weights.items()}, False
    )
    assert not unexpected and not [name for name in missing if "mask" not in name and "IGNORE" not in name], missing
    return hooked.eval()


SHAPES = {
    "builtin": Config(vocabulary=8000, context=1024, width=288, layers=6, heads=6, mlp_width=4 * 288),
    "gpt2": Config(vocabulary=50257, context=1024, width=768, layers=12, heads=12, mlp_width=4 * 768),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--what", nargs="+", default=["residual", "head"])
    for name, usual in (("tokens", 64), ("at", 16), ("turns", 3), ("every", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--alone", action="store_true", help="only our own times")
    given = parser.parse_args()
    for name in given.shapes:
        lm = ours(SHAPES[name])
        generator = torch.Generator().manual_seed(1)
        clean = torch.randint(lm.config.vocabulary, (given.tokens,), generator=generator)
        corrupted = clean.clone()
        corrupted[given.at] = (clean[given.at] + 1) % lm.config.vocabulary
        hooked = None if given.alone else hooked_or_none(lm)
        for what in given.what:
            told = {"shape": name, "what": what, "tokens": given.tokens, "differ_at": given.at, "turns": given.turns}
            told |= {"threads": torch.get_num_threads(), "theirs_at_every": given.every}
            told |= compare(lm, hooked, what, clean, corrupted, given.turns, given.every)
            print(json.dumps(told, indent=2), flush=True)


def hooked_or_none(lm: LanguageModel) -> Any:
    try:
        return theirs(lm)
    except ImportError as error:
        print(f"TransformerLens is not here ({error}): only our own times.")
        return None


def compare(
    lm: LanguageModel, hooked: Any, what: str, clean: Tensor, corrupted: Tensor, turns: int, every: int
) -> dict[str, Any]:
    """Both, in turns; and how far apart their numbers are. A cell takes TransformerLens as long as any other."""

    def metric(row: Tensor) -> Tensor:  # of the logits after the last token
        return row[7] - row[9]

    def sweep(exact: bool) -> Tensor:
        ids = clean.tolist(), corrupted.tolist()
        return lm.sweep(*ids, what, metric=Own(metric), exact=exact).values

    runs: dict[str, Callable[[], Tensor]] = {"cutaway": lambda: sweep(True), "estimate": lambda: sweep(False)}
    if hooked is not None:
        import pandas
        from transformer_lens import patching

        patch = {"residual": patching.get_act_patch_resid_pre, "head": patching.get_act_patch_attn_head_out_all_pos}
        units = len(clean) if what == "residual" else lm.config.heads
        cells = [(layer, unit) for layer in range(lm.config.layers) for unit in range(units)][::every]
        chosen = {"index_axis_names": None, "index_df": pandas.DataFrame(cells, columns=["layer", "unit"])}

        def swept() -> Tensor:
            with torch.no_grad():
                _, kept = hooked.run_with_cache(clean[None])
                return patch[what](hooked, corrupted[None], kept, lambda logits: metric(logits[0, -1]), **chosen)

        runs["transformer_lens"] = swept
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}  # by the clock, and of the processor
    values: dict[str, Tensor] = {}
    for _ in range(turns):
        for name, run in runs.items():
            begun = time.perf_counter(), time.process_time()
            values[name] = run().flatten()
            some = every if name == "transformer_lens" else 1
            times[name].append((some * (time.perf_counter() - begun[0]), some * (time.process_time() - begun[1])))
    median = {name: [statistics.median(one) for one in zip(*each, strict=True)] for name, each in times.items()}
    told: dict[str, Any] = {f"{name}_seconds": round(one[0], 3) for name, one in median.items()}
    told |= {f"{name}_processor_seconds": round(one[1], 3) for name, one in median.items()}
    if hooked is not None:
        for at, kind in enumerate(("times_as_fast", "times_as_fast_by_processor_time")):
            told[kind] = round(median["transformer_lens"][at] / median["cutaway"][at], 2)
        told["largest_difference"] = float((values["cutaway"][::every] - values["transformer_lens"]).abs().max())
    return told


if __name__ == "__main__":
    main()
