"""The Transformer, from two texts to a score for every next token of the second, in the order of the article.

    encoder:  embedding + position -> block after block:  self-attention, add & norm;  feed-forward, add & norm
    decoder:  embedding + position -> block after block:  masked self-attention, add & norm;
              attention to what the encoder said, add & norm;  feed-forward, add & norm
    -> times the token embedding: one score for each entry of the vocabulary

A text is one sequence, `source <start> target` (see parts/pairs.py). `encode` reads the source, `decode` the target,
as much of it as is new: what the encoder said and what the decoder has read are its `State`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway.errors import CutawayError
from cutaway.models.transformer.shape import Shape
from cutaway.parts.attention import attend
from cutaway.parts.cache import Cache
from cutaway.parts.gelu import gelu_tanh
from cutaway.parts.mask import causal_mask
from cutaway.parts.pairs import join_on_the_right, side_by_side, take_apart
from cutaway.parts.trace import UNWATCHED, Trace, Watch

ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_tanh": gelu_tanh,
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
}


@dataclass
class State:
    """Where decoding is: what the encoder said of each row's source, and what the decoder has read of its target."""

    memory: Tensor
    """[row, source token, width]"""
    heard: Tensor
    """[row, source token]: True where there is a token of the source."""
    cache: Cache | None
    """The decoder's own keys and values; None where the target is read whole."""
    crossed: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Keys and values of the memory, a pair for each block of the decoder; computed when it is first looked at."""

    @property
    def batch(self) -> int:
        return len(self.memory)

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may be named twice."""
        self.memory, self.heard = self.memory[rows], self.heard[rows]
        self.crossed = [(keys[rows], values[rows]) for keys, values in self.crossed]
        if self.cache is not None:
            self.cache.select(rows)

    def join(self, other: State) -> None:
        """Put the rows of another state below these."""
        self.memory = join_on_the_right(self.memory, other.memory, 1)
        self.heard = join_on_the_right(self.heard, other.heard, 1)
        both = zip(self.crossed, other.crossed, strict=True)
        self.crossed = [
            (join_on_the_right(keys, more_keys, 2), join_on_the_right(values, more_values, 2))
            for (keys, values), (more_keys, more_values) in both
        ]
        assert self.cache is not None
        assert other.cache is not None
        self.cache.join(other.cache)


class Attention(nn.Module):
    """Each token of one sequence looks at those of another, or of its own, in several heads at once."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.heads, self.dropout = shape.heads, shape.dropout
        self.queries = nn.Linear(shape.width, shape.width)
        self.keys = nn.Linear(shape.width, shape.width)
        self.values = nn.Linear(shape.width, shape.width)
        self.projection = nn.Linear(shape.width, shape.width)

    def remember(self, x: Tensor, watch: Watch = UNWATCHED) -> tuple[Tensor, Tensor]:
        """The keys and values of what is looked at. Both [batch, head, key, head_width]"""
        return watch("keys", self.split(self.keys(x))), watch("values", self.split(self.values(x)))

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, watch: Watch = UNWATCHED) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        heads = attend(queries, keys, values, mask, dropout, watch)  # [batch, head, query, head_width]
        merged = watch("merged", heads.transpose(1, 2).flatten(-2))  # [batch, query, width]
        return watch("output", self.projection(merged))  # [batch, query, width]

    def split(self, x: Tensor) -> Tensor:
        """One long vector per token -> one short vector per token and head."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [batch, head, token, head_width]


