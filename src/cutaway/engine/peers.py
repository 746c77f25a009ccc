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

from cutaway.config import Config
from cutaway.engine.bench import Runner
from cutaway.engine.library import default_threads
from cutaway.model import GPT
from cutaway.tokenizer import Tokenizer


def installed(config: Config, folder: Path, kinds: tuple[str, ...] = ("q8_0", "q4_0", "f16")) -> Iterator[Runner]:
    """Every peer that is here; their files are written into `folder`."""
    if find_spec("xllamacpp") and find_spec("gguf") and config.vocabulary == 50_257:
        from cutaway.checkpoint import gguf

        torch.manual_seed(0)
        model, tokenizer = GPT(config).eval(), Tokenizer.load("gpt2")
        for kind in kinds:
            gguf.write(model, tokenizer, folder / f"{kind}.gguf", kind)
            yield LlamaCpp(folder / f"{kind}.gguf", kind, config)
    if find_spec("transformers"):
        yield Transformers(config)


class LlamaCpp:
    """llama.cpp, by its own clock; `xllamacpp` is a build of it that pip installs."""

    engine = "llama.cpp"

    def __init__(self, path: Path, kind: str, config: Config):
        import xllamacpp  # type: ignore[import-untyped, unused-ignore]

        self.weights = kind
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
    """Hugging Face's transformers in float32, greedy."""

    engine, weights, bits = "transformers", "float32", 32.0

    def __init__(self, config: Config):
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=config.vocabulary, n_positions=config.context, n_embd=config.width, n_layer=config.layers,
                n_head=config.heads, n_inner=config.mlp_width,
            )
        ).eval()  # fmt: skip
        self.ids = torch.from_numpy(np.random.default_rng(0).integers(0, config.vocabulary, (1, config.context)))

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
        return self.steps(self.ids[:, :8].expand(16, -1), steps)

    def steps(self, ids: torch.Tensor, count: int) -> float:
        out = self.model(ids, use_cache=True, logits_to_keep=1)
        begun = time.perf_counter()
        for _ in range(count):
            out = self.model(out.logits[:, -1].argmax(-1, keepdim=True), past_key_values=out.past_key_values)
        return len(ids) * count / (time.perf_counter() - begun)
