"""Write down what must not change by accident while code is moved: run before and after, and compare.

    python tests/golden/record.py before.json
    python tests/golden/record.py after.json --compare before.json      # exit code 1 if anything differs
    python tests/golden/record.py --portable                            # what holds on every machine: portable.json

Only public names, the command line and the explorer's addresses are used, and by folders.py the tables of tensors.
Numbers are exact, so `before` and `after` must come from the same machine and the same torch; `portable.json` has
texts, ids and the structure of answers only.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import os
import platform
import random
import re
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", CUTAWAY_THREADS="1", CUTAWAY_OFFLINE="1", HF_HUB_OFFLINE="1", COLUMNS="110")
os.environ.update(TERM="dumb", NO_COLOR="1", TOKENIZERS_PARALLELISM="false")

import numpy as np
import torch
from folders import encoder_folder, random_model, tiny_model, transformer_folder
from questions import (
    HELP,
    LONG,
    OTHER,
    SOURCE,
    TEXT,
    VERBS,
    VIEWS,
    WITHOUT_MODEL,
    WRITTEN,
    about_encoder,
    about_models,
    about_run,
    about_stacks,
    about_translation,
)
from safetensors.numpy import load_file

import cutaway
from cutaway import train

torch.set_num_threads(1)

PORTABLE = Path(__file__).with_name("portable.json")
KINDS = ("float32", "bfloat16", "int8", "int4")
CLOCK = ("time", "tokens_per_second", "seconds")
"""What a clock said, which is left out."""
IDS = [5, 17, 3, 200, 41, 7, 7, 90, 120, 5, 17, 3]
WORDS = ["the", "a", "fox", "bird", "hill", "river", "moon", "saw", "went", "found", "red", "small", "old", "and"]

Record = dict[str, Any]


# --- numbers


def digest(values: Any) -> Record:
    """An array, by the hash of its bytes, with a few numbers for a reader."""
    array = np.ascontiguousarray(values)
    few = [float(one) for one in array.reshape(-1)[:3]]
    found = {
        "shape": list(array.shape),
        "type": str(array.dtype),
        "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
    }
    return found | {"first": few, "sum": float(array.astype(np.float64).sum())}


# --- sections


def shapes() -> Iterator[tuple[str, Any]]:
    """Logits of the four shapes, by torch and by the native engine; only the smallest has all its layers."""
    for name, size in cutaway.SIZES.items():
        config = size if name == "gpt2" else size.but(layers=2, vocabulary=1_000, context=64)
        folder = random_model(name, config)
        lm = cutaway.load(folder, engine="torch")
        yield f"{name} logits", digest(lm.logits(IDS).numpy())
        yield f"{name} logits of a batch", [digest(one.numpy()) for one in lm.logits([IDS, IDS[:5]])]
        yield f"{name} torch", written(lm.generate(IDS, 4, temperature=0, seed=0))
        yield f"{name} trace", {one: digest(value) for one, value in last_block(lm, IDS)}
        del lm
        for kind in KINDS:
            lm = cutaway.load(folder, weights=kind, engine="native")
            yield f"{name} {kind}", written(lm.generate(IDS, 4, temperature=0, seed=0))
            yield f"{name} {kind} probabilities", probabilities(lm, IDS)
        (Path(folder) / "model.safetensors").unlink()


def probabilities(lm: cutaway.LanguageModel, ids: Any) -> Record:
    """Of every token, in the order of their ids."""
    found = sorted(lm.predict(ids, k=lm.config.vocabulary), key=lambda one: one.id)
    return digest(np.array([one.probability for one in found]))


def last_block(lm: cutaway.LanguageModel, text: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The intermediates before, in and after the second block."""
    trace = lm.trace(text)
    for name in trace:
        if not name.startswith("blocks.") or name.startswith("blocks.1."):
            yield name, trace[name].numpy()


def written(result: Any) -> Any:
    """One result or several, with all their fields."""
    return [asdict(one) for one in result] if isinstance(result, list) else asdict(result)


def sentences(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(4, 12))).capitalize() + "." for _ in range(count)]


