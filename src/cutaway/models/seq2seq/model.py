"""A recurrent translator, in the order of the article.

    encoder:  the embedding of each word goes in, one after the other; a hidden state comes out of each step
    decoder:  begins with the encoder's last hidden state; the embedding of the word before goes in, a hidden state h
              comes out.  With attention:  a score for each hidden state of the encoder -> softmax -> their weighted
              sum, the context c;  [h; c] through a feed-forward layer
    -> times the token embedding: one score for each entry of the vocabulary

A text is one sequence, `source <start> target` (see parts/pairs.py). Each layer's whole row of steps is torch's fused
GRU or LSTM; what it gives is the hidden state after every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from cutaway.models.seq2seq.shape import Shape
from cutaway.parts.pairs import join_on_the_right, side_by_side, take_apart
from cutaway.parts.trace import UNWATCHED, Trace, Watch


@dataclass
class State:
    """Where decoding is: what the encoder said of each row's source, and the decoder's hidden states."""

    hidden: list[tuple[Tensor, ...]]
    """For each layer the hidden state, and of an LSTM the cell's, each [row, width]."""
    memory: Tensor
    """Every hidden state of the encoder's last layer, [row, source token, width]. Without attention nobody looks."""
    heard: Tensor
    """[row, source token]: True where there is a token of the source."""

    @property
    def batch(self) -> int:
        return len(self.memory)

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may be named twice."""
        self.hidden = [tuple(one[rows] for one in layer) for layer in self.hidden]
        self.memory, self.heard = self.memory[rows], self.heard[rows]

    def join(self, other: State) -> None:
        """Put the rows of another state below these."""
        both = zip(self.hidden, other.hidden, strict=True)
        self.hidden = [tuple(map(torch.cat, zip(mine, theirs, strict=True))) for mine, theirs in both]
        self.memory = join_on_the_right(self.memory, other.memory, 1)
        self.heard = join_on_the_right(self.heard, other.heard, 1)


class Block(nn.Module):
    """One recurrent layer: vectors in, one after the other, and a hidden state after each."""

    def __init__(self, shape: Shape, bidirectional: bool = False):
        super().__init__()
        kind = nn.GRU if shape.cell == "gru" else nn.LSTM
        own = shape.width // 2 if bidirectional else shape.width
        self.cell = kind(shape.width, own, batch_first=True, bidirectional=bidirectional)

    def forward(self, x: Tensor, hidden: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """[row, token, width] after these states -> the hidden state after every token, and the states at the end."""
        before = tuple(one[None] for one in hidden)
        states, after = self.cell(x, before if isinstance(self.cell, nn.LSTM) else before[0])
        return states, tuple(one[0] for one in as_tuple(after))

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same from the beginning, for rows of unequal length; the states at each row's own end."""
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, after = self.cell(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        return states, tuple(torch.cat(list(one), dim=-1) for one in as_tuple(after))  # both directions side by side


class Attention(nn.Module):
    """How well each hidden state of the encoder fits the decoder's: a number for each pair."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.additive = shape.attention == "additive"
        self.keys = nn.Linear(shape.width, shape.width, bias=False)
        if self.additive:
            self.queries = nn.Linear(shape.width, shape.width, bias=False)
            self.vector = nn.Linear(shape.width, 1, bias=False)

    def forward(self, hidden: Tensor, state: State, watch: Watch = UNWATCHED) -> Tensor:
        """The context of each hidden state [row, target token, width]: a weighted sum of the encoder's."""
        keys = self.keys(state.memory)  # [row, source token, width]
        if self.additive:
            pairs = torch.tanh(self.queries(hidden)[:, :, None] + keys[:, None])  # [row, target, source, width]
            scores = self.vector(pairs)[..., 0]
        else:
            scores = hidden @ keys.mT
        scores = watch("scores", scores)  # [row, target token, source token]
        masked = watch("masked", scores.masked_fill(~state.heard[:, None], torch.finfo(scores.dtype).min))
        weights = watch("weights", masked.softmax(dim=-1))  # each row sums to 1
        return watch("context", weights @ state.memory)  # [row, target token, width]


class Stack(nn.Module):
    """Recurrent layers, the hidden states of each going into the next."""

    def __init__(self, shape: Shape, bidirectional: bool = False):
        super().__init__()
        self.blocks = nn.ModuleList(Block(shape, bidirectional) for _ in range(shape.layers))


class Seq2Seq(nn.Module):
    """The whole machine. `model(ids)` are the logits of a text `source <start> target`, zeros at the source."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.config = shape
        self.token_embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        self.encoder = Stack(shape, shape.bidirectional)
        self.decoder = Stack(shape)
        self.attention = None if shape.attention == "none" else Attention(shape)
        wide = shape.width if self.attention is None else 2 * shape.width
        self.feed_forward = nn.Linear(wide, shape.width)
        self.output_bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.initialize()

    def forward(self, ids: Tensor, trace: Trace | None = None) -> Tensor:
        """Texts [row, token] -> logits [row, token, vocabulary]; at a source nothing is predicted, and zeros stand."""
        pairs = take_apart(ids, self.config.start)
        state = self.encode(pairs.source, pairs.heard, trace)
        return pairs.spread(self.score(self.decode(pairs.target, state, trace), trace))

    def begin(self, sources: list[list[int]]) -> State:
        """The encoder reads these sources; what it says is where decoding begins."""
        return self.encode(*side_by_side(sources, self.token_embedding.weight.device))

    def encode(self, source: Tensor, heard: Tensor, trace: Trace | None = None) -> State:
        """Words in one by one [row, source token]: the hidden states, and with the last of them decoding begins."""
        watch: Watch = UNWATCHED if trace is None else trace.within("encoder")
        x = watch("token_embedding", self.token_embedding(source))  # [row, source token, width]
        last = []
        for layer, block in enumerate(self.encoder.blocks):
            x, after = cast(Block, block).read(self.dropout(x), heard.sum(dim=1))
            x = watch(f"blocks.{layer}.hidden", x)
            last.append((watch(f"blocks.{layer}.last", after[0]), *after[1:]))
        return State(last, x, heard)

    def decode(self, target: Tensor, state: State, trace: Trace | None = None) -> Tensor:
        """What the decoder makes of the target's new words: [row, target token] -> [row, target token, width]."""
        watch: Watch = UNWATCHED if trace is None else trace.within("decoder")
        x = watch("token_embedding", self.token_embedding(target))  # [row, target token, width]
        for layer, block in enumerate(self.decoder.blocks):
            x, state.hidden[layer] = block(self.dropout(x), state.hidden[layer])
            x = watch(f"blocks.{layer}.hidden", x)  # h, after every word
        if self.attention is not None:
            context = self.attention(x, state, watch.within("attention"))  # c, for every h
            x = watch("joined", torch.cat([x, context], dim=-1))  # [h; c]
        return watch("output", torch.tanh(self.feed_forward(self.dropout(x))))

    def score(self, hidden: Tensor, trace: Trace | None = None) -> Tensor:
        """How well each entry of the vocabulary would follow: vectors [..., width] -> logits [..., vocabulary]."""
        logits = F.linear(self.dropout(hidden), self.token_embedding.weight, self.output_bias)
        return logits if trace is None else trace("logits", logits)

    @torch.no_grad()
    def initialize(self) -> None:
        """Small normal embeddings; orthogonal matrices from state to state, a block for each gate."""
        for name, parameter in self.named_parameters():
            if parameter.is_meta:
                continue
            if name == "token_embedding.weight":
                parameter.normal_(std=self.config.width**-0.5)
            elif parameter.ndim < 2:
                parameter.zero_()
            elif "weight_hh" in name:
                for gate in parameter.chunk(self.config.gates):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(parameter)


def as_tuple(after: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A GRU ends with its hidden state, an LSTM with that and its cell's."""
    return after if isinstance(after, tuple) else (after,)
