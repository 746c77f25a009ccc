"""Other programs that run GPT-2 on a processor, if they are installed: the same shape, the same work."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import torch

from cutaway import checkpoint, processor
from cutaway.bench.run import TEXTS, Runner, random_model
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native.library import default_threads
from cutaway.text.tokenizer import Tokenizer


def installed(config: Config, folder: Path, quick: bool = False) -> Iterator[Runner]:
    """Every peer that is here; their files are written into `folder`. `quick` leaves out those never ahead."""
    model = random_model(config)
    if find_spec("xllamacpp") and find_spec("gguf") and config.vocabulary == 50_257:
        from cutaway.checkpoint import gguf

        for kind in ("q8_0", "q4_0", "f16"):
            gguf.write_gguf(model, Tokenizer.load("gpt2"), folder / f"{kind}.gguf", kind)
            yield LlamaCpp(folder / f"{kind}.gguf", kind, config)
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


LLAMA_CPP = """
import json, os, sys, urllib.request, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.n_ctx, parameters.n_parallel = sys.argv[1], 1024, 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(sys.argv[2])
parameters.warmup, parameters.verbosity = False, 0
server = xllamacpp.Server(parameters)
body = json.dumps({"prompt": "Once upon a time", "n_predict": 1, "temperature": 0}).encode()
request = urllib.request.Request(server.listening_address + "/completion", body, {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))["content"], flush=True)
os._exit(0)
"""
"""A whole command that lets llama.cpp write one token."""


class LlamaCpp:
    """llama.cpp, by its own clock; `xllamacpp` is a build of it that pip installs."""

    engine = "llama.cpp"

    def __init__(self, path: Path, kind: str, config: Config):
        import xllamacpp  # type: ignore[import-untyped, unused-ignore]

        self.weights, self.path = kind, path
        self.bits = {"q8_0": 8.5, "q4_0": 4.5, "f16": 16.0, "f32": 32.0}[kind]
        parameters = xllamacpp.CommonParams()
        parameters.model.path, parameters.n_ctx = str(path), config.context
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = default_threads()
        parameters.n_parallel, parameters.warmup, parameters.verbosity = 1, False, 0
        self.server = xllamacpp.Server(parameters)
        self.ids = np.random.default_rng(0).integers(0, config.vocabulary, config.context).tolist()

    def timings(self, prompt: list[int], tokens: int) -> dict[str, Any]:
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "cache_prompt": False, "ignore_eos": True}
        address = f"{self.server.listening_address}/completion"
        request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=300) as answer:
            return json.load(answer)["timings"]

    def decode(self, tokens: int) -> float:
        return float(self.timings(self.ids[:1], tokens + 1)["predicted_per_second"])

    def prompt(self, tokens: int) -> float:
        return float(self.timings(self.ids[: tokens - 1], 1)["prompt_per_second"])

    def batch16(self, steps: int) -> None:
        return None  # its server would have to be given 16 clients


class Transformers:
    """Hugging Face's transformers, greedy."""

    engine = "transformers"

    def __init__(self, folder: Path, dtype: str):
        from transformers import GPT2LMHeadModel
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        self.weights, self.bits = dtype, {"float32": 32.0, "bfloat16": 16.0}[dtype]
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