def trainings() -> Iterator[tuple[str, Any]]:
    """Losses, samples and weights of small trainings, each in another way."""
    small = {
        "layers": 2, "width": 32, "heads": 2, "context": 32, "vocabulary": 300, "steps": 8, "batch": 4, "at_once": 2,
        "precision": "float32", "learning_rate": 0.01, "evaluate_every": 4, "checkpoint_every": 4, "sample_every": 4,
        "seed": 3, "threads": 1, "held_out": 0.1, "cache": "cache", "dropout": 0.1,
    }  # fmt: skip
    documents = [" ".join(sentences(8, seed)) for seed in range(40)]
    labelled = [{"text": one, "label": "yes" if "fox" in one else "no"} for one in sentences(80, 1)]
    pairs = [{"source": one, "target": one.upper()} for one in sentences(80, 2)]
    tuned = {name: small[name] for name in small if name not in ("layers", "width", "heads", "context", "vocabulary")}
    yield from training("language", texts=documents, **small)
    yield from training("muon", texts=documents, **small, optimizer="muon", schedule="wsd")
    yield from training("lora", texts=documents, **tuned, from_="language", lora={"rank": 2})
    yield from training("classification", records=labelled, task="classification", **small)
    yield from training("translation", records=pairs, task="translation", **(small | {"context": 64}))


def training(name: str, **settings: Any) -> Iterator[tuple[str, Any]]:
    train.run(name, **settings)
    for kind in ("metrics", "samples"):
        file = Path(name) / f"{kind}.jsonl"
        yield f"{name} {kind}", lines(file.read_text()) if file.exists() else None
    yield f"{name} recipe", (Path(name) / "recipe.toml").read_text()
    for file in sorted(Path(name).glob("*.safetensors")):
        yield f"{name} {file.name}", {one: digest(value) for one, value in load_file(file).items()}


def texts(name: str = "builtin") -> Iterator[tuple[str, Any]]:
    """What is written for fixed seeds, by the native engine, by torch and with rounded weights."""
    drawn = {"max_tokens": 24, "seed": 5}
    ways: dict[str, Record] = {
        "greedy": drawn | {"temperature": 0},
        "top-k": drawn | {"top_k": 5, "temperature": 0.8},
        "top-p": drawn | {"top_p": 0.8},
        "min-p": drawn | {"min_p": 0.1, "temperature": 1.5},
        "penalties": drawn | {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.2},
        "bias": drawn | {"logit_bias": {70: 5.0, 80: -float("inf")}},
        "beams": {"max_tokens": 12, "beams": 4, "best": 3, "length_penalty": 0.7},
        "samples": drawn | {"samples": 3},
        "stop": drawn | {"temperature": 0, "stop": ["saw", ". "]},
    }
    loaded = {"native": cutaway.load(name), "torch": cutaway.load(name, engine="torch")}
    loaded |= {kind: cutaway.load(name, weights=kind) for kind in ("int8", "int4")}
    for by, lm in loaded.items():
        for way, how in ways.items():
            yield f"{way}, {by}", written(lm.generate(TEXT, **how))
        batch = ["", "The", TEXT, LONG]
        yield f"batch, {by}", written(lm.generate(batch, **drawn, top_k=40))
        yield f"repetition, {by}", written(lm.generate("the fox saw the bird, " * 3, **drawn, temperature=0))
        stream = lm.stream(TEXT, **drawn)
        yield f"pieces, {by}", [list(stream), written(stream.result)]
        yield f"tokens, {by}", [str(one) for one in lm.stream(TEXT, **drawn).tokens()]
        yield f"predict, {by}", probabilities(lm, TEXT)
    prompt = (loaded["native"].ids(LONG) * 40)[: loaded["native"].config.context - 6]
    for by in ("native", "torch"):
        found = loaded[by].generate(prompt, max_tokens=16, seed=5, overflow="slide")
        yield f"slide, {by}", written(found)


def values(name: str = "builtin") -> Iterator[tuple[str, Any]]:
    """Every intermediate by its name; scores and embeddings."""
    lm = cutaway.load(name)
    trace = lm.trace(TEXT)
    yield "trace", {one: digest(trace[one].numpy()) for one in trace}
    yield "traces", [digest(one["logits"].numpy()) for one in lm.traces([TEXT, LONG], keep="logits")]
    yield "replaced", digest(lm.trace(TEXT, "logits", {"blocks.1.attention.heads": lambda x: x * 0})["logits"].numpy())
    yield "score", [asdict(one) for one in lm.score([TEXT, LONG], k=2)]
    yield "embed", digest(lm.embed([TEXT, LONG]).numpy())
    yield "logits", digest(lm.logits(LONG).numpy())


