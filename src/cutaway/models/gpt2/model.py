"""GPT-2, from token ids to a score for every next token, in the order of the article.

    a row of the token embedding + a row of the position embedding
    -> block after block:  layer norm, masked self-attention, add;  layer norm, MLP, add
    -> final layer norm
    -> times the token embedding: one score for each entry of the vocabulary

Every step has a name. `trace` (see trace.py) is told each value under its name and may keep or replace it; without one
the same code runs the fused attention kernel and nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway.errors import CutawayError
from cutaway.models.gpt2.shape import Config
from cutaway.parts.cache import Cache
from cutaway.parts.gelu import gelu_tanh
from cutaway.parts.mask import causal_mask
from cutaway.parts.trace import UNWATCHED, Trace, Watch

ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_tanh": gelu_tanh,
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
}
BLOCK = 256
"""How many queries at a time meet keys and distances where attention is relative."""


class Attention(nn.Module):
    """Masked self-attention: each token looks at itself and at those before it, in several heads at once."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.layer, self.heads, self.dropout = layer, config.heads, config.dropout
        self.scale = 1 / math.sqrt(config.head_width) / (layer + 1 if config.scale_by_layer else 1)
        self.queries_keys_values = nn.Linear(config.width, 3 * config.width)
        self.projection = nn.Linear(config.width, config.width)
        shape = (config.heads, config.context, config.head_width)  # the last row is for the token itself, distance 0
        self.distances = nn.Parameter(torch.empty(shape)) if config.relative else None

    def forward(self, x: Tensor, mask: Tensor | None, cache: Cache | None, watch: Watch = UNWATCHED) -> Tensor:
        queries, keys, values = self.queries_keys_values(x).chunk(3, dim=-1)  # each [batch, query, width]
        queries = watch("queries", self.split(queries))  # [batch, head, query, head_width]
        keys = watch("keys", self.split(keys))
        values = watch("values", self.split(values))
        if cache is not None:
            keys, values = cache.extend(self.layer, keys, values)  # [batch, head, key, head_width]

        if watch.watching:
            heads = self.attend_step_by_step(queries, keys, values, mask, watch)  # [batch, head, query, head_width]
        else:
            heads = self.attend(queries, keys, values, mask)

        merged = watch("merged", heads.transpose(1, 2).flatten(-2))  # [batch, query, width]
        return watch("output", self.projection(merged))  # [batch, query, width]

    def split(self, x: Tensor) -> Tensor:
        """One long vector per token -> one short vector per token and head."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [batch, head, query, head_width]

    def attend_step_by_step(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, watch: Watch
    ) -> Tensor:
        """Attention as the article draws it: score, mask, softmax, weighted sum of values."""
        if mask is None:
            mask = causal_mask(queries.shape[2], keys.shape[2], None, queries.device)
        scores = watch("scores", queries @ keys.transpose(-1, -2) * self.scale)  # [batch, head, query, key]
        if self.distances is not None:
            relative = watch("relative", self.by_distance(queries, keys.shape[2]))  # [batch, head, query, key]
            scores = watch("placed", scores + relative)
        masked = watch("masked", scores.masked_fill(~mask, torch.finfo(scores.dtype).min))  # [batch, head, query, key]
        weights = watch("weights", masked.softmax(dim=-1))  # [batch, head, query, key]; each row sums to 1
        weights = F.dropout(weights, self.dropout, self.training)
        return watch("heads", weights @ values)  # [batch, head, query, head_width]

    def by_distance(self, queries: Tensor, keys: int) -> Tensor:
        """What each query makes of how far back each key stands; of keys still to come, nonsense to be masked.

        Music Transformer's skewing: every query meets every distance in one product, then each row moves to where its
        own distances lie. [query, key] is all that is ever held, not [query, key, head_width].
        """
        assert self.distances is not None
        rows = self.distances[:, -keys:]  # [head, distance, head_width], the farthest first
        rows = F.pad(rows, (0, 0, keys - rows.shape[1], 0))  # padding alone stands farther back than that
        met = queries @ rows.transpose(-1, -2) * self.scale  # [batch, head, query, distance]
        count = met.shape[2]
        return F.pad(met, (1, 0)).flatten(-2)[..., count:].unflatten(-1, (count, keys))  # [batch, head, query, key]

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """The same in one fused step, without ever holding the scores."""
        learning = queries.requires_grad and torch.is_grad_enabled() and queries.device.type == "cpu"
        if self.distances is not None or (learning and queries.dtype == torch.bfloat16):
            return self.attend_by_blocks(queries, keys, values, mask)
        alone = queries.shape[2] == 1  # one new token may look at everything there is
        dropout = self.dropout if self.training else 0.0
        if mask is None and not alone and queries.shape[2] != keys.shape[2]:
            mask = causal_mask(queries.shape[2], keys.shape[2], None, queries.device)
        return F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=mask,
            dropout_p=dropout,
            is_causal=mask is None and not alone,
            scale=self.scale,
        )

    def attend_by_blocks(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """The same step by step, but some queries at a time: these need no keys that come after the last of them.

        Nothing fused adds distances and learns them. A block's scores stay in the processor's cache, and nearly half
        of all scores, which the mask would take away, are never computed: 2.4 times as fast in training (2 x 256 on 4
        windows of 1,024). Learning in bfloat16 on a processor goes this way, too: torch's fused step has no products of
        bfloat16 there (two to three times as fast on one core of a Zen 5, both ways, at 256 to 1,024 tokens).
        """
        past = keys.shape[2] - queries.shape[2]
        found = []
        for start in range(0, queries.shape[2], BLOCK):
            end = min(start + BLOCK, queries.shape[2])
            seen = past + end
            part = None if mask is None else mask[..., start:end, :seen]
            found.append(
                self.attend_step_by_step(
                    queries[:, :, start:end], keys[:, :, :seen], values[:, :, :seen], part, UNWATCHED
                )
            )
        return torch.cat(found, dim=2) if len(found) > 1 else found[0]


class MLP(nn.Module):
    """Two layers with a non-linearity between them: four times wider, and back."""

    def __init__(self, config: Config):
        super().__init__()
        self.widen = nn.Linear(config.width, config.mlp_width)
        self.activation = ACTIVATION[config.activation]
        self.projection = nn.Linear(config.mlp_width, config.width)

    def forward(self, x: Tensor, watch: Watch = UNWATCHED) -> Tensor:
        hidden = watch("hidden", self.widen(x))  # [batch, query, mlp_width]
        activation = watch("activation", self.activation(hidden))  # [batch, query, mlp_width]
        return watch("output", self.projection(activation))  # [batch, query, width]


class Block(nn.Module):
    """One floor of the stack. It reads the residual stream twice and adds to it twice."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.attention = Attention(config, layer)
        self.mlp_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.mlp = MLP(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, residual: Tensor, mask: Tensor | None = None, cache: Cache | None = None, watch: Watch = UNWATCHED
    ) -> Tensor:
        attention, mlp = watch.within("attention"), watch.within("mlp")
        norm = attention("norm", self.attention_norm(residual))
        residual = watch("residual.middle", residual + self.dropout(self.attention(norm, mask, cache, attention)))
        norm = mlp("norm", self.mlp_norm(residual))
        return watch("residual", residual + self.dropout(self.mlp(norm, mlp)))  # [batch, query, width]


