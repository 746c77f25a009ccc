"""Out to ONNX: the model as a graph that onnxruntime runs, with the keys and values it keeps as inputs and outputs.

The graph is the forward pass of model.py once more, operator by operator, and its values have the names a trace gives
them. Inputs and outputs are named as Hugging Face's exporters name them, so that what runs their files runs this one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

import cutaway
from cutaway.atomic import replacing
from cutaway.checkpoint.names import finite
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT, Attention, Block
from cutaway.models.gpt2.shape import Config

if TYPE_CHECKING:
    import onnx

LARGEST = 1_800_000_000
"""Weights of more bytes than this go into a second file: no ONNX file may reach 2 GiB."""
OPERATORS = 20  # the first set of operators with a Gelu
FORMAT = 9  # the file format that came with it; runtimes that know neither are older than 2024
PAGE = 4_096  # tensors in the second file begin at a page, so that they can be mapped instead of read


def write_onnx(model: GPT, path: Path, progress: Callable[[int, int], None] | None = None) -> None:
    """Write the model in float32, over 1.8 GB with the weights in `PATH.data`; `progress(done, total)` counts bytes.

    Inputs: `input_ids` and `position_ids` [batch, query], `attention_mask` [batch, past + query] with 0 for padding,
    and for each block `past_key_values.N.key` and `.value` [batch, head, past, head_width], where past may be 0.
    Outputs: `logits` [batch, query, vocabulary], and `present.N.key` and `.value` to hand back in with the next tokens.
    """
    path = Path(path)
    if path.is_dir():
        raise CutawayError(f"{path} is a folder: name the file to write, such as {path / 'model.onnx'}.")
    if model.config.relative:
        raise CutawayError(
            "This model has relative attention, which is not written to ONNX. "
            "A folder (--to huggingface) and a packed file (--to cutaway-int8) can carry it."
        )
    graph = build(model)
    total, done = sum(weight.nbytes for weight in graph.weights), 0

    def wrote(weight: Weight) -> None:
        nonlocal done
        done += weight.nbytes
        if progress is not None:
            progress(done, total)

    put = write_whole if total <= LARGEST else write_apart
    old = re.compile(re.escape(path.name) + r"(\.data)?")
    with replacing(path.parent, last=path.name, stale=old, size=total) as folder:
        put(graph, model.config, folder / path.name, wrote)


def beside(path: Path) -> Path:
    """Where the weights of a large model go."""
    return path.with_name(f"{path.name}.data")


def library() -> Any:
    """The `onnx` package."""
    try:
        import onnx
    except ImportError:
        raise CutawayError("Writing ONNX needs the onnx package: pip install 'cutaway[export]'") from None
    return onnx


@dataclass(frozen=True)
class Weight:
    """A tensor of the file. It stays the model's own until it is written: there is never a second copy of the model."""

    name: str
    tensor: Tensor
    transposed: bool

    @property
    def shape(self) -> list[int]:
        return list(self.tensor.shape)[:: -1 if self.transposed else 1]

    @property
    def nbytes(self) -> int:
        return 4 * self.tensor.numel()

    def values(self) -> np.ndarray[Any, Any]:
        tensor = self.tensor.detach().to("cpu", torch.float32)
        if not finite(tensor):
            raise CutawayError(
                f"{self.name} holds values that are not numbers (NaN or infinite): this model is broken."
            )
        return (tensor.T if self.transposed else tensor).contiguous().numpy().astype("<f4", copy=False)


