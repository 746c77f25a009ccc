"""llama.cpp as it was built for this processor (`pip install llama-cpp-python` does that), or else a portable wheel."""

from __future__ import annotations

import ctypes
import json
import re
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import numpy.typing as npt

from cutaway.bench.run import TEXTS, Runner
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native.library import default_threads, need

BITS = {"q8_0": 8.5, "q4_0": 4.5, "f16": 16.0, "f32": 32.0}
HAS = {"avx2": "AVX2", "avx512bw": "AVX512", "avx512": "AVX512_VNNI", "avx512bf16": "AVX512_BF16"}
"""How llama.cpp calls the best instructions of the processors that each of our kernels is for."""


def installed() -> bool:
    return bool(find_spec("llama_cpp") or find_spec("xllamacpp"))


def runner(path: Path, kind: str, config: Config) -> Runner:
    """The one built for this processor, if it is here."""
    return Compiled(path, kind, config) if find_spec("llama_cpp") else Wheel(path, kind, config)


def described(package: str, system_info: str) -> str:
    """How a build came to be, by its own account: a portable one was not made for all that this processor can do."""
    features = re.findall(r"(\w+) = 1", system_info)
    best = HAS.get(need().cutaway_kernels(b"").decode())
    made = "built for this processor" if best is None or best in features else "a portable build"
    return f"{package}, {made}: {' '.join(features)}"


@cache
def quiet() -> None:
    """Nothing of what llama.cpp says while it loads."""
    import llama_cpp  # type: ignore[import-not-found, import-untyped, unused-ignore]

    silence = llama_cpp.llama_log_callback(lambda *said: None)
    llama_cpp.llama_log_set(silence, ctypes.c_void_p(0))
    quiet.callback = silence  # type: ignore[attr-defined]  # it must outlive the library


class Compiled:
    """llama.cpp by its own interface, in this process; timed from outside, with the choice of the likeliest token."""

    engine = "llama.cpp"

    def __init__(self, path: Path, kind: str, config: Config):
        import llama_cpp

        quiet()
        self.library, self.weights, self.path, self.bits = llama_cpp, kind, path, BITS[kind]
        self.build = described(
            f"llama-cpp-python {llama_cpp.__version__}", llama_cpp.llama_print_system_info().decode()
        )
        self.vocabulary = config.vocabulary
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        self.one, self.many = self.context(config.context, 1), self.context(config.context * TEXTS, TEXTS)
        self.ids = np.random.default_rng(0).integers(0, config.vocabulary, config.context).tolist()

    def context(self, positions: int, texts: int) -> Any:
        settings = self.library.llama_context_default_params()
        settings.n_ctx, settings.n_seq_max = positions, texts
        settings.n_threads = settings.n_threads_batch = default_threads()
        return self.library.llama_init_from_model(self.model, settings)

    def read(self, context: Any, new: list[list[int]], first: int) -> npt.NDArray[np.float32]:
        """Every text reads its new tokens, from that position on; the scores after the last ones. [text, vocabulary]"""
        count = sum(map(len, new))
        batch = self.library.llama_batch_init(count, 0, 1)
        ends, at = [], 0
        for text, ids in enumerate(new):
            for place, token in enumerate(ids):
                batch.token[at], batch.pos[at] = token, first + place
                batch.n_seq_id[at], batch.seq_id[at][0] = 1, text
                batch.logits[at] = place == len(ids) - 1
                at += 1
            ends.append(at - 1)
        batch.n_tokens = count
        if self.library.llama_decode(context, batch):
            raise RuntimeError("llama.cpp could not read the tokens")
        scores = [
            np.ctypeslib.as_array(self.library.llama_get_logits_ith(context, end), (self.vocabulary,)) for end in ends
        ]
        self.library.llama_batch_free(batch)
        return np.stack(scores) if len(scores) > 1 else scores[0][None]

    def steps(self, context: Any, prompts: list[list[int]], count: int) -> float:
        self.library.llama_memory_clear(self.library.llama_get_memory(context), True)
        scores, first = self.read(context, prompts, 0), len(prompts[0])
        begun = time.perf_counter()
        for step in range(count):
            scores = self.read(context, [[token] for token in scores.argmax(axis=1).tolist()], first + step)
        return len(prompts) * count / (time.perf_counter() - begun)

    def decode(self, tokens: int) -> float:
        return self.steps(self.one, [self.ids[:1]], tokens)

    def prompt(self, tokens: int) -> float:
        self.library.llama_memory_clear(self.library.llama_get_memory(self.one), True)
        begun = time.perf_counter()
        self.read(self.one, [self.ids[:tokens]], 0)
        return tokens / (time.perf_counter() - begun)

    def batch16(self, steps: int) -> float:
        return self.steps(self.many, [self.ids[:8]] * TEXTS, steps)

    def command(self) -> list[str]:
        return [FIRST_TOKEN_COMPILED, str(self.path), str(default_threads())]


FIRST_TOKEN_COMPILED = """
import os, sys, llama_cpp
llama = llama_cpp.Llama(sys.argv[1], n_ctx=1024, n_threads=int(sys.argv[2]), verbose=False)
print(llama("Once upon a time", max_tokens=1, temperature=0)["choices"][0]["text"], flush=True)
os._exit(0)
"""
"""A whole command that lets llama.cpp write one token."""

FIRST_TOKEN_WHEEL = """
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


class Wheel:
    """llama.cpp's server, by its own clock; `xllamacpp` is a build of it that pip installs as it is."""

    engine = "llama.cpp"

    def __init__(self, path: Path, kind: str, config: Config):
        import xllamacpp  # type: ignore[import-untyped, unused-ignore]

        self.weights, self.path, self.bits = kind, path, BITS[kind]
        self.build = described(f"xllamacpp {xllamacpp.__version__}", str(xllamacpp.get_system_info()))
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

    def command(self) -> list[str]:
        return [FIRST_TOKEN_WHEEL, str(self.path), str(default_threads())]