class FeedForward(nn.Module):
    """Two layers with a non-linearity between them, the same for every token."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.widen = nn.Linear(shape.width, shape.mlp_width)
        self.activation = ACTIVATION[shape.activation]
        self.projection = nn.Linear(shape.mlp_width, shape.width)

    def forward(self, x: Tensor, watch: Watch = UNWATCHED) -> Tensor:
        hidden = watch("hidden", self.widen(x))  # [batch, token, mlp_width]
        activation = watch("activation", self.activation(hidden))
        return watch("output", self.projection(activation))  # [batch, token, width]


class Block(nn.Module):
    """What the blocks of both stacks have: every layer is added to what went into it, and normed before or after."""

    def __init__(self, shape: Shape, layers: tuple[str, ...]):
        super().__init__()
        self.pre, self.dropout = shape.norm == "pre", nn.Dropout(shape.dropout)
        self.norms = nn.ModuleDict({one: nn.LayerNorm(shape.width, eps=shape.norm_epsilon) for one in layers})

    def add_and_norm(self, name: str, x: Tensor, layer: Callable[[Tensor, Watch], Tensor], watch: Watch) -> Tensor:
        within, norm = watch.within(name), self.norms[name]
        if self.pre:
            output = layer(within("norm", norm(x)), within)
            return within("sum", x + self.dropout(output))
        output = layer(x, within)
        return within("norm", norm(within("sum", x + self.dropout(output))))


class EncoderBlock(Block):
    def __init__(self, shape: Shape):
        super().__init__(shape, ("attention", "mlp"))
        self.attention, self.mlp = Attention(shape), FeedForward(shape)

    def forward(self, x: Tensor, mask: Tensor, watch: Watch = UNWATCHED) -> Tensor:
        """[row, source token, width], through self-attention and the feed-forward network."""

        def look(x: Tensor, watch: Watch) -> Tensor:
            queries = watch("queries", self.attention.split(self.attention.queries(x)))
            return self.attention(queries, *self.attention.remember(x, watch), mask, watch)

        x = self.add_and_norm("attention", x, look, watch)
        return self.add_and_norm("mlp", x, self.mlp, watch)


class DecoderBlock(Block):
    def __init__(self, shape: Shape, layer: int):
        super().__init__(shape, ("attention", "cross", "mlp"))
        self.layer = layer
        self.attention, self.cross, self.mlp = Attention(shape), Attention(shape), FeedForward(shape)

    def forward(self, x: Tensor, mask: Tensor, state: State, watch: Watch = UNWATCHED) -> Tensor:
        """[row, target token, width], through masked self-attention, attention to the source, and feed-forward."""

        def look_back(x: Tensor, watch: Watch) -> Tensor:
            queries = watch("queries", self.attention.split(self.attention.queries(x)))
            keys, values = self.attention.remember(x, watch)
            if state.cache is not None:
                keys, values = state.cache.extend(self.layer, keys, values)
            return self.attention(queries, keys, values, mask, watch)

        def look_at_source(x: Tensor, watch: Watch) -> Tensor:
            queries = watch("queries", self.cross.split(self.cross.queries(x)))
            if self.layer == len(state.crossed):
                state.crossed.append(self.cross.remember(state.memory, watch))
            return self.cross(queries, *state.crossed[self.layer], state.heard[:, None, None], watch)

        x = self.add_and_norm("attention", x, look_back, watch)
        x = self.add_and_norm("cross", x, look_at_source, watch)
        return self.add_and_norm("mlp", x, self.mlp, watch)


class Stack(nn.Module):
    """Blocks one after the other, and with pre-norm one norm more."""

    def __init__(self, shape: Shape, blocks: list[Block]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon) if shape.final_norm else None


@dataclass(frozen=True)
class CacheShape:
    """What a cache of the decoder's keys and values asks of a shape."""

    context: int
    layers: int
    heads: int
    head_width: int


