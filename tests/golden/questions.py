"""What is asked of the command line and of the explorer: questions that suit a tiny model as well as the built-in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

TEXT = "Once upon a time, there was a little fox. The fox saw a"
OTHER = "Once upon a time, there was a little bird. The bird saw a"
SOURCE = "The fox runs."
WRITTEN = [5, 17, 3]
"""What a decoder has written already."""
LONG = f"{TEXT} bird and the bird saw the fox. One day the fox went to the bird and the bird was happy."

VIEWS: dict[str, list[str]] = {
    "attention": ["attention", TEXT, "--layer", "1", "--head", "1"],
    "attention at": ["attention", TEXT, "--position", "-1"],
    "heads": ["heads", TEXT],
    "roles": ["roles", "--tokens", "8", "--texts", "2"],
    "path": ["path", TEXT],
    "path against": ["path", TEXT, "--token", "id:70", "--against", "id:80", "--position", "3"],
    "lens": ["lens", TEXT, "-k", "3", "--watch", "id:70", "--watch", "id:80"],
    "saliency": ["saliency", TEXT],
    "saliency written": ["saliency", "Once upon a", "--write", "3"],
    "saliency integrated": ["saliency", "Once upon", "-c", " a time", "--method", "integrated", "--steps", "4"],
    "neurons": ["neurons", TEXT, "--layer", "1", "-k", "4"],
    "groups": ["groups", TEXT, "--count", "4", "--layer", "1"],
    "factors": ["factors", TEXT, "--count", "3", "--layer", "1"],
    "change head": ["change", TEXT, "--ablate-head", "1.1", "--ablate-neuron", "0.5", "--at", "2"],
    "change steer": ["change", TEXT, "--steer", "1", "--toward", " fox", "--away", " bird"],
    "change push": ["change", TEXT, "--push", "1", "--toward", " fox", "--strength", "2"],
    "change patch": ["change", TEXT, "--patch", "blocks.0.residual", "--from", OTHER],
    "sweep": ["sweep", TEXT, OTHER, "--for", "id:70"],
    "sweep head": ["sweep", TEXT, OTHER, "--for", "id:70", "--against", "id:80", "--what", "head"],
    "edges": ["edges", TEXT, OTHER, "--for", "id:70"],
    "paths": ["paths", TEXT, OTHER, "--for", "id:70", "--to", "output"],
    "direct": ["direct", TEXT],
    "senses": ["senses", TEXT, "--other", OTHER, "--word", "little", "-k", "3"],
    "contexts": ["contexts", "--layer", "1", "--unit", "3"],
    "cache": ["cache", TEXT, "--max-tokens", "5"],
    "beams": ["beams", TEXT, "--beams", "3", "--max-tokens", "4"],
    "parameters": ["parameters", "blocks.1.mlp.widen.weight", "--size", "12"],
}

VERBS: dict[str, list[str]] = {
    "predict": ["predict", TEXT, "-k", "5", "--score"],
    "predict nothing": ["predict", ""],
    "tokens": ["tokens", "A robot must obey the orders, 日本語 🦊 naïve<|endoftext|>", "--special"],
    "tokens gpt2": ["tokens", "A robot must obey the orders, 日本語 🦊 naïve", "--tokenizer", "gpt2"],
    "parameters": ["parameters"],
    "parameters gpt2": ["parameters", "--model", "gpt2"],
    "parameters gpt2-medium": ["parameters", "--model", "gpt2-medium"],
    "parameters gpt2-large": ["parameters", "--model", "gpt2-large"],
    "parameters gpt2-xl": ["parameters", "--model", "gpt2-xl"],
    "generate": ["generate", TEXT, "--seed", "3", "-n", "12", "--top-p", "0.9"],
    "generate samples": ["generate", TEXT, "--seed", "3", "-n", "6", "--samples", "2", "-k", "5"],
    "evaluate": ["evaluate", "--on", "text.txt", "--window", "32"],
    "translate": ["translate", "I am happy."],
    "translate to English": ["translate", "Je suis heureux.", "--beams", "2"],
    "classify": ["classify", "A warm and funny film."],
    "summarize": ["summarize", "The bank said on Monday that it raised its prime lending rate to 8 pct from 7.5 pct."],
    "a mistake": ["predict", TEXT, "--count", "0"],
    "a wrong option": ["generate", "--temprature", "1"],
    "no such layer": ["inspect", "attention", TEXT, "--layer", "99"],
}
WITHOUT_MODEL = ("tokens gpt2", "translate", "translate to English", "classify", "summarize", "a wrong option")

OTHERS = ("gaps", "sentences", "translation", "attentions", "unrolled", "stacks", "learned", "sinusoids")
"""Views of other models than the questions above are asked of: the explorer alone is asked for these."""

HELP = (
    "", "explore", "serve", "generate", "predict", "tokens", "parameters", "train", "evaluate", "translate",
    "summarize", "classify", "fill", "embed", "words", "compose", "pull", "convert", "bench", "tour", "inspect",
    "inspect change", *(f"inspect {name}" for name in (*VIEWS, *OTHERS) if " " not in name),
)  # fmt: skip

STEPS = (
    "whole", "token", "embedding", "position", "entry", "attention_norm", "made", "split", "scores", "mask", "softmax",
    "mix", "merge", "projection", "attention_residual", "mlp_norm", "widen", "activation", "narrow", "mlp_residual",
    "final_norm", "logits", "choice",
)  # fmt: skip

FACTS: tuple[dict[str, dict[str, Any]], ...] = (
    {
        "place": {"of": "place", "at": "little"},
        "next": {"of": "next", "at": "fox"},
        "branches": {"of": "branches"},
        "cut": {"of": "cut", "word": "little"},
        "alike": {"of": "alike", "at": "fox"},
        "looking": {"of": "looking", "start": "saw", "end": "fox"},
        "kinds": {"of": "kinds"},
        "neurons": {"of": "neurons", "layer": 1},
    },
    {
        "added": {"of": "added", "layer": 1},
        "layers": {"of": "layers"},
        "temperatures": {"of": "temperatures"},
        "size": {"of": "size"},
        "cause": {"of": "cause"},
        "race": {"of": "race", "one": " fox", "other": " bird"},
        "missed": {"of": "missed"},
    },
)

CHANGES: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"kind": "ablate_head", "layer": 1, "head": 1}, {"kind": "ablate_neuron", "layer": 0, "neuron": 5}],
    [{"kind": "steer", "layer": 1, "toward": " fox", "away": " bird"}],
    [{"kind": "toward", "layer": 1, "token": " fox", "strength": 2.0, "position": 2}],
    [{"kind": "patch", "name": "blocks.0.residual", "text": OTHER}],
)

ANSWERS: tuple[dict[str, Any], ...] = (
    {"model": "translator", "text": "I am happy."},
    {"model": "classifier", "text": "A warm and funny film."},
    {"model": "summarizer", "text": "The bank said it raised its prime lending rate to 8 pct.", "beams": 2},
    {"model": "choice", "text": "The fox was hungry.", "others": ["It ate a fish.", "It ate a stone."]},
    {"model": "entailment", "text": "The fox sleeps.", "others": ["The fox is awake."]},
    {"model": "nobody", "text": "A text."},
)

Question = tuple[str, str, dict[str, Any]]
"""GET or POST, the address, and what is asked: parameters or a body."""


def about_models(model: str) -> Iterable[Question]:
    """What needs no run."""
    yield "GET", "/api/health", {}
    yield "GET", "/api/progress", {}
    yield "GET", "/api/tour", {}
    yield "GET", "/api/models", {}
    yield "POST", "/api/models", {"name": model}
    yield "GET", "/api/models/waking", {"name": model}
    yield "GET", "/api/models/waking", {"name": "nobody"}
    yield "GET", "/api/models/map", {"name": model}
    yield "GET", "/api/contest", {}
    yield "POST", "/api/contest/entries", {"model": "rnn", "text": "I am happy.", "beams": 2}
    yield "POST", "/api/tokens", {"model": model, "text": TEXT, "ids": [70, 80]}
    yield "POST", "/api/traces", {"model": model, "text": TEXT, "more": [70], "changes": CHANGES[1]}
    yield "POST", "/api/traces", {"model": model, "text": LONG * 30}
    yield "POST", "/api/traces", {"model": "nobody", "text": TEXT}
    sides = {"left": {"model": model, "text": TEXT}, "right": {"model": model, "text": f"Now {TEXT}"}}
    for of in ("next", "attention", "layers", "causes", "neurons", "stream", "weights"):
        yield "POST", "/api/beside", {**sides, "of": of, "layer": 1, "head": 1}
    yield "POST", "/api/branches", {"model": model, "text": TEXT, "paths": [[70, 80], [90]]}
    for facts in FACTS:
        yield "POST", "/api/facts", {"model": model, "text": TEXT, "facts": facts}
    yield "GET", "/api/weights", {"model": model}
    yield "GET", "/api/weights", {"size": "gpt2"}
    yield "GET", "/api/weights/sizes", {}
    matrix = "blocks.1.attention.projection.weight"
    yield "GET", "/api/weights/matrix", {"model": model, "name": matrix, "size": 12, "bins": 9}
    yield "GET", "/api/weights/pictures", {"model": model, "name": [matrix, "token_embedding.weight"], "size": 8}
    for example in ("words", "mixture", "loop", "batch"):
        yield "GET", f"/api/gallery/{example}", {"name": model}
    yield "GET", "/api/weights/neighbours", {"model": model, "word": "fox", "k": 4}
    yield "GET", "/api/weights/waves", {"model": model}
    yield "POST", "/api/learning", {"text": ""}  # a training has tests of its own; here: what is refused
    yield "POST", "/api/learning/nobody/show", {"step": 1}
    yield "POST", "/api/learning/nobody/open", {"step": 1}
    for asked in ("matrix", "cell", "sample"):
        yield "GET", f"/api/learning/nobody/{asked}", {"name": matrix}
    yield "GET", "/api/piano", {"model": model}
    yield "POST", "/api/piano/read", {"this": "is no MIDI file"}
    yield "POST", "/api/piano/notes", {"notes": [[0.0, 0.5, 60, 80]]}
    yield "POST", "/api/piano/midi", {"events": []}
    yield "POST", "/api/piano/compose", {"model": model, "events": []}  # it reads no events: refused
    yield "GET", "/api/tasks", {}
    for answer in ANSWERS:
        yield "POST", "/api/tasks/answers", answer


def about_run(key: str, names: dict[str, bool]) -> Iterable[Question]:
    """What is asked of one run; `names` are its intermediates, and whether they are divided into heads."""
    at = f"/api/traces/{key}"
    yield "GET", f"{at}/predict", {}
    yield "GET", f"{at}/predict", {"position": 2, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "dice": 0.5}
    yield "GET", f"{at}/ahead", {}
    yield "GET", f"{at}/heads", {}
    yield "GET", f"{at}/heads", {"layer": 1, "picture": 4}
    yield "GET", f"{at}/looking", {"position": 5, "key": 1}
    for stage in ("scores", "masked", "weights"):
        yield "GET", f"{at}/attention/{stage}", {"layer": 1, "head": 1}
    yield "GET", f"{at}/attention", {"layer": 1, "head": 1, "position": -1}
    yield "GET", f"{at}/attention", {"layer": 99, "head": 1, "position": -1}
    yield "GET", f"{at}/lens", {"first": 2, "count": 3, "k": 3, "watch": [70, 80]}
    yield "GET", f"{at}/attention", {"layer": 1, "head": 1, "position": 2, "attended": 4, "parts": "queries,keys"}
    yield "GET", f"{at}/path", {"position": 3, "token": 70, "against": 80}
    yield "GET", f"{at}/roles", {"tokens": 8, "texts": 2}
    yield "GET", f"{at}/cache", {"max_tokens": 4}
    yield "GET", f"{at}/parameters", {"name": "blocks.1.mlp.widen.weight", "size": 12}
    yield "GET", f"{at}/saliency", {"target": 5}
    yield "GET", f"{at}/saliency", {"target": 5, "method": "integrated", "steps": 4}
    yield "GET", f"{at}/saliency", {"target": 5, "method": "occlusion", "against": 80, "span": True}
    yield "GET", f"{at}/sweep", {"what": "head", "how": "zero", "layer": [1]}
    yield "GET", f"{at}/edges", {"corrupted": OTHER, "token": 70}
    yield "GET", f"{at}/paths", {"corrupted": OTHER, "token": 70, "to": ["mlp 1"]}
    yield "GET", f"{at}/direct", {}
    yield "GET", f"{at}/contexts", {"layer": 1, "unit": 3}
    yield "GET", f"{at}/senses", {"other": OTHER, "word": "little", "k": 3}
    yield "GET", f"{at}/activations", {"layer": 1}
    yield "GET", f"{at}/neurons", {"layer": [1], "top": 4}
    yield "GET", f"{at}/neuron", {"layer": 1, "neuron": 5}
    yield "GET", f"{at}/groups", {"count": 4, "layer": [1]}
    yield "GET", f"{at}/factors", {"count": 3, "layer": [1]}
    yield "GET", f"{at}/writing", {"max_tokens": 5, "k": 4, "seed": 2}
    yield "GET", f"{at}/beams", {"beams": 3, "max_tokens": 4}
    for changes in CHANGES:
        yield "POST", f"{at}/change", {"changes": changes, "k": 4}
    yield "GET", f"{at}/table", {"name": "blocks.1.attention.weights", "head": 1}
    yield "GET", f"{at}/machine/folded", {"name": ["residual.0", "blocks.1.mlp.output"], "count": 4, "cells": 8}
    yield "GET", f"{at}/machine/looks", {"name": "blocks.1.attention.weights", "k": 3}
    yield "GET", f"{at}/machine/rows", {"name": "blocks.1.attention.weights", "position": 2}
    yield "GET", f"{at}/machine/expected", {"first": 1, "count": 3}
    for step in (*STEPS, "nowhere"):
        yield "GET", f"{at}/walk/{step}", {"layer": 1, "head": 1, "position": 4, "limit": 8}
    for name, by_head in names.items():
        head = {"head": 1} if by_head else {}
        yield "GET", f"{at}/values", {"name": name, "position": 4, **head}
        yield "GET", f"{at}/explain", {"name": name, "position": 4, "column": 2, "terms": 4, **head}
    for name in ("probabilities", "blocks.1.attention.norm.standardized", "nothing"):
        yield "GET", f"{at}/explain", {"name": name, "position": 4, "column": 2}
    yield "GET", f"{at}/notes", {}
    yield "GET", "/api/traces/forgotten/predict", {}


def about_encoder(model: str, key: str) -> Iterable[Question]:
    """What is asked of a run of a model that reads both ways."""
    at = f"/api/traces/{key}"
    yield "POST", f"{at}/gaps", {"hide": [2, 4], "k": 3}
    yield "POST", f"{at}/gaps", {"hide": [0]}  # it frames the text: refused
    yield "POST", f"{at}/sentences", {"texts": [OTHER, LONG]}
    yield "GET", f"{at}/senses", {"other": OTHER}
    yield "POST", "/api/both_ways", {"model": model, "text": TEXT, "layer": 1, "head": 2}
    yield "POST", "/api/both_ways", {"model": "nobody", "text": TEXT}


def about_translation(model: str, key: str) -> Iterable[Question]:
    """What is asked of a source and a target in a recurrent model; a Transformer's views are refused."""
    at = f"/api/traces/{key}"
    yield "GET", f"{at}/translation", {"k": 3, "max_tokens": 8}
    yield "GET", f"{at}/translation", {"beams": 2, "k": 3, "max_tokens": 8}
    yield "GET", f"{at}/attentions", {}
    yield "GET", f"{at}/attentions", {"of": "decoder"}
    yield "GET", f"{at}/unrolled", {}
    yield "GET", f"{at}/learned", {"reference": "Le renard court.", "k": 3}
    yield "GET", f"{at}/stacks", {}
    yield "GET", f"{at}/lens", {}


def about_stacks(model: str, key: str) -> Iterable[Question]:
    """What is asked of them in a Transformer."""
    at = f"/api/traces/{key}"
    for of in ("cross", "encoder", "decoder"):
        yield "GET", f"{at}/attentions", {"of": of, "layer": 1}
    yield "GET", f"{at}/stacks", {"word": 1, "row": 2}
    yield "GET", f"{at}/sinusoids", {"layout": "halves", "positions": 8, "width": 6}
    yield "GET", f"{at}/unrolled", {}