def files(name: str = "builtin") -> Iterator[tuple[str, Any]]:
    """What is written for other programs, byte by byte."""
    for kind in ("huggingface", "gguf-f16", "gguf-q8_0", "onnx", "cutaway-int8", "cutaway-float32"):
        out = Path("out" if kind == "huggingface" else f"{kind}.{kind.partition('-')[0]}")
        yield f"{kind}, said", command(["convert", name, "--to", kind, "-o", str(out), "--json"])
        found = sorted(out.iterdir()) if out.is_dir() else [out]
        yield kind, {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in found}


# --- the command line and the explorer


def command(args: list[str]) -> Record:
    """Run `python -m cutaway ...` in here; JSON is read, everything else is kept as it is."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf8"), io.TextIOWrapper(io.BytesIO(), encoding="utf8")
    argv, sys.argv, code = sys.argv, ["cutaway", *args], None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module("cutaway", run_name="__main__")
    except SystemExit as left:
        code = left.code
    finally:
        sys.argv = argv
    said, complaint = (one.buffer.getvalue().decode() for one in (out, err) if one.flush() is None)
    if code != 0:
        return {"code": code, "error": complaint}
    return {"json": lines(said)} if "--json" in args else {"text": said}


def lines(text: str) -> list[Any]:
    """JSON, a value a line or one over several, without what a clock said."""
    try:
        found = [json.loads(line) for line in text.splitlines()]
    except json.JSONDecodeError:
        found = [json.loads(text)]
    return [without_clock(one) for one in found]


def without_clock(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_clock(one) for key, one in value.items() if key not in CLOCK}
    return [without_clock(one) for one in value] if isinstance(value, list) else value


def views(name: str = "builtin", drawn: bool = True) -> Iterator[tuple[str, Any]]:
    """Every view of `cutaway inspect`, as JSON and as it is drawn in a terminal."""
    for view, args in VIEWS.items():
        yield view, command(["inspect", *args, "--model", name, "--json"])
        if drawn:
            yield f"{view}, drawn", command(["inspect", *args, "--model", name])


def verbs(name: str = "builtin") -> Iterator[tuple[str, Any]]:
    """The other verbs, as JSON."""
    Path("text.txt").write_text("\n".join([LONG, OTHER, *sentences(20, 9)]))
    for verb, args in VERBS.items():
        model = [] if verb in WITHOUT_MODEL or "--model" in args else ["--model", name]
        yield verb, command([*args, *model, "--json"])


def helps() -> Iterator[tuple[str, Any]]:
    """What every verb says of itself."""
    for verb in HELP:
        yield verb or "cutaway", command([*verb.split(), "--help"])


def explorer_app(folders: list[str]) -> Any:
    """The explorer's server: the one place here that must know where it lives."""
    for app, explorer in (("cutaway.serve.app", "cutaway.serve.explorer"), ("cutaway.serve", "cutaway.serve")):
        with contextlib.suppress(ImportError, AttributeError):
            create_app = importlib.import_module(app).create_app
            return create_app(importlib.import_module(explorer).Explorer(folders))
    raise SystemExit("The explorer's server has moved: say in explorer_app where it is now.")