class Transformer(nn.Module):
    """The whole machine. `model(ids)` are the logits of a text `source <start> target`, zeros at the source."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.config = shape
        self.token_embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        self.encoder = Stack(shape, [EncoderBlock(shape) for _ in range(shape.layers)])
        self.decoder = Stack(shape, [DecoderBlock(shape, layer) for layer in range(shape.decoder_layers)])
        self.output_bias = nn.Parameter(torch.zeros(1, shape.vocabulary)) if shape.output_bias else None
        self.initialize()

    def forward(self, ids: Tensor, trace: Trace | None = None) -> Tensor:
        """Texts [row, token] -> logits [row, token, vocabulary]; at a source nothing is predicted, and zeros stand."""
        pairs = take_apart(ids, self.config.start)
        memory = self.encode(pairs.source, pairs.heard, trace)
        return pairs.spread(self.score(self.decode(pairs.target, State(memory, pairs.heard, None), trace), trace))

    def read(self, ids: Tensor) -> Tensor:
        """The same as vectors [row, token, width], before they are scored: the loss needs no more."""
        pairs = take_apart(ids, self.config.start)
        memory = self.encode(pairs.source, pairs.heard)
        return pairs.spread(self.decode(pairs.target, State(memory, pairs.heard, None)))

    def begin(self, sources: list[list[int]]) -> State:
        """The encoder reads these sources; what it says is where decoding begins."""
        weight, shape = self.token_embedding.weight, self.config
        source, heard = side_by_side(sources, weight.device)
        sizes = CacheShape(shape.context, shape.decoder_layers, shape.heads, shape.head_width)
        cache = Cache(sizes, len(sources), dtype=weight.dtype, device=weight.device)
        return State(self.encode(source, heard), heard, cache)

    def encode(self, source: Tensor, heard: Tensor, trace: Trace | None = None) -> Tensor:
        """What the encoder says of the source: [row, source token] -> [row, source token, width]."""
        watch: Watch = UNWATCHED if trace is None else trace.within("encoder")
        positions = torch.arange(source.shape[1], device=source.device)[None]
        x = self.embed(source, positions, watch, "source")
        for layer, block in enumerate(self.encoder.blocks):
            x = block(x, heard[:, None, None], watch.within(f"blocks.{layer}"))
        return x if self.encoder.final_norm is None else watch("final_norm", self.encoder.final_norm(x))

    def decode(self, target: Tensor, state: State, trace: Trace | None = None) -> Tensor:
        """What the decoder makes of the target's new tokens: [row, target token] -> [row, target token, width]."""
        watch: Watch = UNWATCHED if trace is None else trace.within("decoder")
        cache = state.cache
        past, padding = (0, None) if cache is None else (cache.length, cache.padding)
        columns = torch.arange(past, past + target.shape[1], device=target.device)[None]
        positions = columns if padding is None else (columns - padding[:, None]).clamp(min=0)
        mask = causal_mask(target.shape[1], past + target.shape[1], padding, target.device)
        x = self.embed(target, positions, watch, "target")
        for layer, block in enumerate(self.decoder.blocks):
            x = block(x, mask, state, watch.within(f"blocks.{layer}"))
        if cache is not None:
            cache.advance(target.shape[1])
        return x if self.decoder.final_norm is None else watch("final_norm", self.decoder.final_norm(x))

    def score(self, hidden: Tensor, trace: Trace | None = None) -> Tensor:
        """How well each entry of the vocabulary would follow: vectors [..., width] -> logits [..., vocabulary]."""
        logits = F.linear(hidden, self.token_embedding.weight)
        if self.output_bias is not None:
            logits = logits + self.output_bias[0]
        return logits if trace is None else trace("logits", logits)

    @property
    def output_matrix(self) -> Tensor | None:
        """What the vectors of `read` are multiplied by; None if that is not all that is done to them."""
        return self.token_embedding.weight if self.output_bias is None else None

    def embed(self, ids: Tensor, positions: Tensor, watch: Watch, which: str) -> Tensor:
        """A row of the embedding for each token, and the sinusoids of its position. [row, token, width]"""
        longest = int(positions.max()) + 1
        if longest > self.config.context:
            raise CutawayError(
                f"The {which} is {longest:,} tokens long, and this model has {self.config.context:,} positions for it. "
                "Split it into sentences."
            )
        x = watch("token_embedding", self.token_embedding(ids))
        if self.config.scaled:
            x = watch("scaled", x * math.sqrt(self.config.width))
        place = sinusoids(positions, self.config.width, self.config.positions).to(x)
        x = x + watch("position_embedding", place.expand_as(x))
        return self.dropout(watch("entry", x))

    @torch.no_grad()
    def initialize(self) -> None:
        """Embeddings of length about 1 before scaling, Xavier's matrices, biases of 0."""
        for name, parameter in self.named_parameters():
            if parameter.is_meta or "norm" in name:
                continue
            if name == "token_embedding.weight":
                parameter.normal_(std=self.config.width**-0.5)
            elif parameter.ndim == 2 and name != "output_bias":
                nn.init.xavier_uniform_(parameter)
            else:
                parameter.zero_()


def sinusoids(positions: Tensor, width: int, layout: str) -> Tensor:
    """Sine and cosine of each position at width / 2 frequencies: [...] -> [..., width].

    `interleaved`: sine and cosine of one frequency stand side by side. `halves`: all sines, then all cosines.
    """
    frequencies = 10_000 ** (-torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width)
    angles = positions[..., None] * frequencies  # [..., width / 2], in double precision: late positions turn often
    both = angles.sin(), angles.cos()
    return (torch.stack(both, dim=-1).flatten(-2) if layout == "interleaved" else torch.cat(both, dim=-1)).float()
