"""BERT, from token ids to a vector for every token, and what stands on top of them, in the order of the article.

    a row of the token embedding + a row of the position embedding + a row of the segment embedding, layer norm
    -> block after block:  self-attention in both directions, add, layer norm;  MLP, add, layer norm
    -> on top: scores for the word behind [MASK]; or, of the pooled first token, for the text; or for every token

Every step has a name. `trace` (see parts/trace.py) is told each value under its name and may keep or replace it;
without one the same code runs the fused attention kernel and nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway.errors import CutawayError
from cutaway.models.bert.shape import Config
from cutaway.parts.gelu import gelu_tanh
from cutaway.parts.trace import UNWATCHED, Trace, Watch

ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "relu": F.relu,
    "silu": F.silu,
}


class Attention(nn.Module):
    """Self-attention in both directions: each token looks at all, before it and after it, in several heads at once."""

    def __init__(self, config: Config):
        super().__init__()
        self.heads, self.dropout, self.scale = config.heads, config.dropout, 1 / math.sqrt(config.head_width)
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.projection = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor, mask: Tensor | None, watch: Watch = UNWATCHED) -> Tensor:
        queries = watch("queries", self.split(self.query(x)))  # [batch, head, token, head_width]
        keys = watch("keys", self.split(self.key(x)))
        values = watch("values", self.split(self.value(x)))
        if watch.watching:
            heads = self.attend_step_by_step(queries, keys, values, mask, watch)  # [batch, head, token, head_width]
        else:
            dropout = self.dropout if self.training else 0.0
            heads = F.scaled_dot_product_attention(queries, keys, values, mask, dropout, scale=self.scale)
        merged = watch("merged", heads.transpose(1, 2).flatten(-2))  # [batch, token, width]
        return watch("output", self.projection(merged))  # [batch, token, width]

    def split(self, x: Tensor) -> Tensor:
        """One long vector per token -> one short vector per token and head."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [batch, head, token, head_width]

    def attend_step_by_step(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, watch: Watch
    ) -> Tensor:
        """Attention as the article draws it: score, softmax over all tokens, weighted sum of values."""
        scores = queries @ keys.transpose(-1, -2) * self.scale  # [batch, head, token, key]
        if mask is not None:  # padding is no token: nobody looks at it
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = watch("weights", watch("scores", scores).softmax(dim=-1))  # each row sums to 1
        weights = F.dropout(weights, self.dropout, self.training)
        return watch("heads", weights @ values)  # [batch, head, token, head_width]


class MLP(nn.Module):
    """Two layers with a non-linearity between them: four times wider, and back."""

    def __init__(self, config: Config):
        super().__init__()
        self.widen = nn.Linear(config.width, config.mlp_width)
        self.activation = ACTIVATION[config.activation]
        self.projection = nn.Linear(config.mlp_width, config.width)

    def forward(self, x: Tensor, watch: Watch = UNWATCHED) -> Tensor:
        hidden = watch("hidden", self.widen(x))  # [batch, token, mlp_width]
        activation = watch("activation", self.activation(hidden))  # [batch, token, mlp_width]
        return watch("output", self.projection(activation))  # [batch, token, width]


class Block(nn.Module):
    """One floor of the stack: each half adds to what came in, and a norm brings the sum back to size."""

    def __init__(self, config: Config):
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.mlp = MLP(config)
        self.mlp_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, residual: Tensor, mask: Tensor | None = None, watch: Watch = UNWATCHED) -> Tensor:
        attention, mlp = watch.within("attention"), watch.within("mlp")
        middle = watch("residual.middle", residual + self.dropout(self.attention(residual, mask, attention)))
        middle = attention("norm", self.attention_norm(middle))
        out = mlp("sum", middle + self.dropout(self.mlp(middle, mlp)))
        return watch("residual", self.mlp_norm(out))  # [batch, token, width]


class WordScores(nn.Module):
    """Vectors times the token embedding, plus a bias for each entry of the vocabulary."""

    def __init__(self, embedding: nn.Embedding):
        super().__init__()
        self.embedding = (embedding,)  # in a tuple it is not a part of this module: its matrix is the model's own
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    @property
    def weight(self) -> Tensor:
        return self.embedding[0].weight  # [vocabulary, width]

    def forward(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.weight, self.bias)