def endpoints(name: str = "builtin") -> Iterator[tuple[str, Any]]:
    """Every address of the explorer, asked at least once."""
    from fastapi.testclient import TestClient

    app = explorer_app([name] if Path(name).is_dir() else [])
    client = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    asked: list[str] = []

    def ask(method: str, address: str, given: Record) -> Any:
        asked.append(f"{method} {address}")
        answer = client.get(address, params=given) if method == "GET" else client.post(address, json=given)
        if answer.headers["content-type"] == "application/json":
            return {"status": answer.status_code, "json": answer.json()}
        headers = {one: answer.headers[one] for one in ("content-type", "x-shape", "x-type") if one in answer.headers}
        return {"status": answer.status_code, **headers, "sha256": hashlib.sha256(answer.content).hexdigest()}

    def answers(questions: Any) -> Iterator[tuple[str, Any]]:
        for method, address, given in questions:
            asking = json.dumps(given, ensure_ascii=False)
            asking = asking if len(asking) < 160 else f"{asking[:80]}... {short_hash(asking)}"
            yield f"{method} {address} {asking}", ask(method, address, given)

    def wake(model: str) -> None:
        ask("POST", "/api/models", {"name": model})
        while ask("GET", "/api/models/waking", {"name": model})["json"]["phase"] not in ("awake", "failed"):
            time.sleep(0.05)

    wake(name)
    yield from answers(about_models(name))
    answer = ask("POST", "/api/tasks/answers", {"model": "translator", "text": "I am happy."})["json"]["id"]
    yield from answers([("GET", f"/api/tasks/answers/{answer}/between", {"layer": 1, "head": 1})])
    run = ask("POST", "/api/traces", {"model": name, "text": TEXT})
    yield "POST /api/traces", run
    names = {one: value.ndim == 3 for one, value in last_block(cutaway.load(name), TEXT)}
    yield from answers(about_run(run["json"]["id"], names))
    two_texts = {"text": SOURCE, "more": WRITTEN}
    for kind, model, given, about in (
        ("an encoder", encoder_folder(), {"text": TEXT}, about_encoder),
        ("two texts, recurrent", "rnn", two_texts, about_translation),
        ("two texts, a Transformer", transformer_folder(), two_texts, about_stacks),
    ):
        wake(model)
        run = ask("POST", "/api/traces", {"model": model, **given})
        yield f"POST /api/traces of {kind}", run
        yield from answers(about(model, run["json"]["id"]))
    known = app.openapi()["paths"]
    taken = {
        f"{method.upper()} {path}": sorted(one["name"] for one in told.get("parameters", []))
        for path, ways in known.items()
        for method, told in ways.items()
    }
    yield "addresses", taken
    patterns = {one: re.compile(re.sub(r"\{[^}]+\}", "[^/]+", one)) for one in taken}
    yield "never asked", [one for one, like in patterns.items() if not any(like.fullmatch(each) for each in asked)]


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# --- what holds on every machine


def portable() -> Iterator[tuple[str, Any]]:
    """Texts and ids that do not hang on a last digit, of random weights, and the structure of every answer."""
    name = tiny_model()
    for way, found in texts(name):
        if way.endswith("native") and not way.startswith(("predict", "tokens")):
            yield f"ids: {way.partition(',')[0]}", ids_of(found)
    lm = cutaway.load(name)
    yield "ids: a tokenizer that was trained", lm.ids(LONG)
    yield "ids: gpt2", cutaway.Tokenizer.load("gpt2").encode("A robot must obey the orders, 日本語 🦊 naïve  text\n\n")
    for size in cutaway.SIZES:
        [table] = command(["parameters", "--model", size, "--json"])["json"]
        yield (
            f"parameters: {size}",
            {"total": table["total"], "parts": table["parts"], "all": short_hash(json.dumps(table))},
        )
    yield "trace: names", {one: list(value.shape) for one, value in last_block(lm, TEXT)}
    for view, found in views(name, drawn=False):
        if run := found["json"][0].pop("run", None):  # the same in all of them
            yield "view: run", structure(run)
        yield f"view: {view}", structure(found["json"])
    for verb, found in verbs(name):
        if not verb.startswith("parameters"):
            yield f"verb: {verb}", structure(found)
    answers: dict[str, set[str]] = {}
    for address, found in endpoints(name):
        if address in ("addresses", "never asked"):
            yield f"endpoint: {address}", found
        else:
            asked = re.sub(r"/[0-9a-f]{16}", "/ID", re.sub(r"/walk/\w+", "/walk/STEP", address.partition(" {")[0]))
            answers.setdefault(asked, set()).add(structure(found))
    for asked, found in answers.items():
        yield f"endpoint: {asked}", sorted(found)


def ids_of(found: Any) -> Any:
    """Only the tokens of results, however they are nested."""
    if isinstance(found, list):
        return [ids_of(one) for one in found]
    return found["ids"] if isinstance(found, dict) else found