class GPT(nn.Module):
    """The whole machine. `model(ids)` is the logits; `read` and `score` are its two halves."""

    cached = True
    """See `Cached` in models/architecture.py."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.position_embedding = None if config.relative else nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.final_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.output = None if config.tied else nn.Linear(config.width, config.vocabulary, bias=False)
        self.initialize()

    def forward(
        self,
        ids: Tensor,
        cache: Cache | None = None,
        trace: Trace | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        """Token ids [batch, query] -> logits [batch, query, vocabulary]."""
        return self.score(self.read(ids, cache, trace, padding), trace)

    def read(
        self,
        ids: Tensor,
        cache: Cache | None = None,
        trace: Trace | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        """Carry the tokens up the stack: ids [batch, query] -> vectors after the final norm [batch, query, width].

        With a cache the ids are the new tokens only. `padding` [batch] says how many columns on the left of each row
        are no tokens at all (the cache remembers it): they are never looked at, and positions count from the first
        real one.
        """
        watch: Watch = UNWATCHED if trace is None else trace
        past = 0 if cache is None else cache.length
        padding = cache.padding if cache is not None else padding
        positions, mask = self.places(ids, past, padding)

        tokens = watch("token_embedding", self.token_embedding(ids))  # [batch, query, width]
        residual = tokens
        if self.position_embedding is not None:
            residual = residual + watch("position_embedding", self.position_embedding(positions).expand_as(tokens))
        residual = watch("residual.0", self.dropout(residual))  # [batch, query, width]

        for layer, block in enumerate(self.blocks):
            residual = block(residual, mask, cache, watch.within(f"blocks.{layer}"))
        if cache is not None:
            cache.advance(ids.shape[1])

        return watch("final_norm", self.final_norm(residual))  # [batch, query, width]

    def score(self, hidden: Tensor, trace: Trace | None = None) -> Tensor:
        """How well each entry of the vocabulary would follow: vectors [..., width] -> logits [..., vocabulary]."""
        logits = F.linear(hidden, self.output_matrix)
        return logits if trace is None else trace("logits", logits)

    @property
    def output_matrix(self) -> Tensor:
        return self.token_embedding.weight if self.output is None else self.output.weight  # [vocabulary, width]

    def places(self, ids: Tensor, past: int, padding: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Which position each token has, and (when some rows are padded) which columns it may look at."""
        end = past + ids.shape[1]
        columns = torch.arange(past, end, device=ids.device)
        shift = 0 if padding is None else int(padding.min())
        if end - shift > self.config.context:
            raise CutawayError(
                f"{end - shift:,} tokens do not fit: this model has {self.config.context:,} positions. "
                "Shorten the text, or let generation slide its window (overflow='slide')."
            )
        if padding is None:
            return columns[None], None
        positions = (columns[None] - padding[:, None]).clamp(min=0)  # [batch, query]
        return positions, causal_mask(ids.shape[1], end, padding, ids.device)

    @torch.no_grad()
    def initialize(self) -> None:
        """GPT-2's start: small normal weights, smaller still where 2 x layers of them add into the residual stream."""
        for name, parameter in self.named_parameters():
            if parameter.is_meta or "norm" in name:
                continue
            if name.endswith("bias"):
                parameter.zero_()
            elif name.endswith("projection.weight"):
                parameter.normal_(std=0.02 / math.sqrt(2 * self.config.layers))
            else:
                parameter.normal_(std=0.02)