class Bert(nn.Module):
    """The whole machine. `read` gives the tokens' vectors, `model(ids)` what its head makes of them."""

    encoder = True
    """See `Encoder` in models/architecture.py."""

    def __init__(self, config: Config):
        super().__init__()
        self.config, width = config, config.width
        self.token_embedding = nn.Embedding(config.vocabulary, width)
        self.position_embedding = nn.Embedding(config.context, width)
        self.segment_embedding = nn.Embedding(config.segments, width) if config.segments else None
        self.embedding_norm = nn.LayerNorm(width, eps=config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        if config.pooler:
            self.pooler = nn.Linear(width, width)
        if config.scores_words:
            self.transform = nn.Linear(width, width)
            self.transform_norm = nn.LayerNorm(width, eps=config.norm_epsilon)
            self.output = WordScores(self.token_embedding) if config.tied else nn.Linear(width, config.vocabulary)
        if config.head in ("pretraining", "next"):
            self.next_sentence = nn.Linear(width, 2)
        if config.head in ("classes", "tags"):
            self.classifier = nn.Linear(width, config.labels)
        if config.head == "span":
            self.span = nn.Linear(width, 2)
        self.initialize()

    def forward(
        self, ids: Tensor, trace: Trace | None = None, segments: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """What the head makes of token ids [batch, token]; without a head, the tokens' vectors.

        Words: [batch, token, vocabulary]. Classes, or whether the second sentence follows: [batch, class]. Tags, or
        where the answer begins and ends: [batch, token, class].
        """
        hidden = self.read(ids, segments, mask, trace)
        match self.config.head:
            case "words" | "pretraining":
                return self.score(hidden, trace)
            case "classes":
                return self.classifier(self.dropout(self.pool(hidden)))
            case "next":
                return self.next_sentence(self.pool(hidden))
            case "tags":
                return self.classifier(self.dropout(hidden))
            case "span":
                return self.span(hidden)
        return hidden

    def read(
        self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None, trace: Trace | None = None
    ) -> Tensor:
        """Carry the tokens up the stack: ids [batch, token] -> vectors [batch, token, width].

        `segments` [batch, token] says which sentence each token belongs to (left out: see `segments_of`); `mask`
        [batch, token] is False where a row was filled up, on its right, with what is no token.
        """
        watch: Watch = UNWATCHED if trace is None else trace
        if ids.shape[1] > self.config.context:
            raise CutawayError(
                f"{ids.shape[1]:,} tokens do not fit: this model has {self.config.context:,} positions. "
                "Shorten the text."
            )
        attended = None if mask is None else mask.bool()[:, None, None]  # [batch, 1, 1, key]

        tokens = watch("token_embedding", self.token_embedding(ids))  # [batch, token, width]
        positions = self.position_embedding(torch.arange(ids.shape[1], device=ids.device)).expand_as(tokens)
        entry = watch("placed", tokens + watch("position_embedding", positions))
        if self.segment_embedding is not None:
            segments = self.segments_of(ids) if segments is None else segments
            entry = watch("entry", entry + watch("segment_embedding", self.segment_embedding(segments)))
        residual = watch("residual.0", self.dropout(self.embedding_norm(entry)))  # [batch, token, width]

        for layer, block in enumerate(self.blocks):
            residual = block(residual, attended, watch.within(f"blocks.{layer}"))
        return residual

    def segments_of(self, ids: Tensor) -> Tensor:
        """Which sentence each token belongs to, by BERT's rule: after the first [SEP] the second begins."""
        if self.config.end_token is None or self.config.segments < 2:
            return torch.zeros_like(ids)
        ends = ids == self.config.end_token
        return (ends.cumsum(1) - ends.long()).clamp(max=1)  # [batch, token]; a [SEP] belongs to what it ends

    def score(self, hidden: Tensor, trace: Trace | None = None) -> Tensor:
        """How well each entry of the vocabulary would stand there: vectors [..., width] -> logits [..., vocabulary]."""
        if not self.config.scores_words:
            raise CutawayError("This model has no head that scores words: it cannot fill in [MASK].")
        watch: Watch = UNWATCHED if trace is None else trace
        hidden = watch("transform.hidden", self.transform(hidden))
        hidden = watch("transform.activation", ACTIVATION[self.config.activation](hidden))
        return watch("logits", self.output(watch("final_norm", self.transform_norm(hidden))))

    def pool(self, hidden: Tensor) -> Tensor:
        """One vector for the text, made of its first token's: [batch, token, width] -> [batch, width]."""
        if not self.config.pooler:
            raise CutawayError("This model has no pooler, the layer that makes one vector of a text.")
        first = self.pooler(hidden[:, 0])
        return F.relu(first) if self.config.distilled else first.tanh()

    @torch.no_grad()
    def initialize(self) -> None:
        """BERT's start: small normal weights, no biases."""
        for name, parameter in self.named_parameters():
            if parameter.is_meta or "norm" in name:
                continue
            if name.endswith("bias"):
                parameter.zero_()
            else:
                parameter.normal_(std=0.02)
