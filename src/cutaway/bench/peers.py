"""Other programs that run GPT-2 on a processor, if they are installed: the same shape, the same work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from cutaway import checkpoint, processor
from cutaway.bench import llama
from cutaway.bench.run import TEXTS, Runner, random_model
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native.library import default_threads
from cutaway.text.tokenizer import Tokenizer


def installed(config: Config, folder: Path, quick: bool = False) -> Iterator[Runner]:
    """Every peer that is here; their files are written into `folder`. `quick` leaves out those never ahead."""
    model = random_model(config)
    if llama.installed() and find_spec("gguf") and config.vocabulary == 50_257:
        from cutaway.checkpoint import gguf

        for kind in ("q8_0", "q4_0", "f16"):
            gguf.write_gguf(model, Tokenizer.load("gpt2"), folder / f"{kind}.gguf", kind)
            yield llama.runner(folder / f"{kind}.gguf", kind, config)
    if find_spec("transformers") and config.vocabulary == 50_257:
        checkpoint.write_model(model, Tokenizer.load("gpt2"), folder / "huggingface")
        for dtype in transformers_types():
            yield Transformers(folder, dtype)
        if find_spec("ctranslate2"):
            for kind in ("int8",) if quick else ("float32", "int8"):
                yield CTranslate2(folder, kind, config)


def transformers_types() -> tuple[str, ...]:
    """Without AVX-512, torch is a hundred times slower in bfloat16: nobody would run it so."""
    return ("float32",) if processor.kind() in ("plain", "avx2") else ("float32", "bfloat16")


class Transformers:
    """Hugging Face's transformers, greedy."""

    engine = "transformers"

    def __init__(self, folder: Path, dtype: str):
        from transformers import GPT2LMHeadModel
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        self.weights, self.bits = dtype, {"float32": 32.0, "bfloat16": 16.0}[dtype]
        self.build = f"transformers {version('transformers')}, torch {torch.__version__}: {processor.kind()}"
        self.model = GPT2LMHeadModel.from_pretrained(folder / "huggingface", dtype=getattr(torch, dtype)).eval()
        config = self.model.config
        self.ids = torch.from_numpy(np.random.default_rng(0).integers(0, config.vocab_size, (1, config.n_positions)))

    @torch.inference_mode()
    def decode(self, tokens: int) -> float:
        return self.steps(self.ids[:, :1], tokens)

    @torch.inference_mode()
    def prompt(self, tokens: int) -> float:
        begun = time.perf_counter()
        self.model(self.ids[:, :tokens], use_cache=True, logits_to_keep=1)
        return tokens / (time.perf_counter() - begun)

    @torch.inference_mode()
    def batch16(self, steps: int) -> float:
        return self.steps(self.ids[:, :8].expand(TEXTS, -1), steps)

    def steps(self, ids: torch.Tensor, count: int) -> float:
        out = self.model(ids, use_cache=True, logits_to_keep=1)
        begun = time.perf_counter()
        for _ in range(count):
            out = self.model(out.logits[:, -1].argmax(-1, keepdim=True), past_key_values=out.past_key_values)
        return len(ids) * count / (time.perf_counter() - begun)


class CTranslate2:
    """CTranslate2, greedy."""

    engine = "ctranslate2"

    def __init__(self, folder: Path, kind: str, config: Config):
        import ctranslate2  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self.weights, self.bits = kind, {"float32": 32.0, "int8": 8.0}[kind]
        self.build = f"ctranslate2 {version('ctranslate2')}, a wheel that chooses its instructions as it runs"
        converter = ctranslate2.converters.TransformersConverter(str(folder / "huggingface"))
        out = folder / f"ctranslate2-{kind}"
        converter.convert(str(out), quantization=None if kind == "float32" else kind, force=True)
        self.model = ctranslate2.Generator(str(out), device="cpu", compute_type=kind, intra_threads=default_threads())
        spelled = sorted(Tokenizer.load("gpt2").vocabulary.items(), key=lambda pair: pair[1])
        ids = np.random.default_rng(0).integers(0, config.vocabulary - 1, config.context)
        self.tokens = [spelled[number][0] for number in ids.tolist()]

    def decode(self, tokens: int) -> float:
        return self.steps([self.tokens[:1]], tokens)

    def prompt(self, tokens: int) -> float:
        return tokens * self.steps([self.tokens[: tokens - 1]], 1)

    def batch16(self, steps: int) -> float:
        return self.steps([self.tokens[:8]] * TEXTS, steps)

    def steps(self, prompts: list[list[str]], count: int) -> float:
        begun = time.perf_counter()
        self.model.generate_batch(
            prompts, max_length=count, min_length=count, sampling_topk=1, include_prompt_in_result=False, end_token=[]
        )
        return len(prompts) * count / (time.perf_counter() - begun)