@dataclass
class Graph:
    """The operators so far, and the weights and constants they use. A value goes by the name of what made it."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def add(self, name: str, operator: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(library().helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def weight(self, name: str, tensor: Tensor, transposed: bool = False) -> str:
        self.weights.append(Weight(name, tensor, transposed))
        return name

    def constant(self, value: float | int | list[int]) -> str:
        name = f"constant.{value}"
        array = np.array(value, dtype=np.float32 if isinstance(value, float) else np.int64)
        self.constants[name] = library().numpy_helper.from_array(array, name)
        return name

    def linear(self, name: str, x: str, weights: str, layer: nn.Linear) -> str:
        product = self.add(
            f"{name}.product", "MatMul", x, self.weight(f"{weights}.weight", layer.weight, transposed=True)
        )
        return self.add(name, "Add", product, self.weight(f"{weights}.bias", layer.bias))

    def norm(self, name: str, x: str, weights: str, layer: nn.LayerNorm) -> str:
        weight, bias = self.weight(f"{weights}.weight", layer.weight), self.weight(f"{weights}.bias", layer.bias)
        return self.add(name, "LayerNormalization", x, weight, bias, axis=-1, epsilon=layer.eps)


def build(model: GPT) -> Graph:
    """The whole machine: `input_ids` to `logits`."""
    graph, config = Graph(), model.config
    embedding = graph.weight("token_embedding.weight", model.token_embedding.weight)
    assert model.position_embedding is not None  # see `write_onnx`
    positions = graph.weight("position_embedding.weight", model.position_embedding.weight)
    tokens = graph.add("token_embedding", "Gather", embedding, "input_ids")  # [batch, query, width]
    places = graph.add("position_embedding", "Gather", positions, "position_ids")  # [batch, query, width]
    residual = graph.add("residual.0", "Add", tokens, places)

    mask = causal_mask(graph)
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        residual = add_block(graph, config, layer, block, residual, mask)

    norm = graph.norm("final_norm", residual, "final_norm", model.final_norm)
    rows = graph.add("final_norm.rows", "Reshape", norm, graph.constant([-1, config.width]))  # [batch x query, width]
    matrix = embedding if model.output is None else graph.weight("output.weight", model.output.weight)
    scores = graph.add("logits.rows", "Gemm", rows, matrix, transB=1)  # the embedding as it is: no second one, turned
    shape = graph.add("input_ids.shape", "Shape", "input_ids")
    shape = graph.add("logits.shape", "Concat", shape, graph.constant([config.vocabulary]), axis=0)
    graph.add("logits", "Reshape", scores, shape)  # [batch, query, vocabulary]
    return graph


def causal_mask(graph: Graph) -> str:
    """0 where a query may look at a key and a very large negative number at the future and at padding."""
    zero, one, first = graph.constant(0), graph.constant(1), graph.constant([0])
    keys = graph.add("mask.keys", "Squeeze", graph.add("mask.key_shape", "Shape", "attention_mask", start=1), first)
    queries = graph.add("mask.queries", "Squeeze", graph.add("mask.query_shape", "Shape", "input_ids", start=1), first)
    past = graph.add("mask.past", "Sub", keys, queries)
    key = graph.add("mask.key", "Range", zero, keys, one)  # [key]
    query = graph.add("mask.query", "Range", past, keys, one)  # [query]
    query = graph.add("mask.query_column", "Unsqueeze", query, graph.constant([1]))  # [query, 1]
    seen = graph.add("mask.seen", "LessOrEqual", key, query)  # [query, key]
    real = graph.add("mask.real", "Cast", "attention_mask", to=library().TensorProto.BOOL)  # [batch, key]
    real = graph.add("mask.real_rows", "Unsqueeze", real, graph.constant([1, 2]))  # [batch, 1, 1, key]
    allowed = graph.add("mask.allowed", "And", real, seen)  # [batch, 1, query, key]
    return graph.add("mask", "Where", allowed, graph.constant(0.0), graph.constant(float(np.finfo(np.float32).min)))


def add_block(graph: Graph, config: Config, layer: int, block: Block, residual: str, mask: str) -> str:
    """Layer norm, attention, add; layer norm, MLP, add."""
    here = f"blocks.{layer}"
    norm = graph.norm(f"{here}.attention.norm", residual, f"{here}.attention_norm", block.attention_norm)
    looked = add_attention(graph, config, layer, block.attention, norm, mask)
    residual = graph.add(f"{here}.residual.middle", "Add", residual, looked)

    norm = graph.norm(f"{here}.mlp.norm", residual, f"{here}.mlp_norm", block.mlp_norm)
    hidden = graph.linear(f"{here}.mlp.hidden", norm, f"{here}.mlp.widen", block.mlp.widen)
    active = add_activation(graph, f"{here}.mlp.activation", config.activation, hidden)
    thought = graph.linear(f"{here}.mlp.output", active, f"{here}.mlp.projection", block.mlp.projection)
    return graph.add(f"{here}.residual", "Add", residual, thought)  # [batch, query, width]


def add_attention(graph: Graph, config: Config, layer: int, attention: Attention, x: str, mask: str) -> str:
    """Score, mask, softmax, weighted sum of values; the keys and values are also put out, after those that came in."""
    here = f"blocks.{layer}.attention"
    together = graph.linear(f"{here}.together", x, f"{here}.queries_keys_values", attention.queries_keys_values)
    parts = [f"{here}.{part}" for part in ("queries", "keys", "values")]
    flat = [f"{part}.flat" for part in parts]
    graph.nodes.append(
        library().helper.make_node("Split", [together], flat, name=f"{here}.split", axis=-1, num_outputs=3)
    )
    heads = graph.constant([0, 0, config.heads, config.head_width])
    for part in parts:
        split = graph.add(f"{part}.split", "Reshape", f"{part}.flat", heads)  # [batch, query, head, head_width]
        graph.add(part, "Transpose", split, perm=[0, 2, 1, 3])  # [batch, head, query, head_width]
    queries, keys, values = parts
    keys = graph.add(f"present.{layer}.key", "Concat", f"past_key_values.{layer}.key", keys, axis=2)
    values = graph.add(f"present.{layer}.value", "Concat", f"past_key_values.{layer}.value", values, axis=2)

    turned = graph.add(f"{here}.keys.turned", "Transpose", keys, perm=[0, 1, 3, 2])  # [batch, head, head_width, key]
    product = graph.add(f"{here}.product", "MatMul", queries, turned)
    scores = graph.add(
        f"{here}.scores", "Mul", product, graph.constant(float(attention.scale))
    )  # [batch, head, query, key]
    masked = graph.add(f"{here}.masked", "Add", scores, mask)
    weights = graph.add(f"{here}.weights", "Softmax", masked, axis=-1)
    looked = graph.add(f"{here}.heads", "MatMul", weights, values)  # [batch, head, query, head_width]

    rows = graph.add(f"{here}.heads.rows", "Transpose", looked, perm=[0, 2, 1, 3])
    merged = graph.add(f"{here}.merged", "Reshape", rows, graph.constant([0, 0, config.width]))  # [batch, query, width]
    return graph.linear(f"{here}.output", merged, f"{here}.projection", attention.projection)


def add_activation(graph: Graph, name: str, activation: str, x: str) -> str:
    if activation == "silu":
        return graph.add(name, "Mul", x, graph.add(f"{name}.sigmoid", "Sigmoid", x))
    if activation == "relu":
        return graph.add(name, "Relu", x)
    return graph.add(name, "Gelu", x, approximate="tanh" if activation == "gelu_tanh" else "none")


def describe(graph: Graph, config: Config) -> onnx.ModelProto:
    """Everything but the weights: the graph, what goes in and out, and where the file comes from."""
    helper, kind = library().helper, library().TensorProto
    inputs = [
        helper.make_tensor_value_info("input_ids", kind.INT64, ["batch", "query"]),
        helper.make_tensor_value_info("attention_mask", kind.INT64, ["batch", "past + query"]),
        helper.make_tensor_value_info("position_ids", kind.INT64, ["batch", "query"]),
    ]
    outputs = [helper.make_tensor_value_info("logits", kind.FLOAT, ["batch", "query", config.vocabulary])]
    for layer in range(config.layers):
        for part in ("key", "value"):
            past, present = (["batch", config.heads, length, config.head_width] for length in ("past", "past + query"))
            inputs.append(helper.make_tensor_value_info(f"past_key_values.{layer}.{part}", kind.FLOAT, past))
            outputs.append(helper.make_tensor_value_info(f"present.{layer}.{part}", kind.FLOAT, present))
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "gpt2", inputs, outputs, list(graph.constants.values())),
        opset_imports=[helper.make_opsetid("", OPERATORS)],
        ir_version=FORMAT,
        producer_name="cutaway",
        producer_version=cutaway.__version__,
        doc_string=f"GPT-2, {config.layers} blocks of width {config.width}; keys and values go in and come out",
    )
    facts = {"architecture": "gpt2", "context": config.context, "end_token": config.end}
    helper.set_model_props(proto, {name: str(value) for name, value in facts.items()})
    return proto


def write_whole(graph: Graph, config: Config, path: Path, wrote: Callable[[Weight], None]) -> None:
    """One file. The frame around the weights is written here, because the library would first copy them all, twice."""
    proto, tensor = describe(graph, config), library().TensorProto
    body = proto.graph.SerializeToString()
    frames = []
    for weight in graph.weights:
        label = tensor(name=weight.name, dims=weight.shape, data_type=tensor.FLOAT).SerializeToString()
        label += prefix(tensor.RAW_DATA_FIELD_NUMBER, weight.nbytes)
        frames.append(prefix(proto.graph.INITIALIZER_FIELD_NUMBER, len(label) + weight.nbytes) + label)
    length = len(body) + sum(map(len, frames)) + sum(weight.nbytes for weight in graph.weights)
    number = proto.GRAPH_FIELD_NUMBER
    proto.ClearField("graph")
    with path.open("wb") as file:
        file.write(proto.SerializeToString() + prefix(number, length) + body)
        for frame, weight in zip(frames, graph.weights, strict=True):
            file.write(frame)
            file.write(weight.values().data)
            wrote(weight)


def prefix(number: int, length: int) -> bytes:
    """What stands before a field of so many bytes in a protobuf message: number and length, 7 bits to a byte."""
    result = bytearray()
    for value in (number << 3 | 2, length):
        while value > 127:
            result.append(value & 127 | 128)
            value >>= 7
        result.append(value)
    return bytes(result)


def write_apart(graph: Graph, config: Config, path: Path, wrote: Callable[[Weight], None]) -> None:
    """Two files: the graph, and the weights that it names by their place in the other."""
    proto, tensor = describe(graph, config), library().TensorProto
    with beside(path).open("wb") as file:
        for weight in graph.weights:
            offset = -(-file.tell() // PAGE) * PAGE
            file.seek(offset)
            file.write(weight.values().data)
            wrote(weight)
            entry = proto.graph.initializer.add(name=weight.name, dims=weight.shape, data_type=tensor.FLOAT)
            entry.data_location = tensor.EXTERNAL
            for key, value in {"location": beside(path).name, "offset": offset, "length": weight.nbytes}.items():
                entry.external_data.add(key=key, value=str(value))
    path.write_bytes(proto.SerializeToString())