def structure(value: Any) -> str:
    """The keys of an answer and what stands under them, without the values: `{a: int, b: [float]}`."""
    if isinstance(value, list):
        return f"[{structure(value[0])}]" if value else "[]"
    if not isinstance(value, dict):
        return type(value).__name__
    if set(value) == {"id", "text", "bytes"}:
        return "Token"
    if set(value) == {"as", "value"}:
        return f"{value['as']}({structure(value['value'])})"
    if value and all(key.isdecimal() for key in value):
        return f"{{N: {structure(next(iter(value.values())))}}}"
    return "{" + ", ".join(f"{key}: {structure(one)}" for key, one in value.items()) + "}"


# --- writing and comparing

SECTIONS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "shapes": shapes, "trainings": trainings, "texts": texts, "values": values, "files": files, "views": views,
    "verbs": verbs, "helps": helps, "endpoints": endpoints,
}  # fmt: skip


def where() -> Record:
    """What exact numbers depend on besides the code."""
    lm = cutaway.load()
    weights = hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in lm.model.parameters())).hexdigest()
    machine = f"{platform.machine()} {platform.processor()}"
    return {"torch": torch.__version__, "numpy": np.__version__, "machine": machine, "built-in model": weights[:16]}


def record(sections: dict[str, Callable[[], Iterator[tuple[str, Any]]]]) -> Record:
    """Everything these sections say, each made in an empty folder with nothing of this machine's in reach."""
    print(f"cutaway in {Path(cutaway.__file__).parent}", file=sys.stderr)
    found: Record = {}
    for name, section in sections.items():
        begun = time.process_time()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ.update(CUTAWAY_HOME=f"{folder}/home", HF_HOME=f"{folder}/hub", XDG_CACHE_HOME=f"{folder}/cached")
            said = json.dumps({f"{name}: {entry}": value for entry, value in section()})
        entries = json.loads(said.replace(folder, "FOLDER"))
        refused = [one for one in entries.values() if isinstance(one, dict) and one.get("status", 200) != 200]
        refused += [one for one in entries.values() if isinstance(one, dict) and "code" in one]
        spent = f"{time.process_time() - begun:.0f} s of processor time"
        print(f"{name}: {len(entries)} entries, {len(refused)} of them mistakes refused, {spent}", file=sys.stderr)
        found |= entries
    return found


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Every place where two records differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            if key not in before or key not in after:
                yield f"{path}/{key} is only {'after' if key in after else 'before'}"
            else:
                yield from differences(before[key], after[key], f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}/{at}")
    elif json.dumps(before) != json.dumps(after):  # NaN is itself
        yield f"{path}: {before!r:.60} -> {after!r:.60}"


def compare(before: Record, after: Record) -> int:
    """Print the entries that differ; how many they are."""
    for line in differences(before["where"], after["where"]):
        print(f"not the same circumstances: {line}")
    sections = {name.partition(": ")[0] for name in after["entries"]}
    old = {name: value for name, value in before["entries"].items() if name.partition(": ")[0] in sections}
    count = 0
    for name in old | after["entries"]:
        if name not in old or name not in after["entries"]:
            print(f"{name}: only {'before' if name in old else 'after'}")
        elif found := list(differences(old[name], after["entries"][name])):
            print(f"{name}: {len(found)} differences", *found[:3], sep="\n    ")
        else:
            continue
        count += 1
    print(f"{count} of {len(old | after['entries'])} entries differ.")
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, help="the file to write")
    parser.add_argument("--compare", type=Path, metavar="BEFORE", help="say what differs from this file")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="only this section; repeatable")
    parser.add_argument("--portable", action="store_true", help="only what holds on every machine")
    given = parser.parse_args()
    if given.out is None and not given.portable:
        parser.error("name the file to write")
    if given.portable:
        out = (given.out or PORTABLE).resolve()
        entries = {name.removeprefix("portable: "): one for name, one in record({"portable": portable}).items()}
        each = [f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in entries.items()]
        out.write_text("{\n" + ",\n".join(each) + "\n}\n", encoding="utf8")  # an entry a line, for whoever reads diffs
        return
    before = json.loads(given.compare.read_text()) if given.compare else None
    out = given.out.resolve()
    after = {"where": where(), "entries": record({name: SECTIONS[name] for name in given.only or SECTIONS})}
    out.write_text(json.dumps(after, ensure_ascii=False, indent=1) + "\n", encoding="utf8")
    print(f"{len(after['entries'])} entries in {out}.")
    if before is not None:
        sys.exit(compare(before, after) > 0)


if __name__ == "__main__":
    main()
