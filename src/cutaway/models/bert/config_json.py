"""BERT and DistilBERT in Hugging Face's folders: `config.json` in both directions, and what is odd in their files."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.models.bert.shape import Config

FIELDS = {
    "bert": {
        "vocab_size": "vocabulary", "max_position_embeddings": "context", "hidden_size": "width",
        "num_hidden_layers": "layers", "num_attention_heads": "heads", "intermediate_size": "mlp_width",
        "type_vocab_size": "segments",
    },
    "distilbert": {
        "vocab_size": "vocabulary", "max_position_embeddings": "context", "dim": "width", "n_layers": "layers",
        "n_heads": "heads", "hidden_dim": "mlp_width",
    },
}  # fmt: skip
USUAL = {
    "bert": Config(),
    "distilbert": Config(layers=6, segments=0, dialect="distilbert"),
}
"""What is left out of a `config.json` is as `transformers` has it."""
CLASSES = {"bert": "Bert", "distilbert": "DistilBert"}
ARCHITECTURES = {
    "Model": "", "ForMaskedLM": "words", "ForPreTraining": "pretraining", "ForNextSentencePrediction": "next",
    "ForSequenceClassification": "classes", "ForMultipleChoice": "classes", "ForQuestionAnswering": "span",
    "ForTokenClassification": "tags",
}  # fmt: skip
"""The head that each class of `transformers` has, by the end of its name."""
ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "silu",
    "swish": "silu",
}  # fmt: skip
BUFFER = re.compile(r"embeddings\.(position_ids|token_type_ids)")
COPIES = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "vocab_projector.weight": "embeddings.word_embeddings.weight",
}
"""The output matrix and its bias may be stored once more under names of their own."""
TOP = re.compile(r"(cls|classifier|qa_outputs|pre_classifier|vocab_\w+)\.")
"""How the names of a head's tensors begin: no prefix stands before them."""
OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""What TensorFlow called a norm's numbers, and old files still do."""


def read_shape(given: Mapping[str, Any]) -> Config:
    """The shape that a `config.json` states. What stands on top, `with_head` sees better, from the tensors."""
    dialect = str(given.get("model_type", "bert"))
    usual, given = USUAL[dialect], {field: value for field, value in given.items() if value is not None}
    if given.get("is_decoder") or given.get("add_cross_attention"):
        raise CutawayError("is_decoder or add_cross_attention is true: a BERT that writes is not supported.")
    if given.get("position_embedding_type", "absolute") != "absolute":
        raise CutawayError(
            f"position_embedding_type is {given['position_embedding_type']!r}: only absolute is supported."
        )
    for field in FIELDS[dialect]:
        if field in given and (type(given[field]) is not int or given[field] < 1):
            raise CutawayError(f"{field} must be a whole number of 1 or more, not {given[field]!r}.")
    activation = str(given.get("hidden_act", given.get("activation", "gelu")))
    if activation not in ACTIVATIONS:
        raise CutawayError(f"the activation {activation!r} is not known.{nearest(activation, ACTIVATIONS)}")
    epsilon = given.get("layer_norm_eps", 1e-12) if dialect == "bert" else 1e-12
    dropout = given.get("hidden_dropout_prob", given.get("dropout", 0.1))
    for field, value, most in (("layer_norm_eps", epsilon, math.inf), ("the dropout", dropout, 1)):
        if isinstance(value, bool) or not isinstance(value, float | int) or not 0 <= value < most:
            raise CutawayError(f"{field} must be a number of 0 or more, not {value!r}.")
    separator = given.get("sep_token_id")
    return usual.but(
        **{ours: given[theirs] for theirs, ours in FIELDS[dialect].items() if theirs in given},
        activation=ACTIVATIONS[activation],
        norm_epsilon=float(epsilon),
        dropout=float(dropout),
        head=named_head(given),
        labels=count_labels(given),
        tied=given.get("tie_word_embeddings", True) is not False,
        end_token=separator if type(separator) is int else None,
    )


def named_head(given: Mapping[str, Any]) -> str:
    """The head that `architectures` names; none, where it names none that is known."""
    for name in given.get("architectures") or ():
        for end, head in ARCHITECTURES.items():
            if str(name) in (f"Bert{end}", f"DistilBert{end}"):
                return head
    return ""


def count_labels(given: Mapping[str, Any]) -> int:
    labels = given.get("id2label")
    count = len(labels) if isinstance(labels, dict) and labels else given.get("num_labels", 2)
    if "BertForMultipleChoice" in (given.get("architectures") or ()):
        return 1
    if type(count) is not int or count < 1:
        raise CutawayError(f"num_labels must be a whole number of 1 or more, not {count!r}.")
    return count


def with_head(shape: Config, stored: Collection[str]) -> Config:
    """The shape with the head, and the pooler, that a file's tensors show: `architectures` tells less, or is wrong."""
    names = {plain_name(one) for one in stored}
    words = bool(names & {"cls.predictions.transform.dense.weight", "vocab_transform.weight"})
    follows = "cls.seq_relationship.weight" in names
    pooled = bool(names & {"pooler.dense.weight", "pre_classifier.weight"})
    head = ""
    if words or follows:
        head = "pretraining" if words and follows else "words" if words else "next"
    elif "qa_outputs.weight" in names:
        head = "span"
    elif "classifier.weight" in names:
        head = "classes" if pooled and shape.head != "tags" else "tags"
    return shape.but(head=head, pooler=pooled)


def plain_name(stored: str) -> str:
    """A tensor's name in a file as the table has it: without the prefix, and a norm's numbers by their newer names."""
    plain = stored.removeprefix("bert.").removeprefix("distilbert.")
    for old, new in OLD.items():
        plain = plain.removesuffix(old) + new if plain.endswith(old) else plain
    return plain


def file_name(shape: Config, plain: str) -> str:
    """The name in a file that `transformers` writes: under a head, the stack has a prefix."""
    return plain if not shape.head or TOP.match(plain) else f"{shape.dialect}.{plain}"


def write_shape(config: Config) -> dict[str, Any]:
    """`config.json` for such a model."""
    activation = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == config.activation)
    end = next(end for end, head in ARCHITECTURES.items() if head == config.head)
    written = {
        "architectures": [f"{CLASSES[config.dialect]}{end}"],
        "model_type": config.dialect,
        **{theirs: getattr(config, ours) for theirs, ours in FIELDS[config.dialect].items()},
        "tie_word_embeddings": config.tied,
        "pad_token_id": 0,
    }
    if config.distilled:
        written |= {"activation": activation, "dropout": config.dropout, "attention_dropout": config.dropout}
    else:
        written |= {
            "hidden_act": activation,
            "hidden_dropout_prob": config.dropout,
            "attention_probs_dropout_prob": config.dropout,
            "layer_norm_eps": config.norm_epsilon,
        }
    if config.end_token is not None:
        written["sep_token_id"] = config.end_token
    if config.head in ("classes", "tags"):
        names = [f"LABEL_{number}" for number in range(config.labels)]
        written["id2label"] = {str(number): name for number, name in enumerate(names)}
        written["label2id"] = {name: number for number, name in enumerate(names)}
    return written
