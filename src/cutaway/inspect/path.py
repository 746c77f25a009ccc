"""A token's way up the stack: how its vector turns, and what each part adds to the score of a next token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.numbers import Array, Line, Table, Token, ViewResult, array
from cutaway.inspect.runs import Run


@dataclass(frozen=True)
class PathStep(ViewResult):
    """The vector after one step."""

    name: str
    norm: float
    to_before: float | None
    """The cosine between it and the vector one step before."""
    to_last: float
    """The cosine between it and the vector that leaves the last block."""


@dataclass(frozen=True)
class Path(ViewResult):
    """One token's journey: token, with its position, after attention and after the MLP of each block, final norm."""

    position: int
    steps: tuple[PathStep, ...]
    vectors: Array
    """The vector after each step. [step, width]"""
    hidden = ("vectors",)


@torch.no_grad()
def path(run: Run, position: int = -1) -> Path:
    """The vector of one token after each step, with its length and how it turns."""
    position = run.position(position)
    names = ["token_embedding", "residual.0"]
    for layer in range(run.lm.config.layers):
        names += [f"blocks.{layer}.residual.middle", f"blocks.{layer}.residual"]
    names.append("final_norm")
    vectors = torch.stack([run[name][position].float() for name in names])  # [step, width]
    before = F.cosine_similarity(vectors[1:], vectors[:-1], dim=-1).tolist()
    last = F.cosine_similarity(vectors, vectors[-2:-1], dim=-1).tolist()
    rows = zip(names, vectors.norm(dim=-1).tolist(), [None, *before], last, strict=True)
    return Path(position, tuple(PathStep(*row) for row in rows), array(vectors))


@dataclass(frozen=True)
class Attribution(ViewResult):
    """What each part adds to a token's logit, or to its lead over another's; together they are that number."""

    position: int
    token: Token
    against: Token | None
    logit: float
    embedding: float
    place: float
    """The position's vector."""
    heads: Table
    """[layer, head]"""
    attention_bias: Line
    """The bias of the projection, which belongs to no head. [layer]"""
    mlp: Line
    """The second layer of each MLP, without its bias. [layer]"""
    mlp_bias: Line
    """[layer]"""
    norm_bias: float
    """The shift of the final norm."""
    rest: float
    """What the parts leave: rounding, and what a change brought in from outside."""


@dataclass(frozen=True)
class Explained(ViewResult):
    """A token's way up the stack, and what each part on it adds to the logit of a next token."""

    path: Path
    attribution: Attribution


@torch.no_grad()
def attribution(
    run: Run, position: int = -1, token: int | str | None = None, against: int | str | None = None
) -> Attribution:
    """What the embedding, each head and each MLP add to the logit of a token after this position.

    The token is the one that comes next, unless another is named, by its text (`" ball"`) or its id. The stream is a
    sum, and the final norm is linear once its scale is held at what it was here; so each part's share is a dot product,
    and the shares add up.
    """
    model, position = run.lm.model, run.position(position)
    chosen = run.token(run.next(position) if token is None else token)
    other = None if against is None else run.token(against)
    matrix = model.output_matrix
    row = matrix[chosen.id].float() - (matrix[other.id].float() if other else 0)  # [width]
    last = run[f"blocks.{run.lm.config.layers - 1}.residual"][position].float()
    spread = (last.var(unbiased=False) + run.lm.config.norm_epsilon).sqrt()
    direction = row * model.final_norm.weight.float()
    direction = (direction - direction.mean()) / spread  # the norm takes the mean out: of the vector, or of this

    heads, mlp, attention_bias, mlp_bias = [], [], [], []
    for layer in range(run.lm.config.layers):
        projection, second = run.block(layer).attention.projection, run.block(layer).mlp.projection
        found = run[f"blocks.{layer}.attention.heads"][:, position].float()  # [head, head width]
        per_column = projection.weight.float().T @ direction  # [width]: the columns of the merged heads
        heads.append((found * per_column.view_as(found)).sum(-1))
        attention_bias.append(projection.bias.float() @ direction)
        mlp.append(run.activation(layer, position).float() @ (second.weight.float().T @ direction))
        mlp_bias.append(second.bias.float() @ direction)
    logits = run.logits([position])[0]
    logit = float(logits[chosen.id] - (logits[other.id] if other else 0))
    embedding = float(run["token_embedding"][position].float() @ direction)
    place = float(run["position_embedding"][position].float() @ direction)
    norm_bias = float(model.final_norm.bias.float() @ row)
    parts = [torch.stack(part) for part in (heads, attention_bias, mlp, mlp_bias)]
    total = embedding + place + norm_bias + sum(float(part.double().sum()) for part in parts)
    return Attribution(
        position,
        chosen,
        other,
        logit,
        embedding,
        place,
        heads=array(parts[0]),
        attention_bias=array(parts[1]),
        mlp=array(parts[2]),
        mlp_bias=array(parts[3]),
        norm_bias=norm_bias,
        rest=logit - total,
    )


@dataclass(frozen=True)
class Direct(ViewResult):
    """What each part adds to the logit of the next token, after every token of the text at once."""

    targets: tuple[Token, ...]
    """The token that each column is about."""
    against: Token | None
    parts: tuple[str, ...]
    """Embedding, position, each head, each MLP, and the biases by name; at last what they leave, which is rounding."""
    values: Table
    """In logits. [part, token]; a column adds up to its logit (or its lead over `against`)."""
    logits: Line
    """[token]"""

    def of(self, part: str) -> Array:
        """One part over the text. [token]"""
        if part not in self.parts:
            raise CutawayError(f"There is no part {part!r:.80}.{nearest(part, self.parts)}")
        return self.values[self.parts.index(part)]


@torch.no_grad()
def direct(run: Run, token: int | str | None = None, against: int | str | None = None) -> Direct:
    """Direct logit attribution over all positions: see `attribution`, of which this gives every column.

    The token is at each position the one that comes next, unless one is named for all of them.
    """
    model, layers = run.lm.model, run.lm.config.layers
    ids = [run.next(at) for at in range(len(run))] if token is None else [run.token(token).id] * len(run)
    other = None if against is None else run.token(against)
    matrix = model.output_matrix
    rows = matrix[ids].float() - (matrix[other.id].float() if other else 0)  # [token, width]
    spread = (run[f"blocks.{layers - 1}.residual"].float().var(-1, unbiased=False) + run.lm.config.norm_epsilon).sqrt()
    directions = rows * model.final_norm.weight.float()
    directions = (directions - directions.mean(-1, keepdim=True)) / spread[:, None]
    parts = {name: (run[name].float() * directions).sum(-1) for name in ("token_embedding", "position_embedding")}
    for layer in range(layers):
        block, heads = run.block(layer), run[f"blocks.{layer}.attention.heads"].float()  # [head, token, head width]
        per_column = (directions @ block.attention.projection.weight.float()).unflatten(-1, (len(heads), -1))
        for head, found in enumerate(torch.einsum("htd,thd->ht", heads, per_column)):
            parts[f"head {layer}.{head}"] = found
        parts[f"attention bias {layer}"] = directions @ block.attention.projection.bias.float()
        second = block.mlp.projection
        parts[f"mlp {layer}"] = (run.activations(layer).float() * (directions @ second.weight.float())).sum(-1)
        parts[f"mlp bias {layer}"] = directions @ second.bias.float()
    parts["final norm bias"] = rows @ model.final_norm.bias.float()
    logits = torch.stack(
        [
            run.logits([at])[0][id] - (run.logits([at])[0][other.id] if other else 0)
            for at, id in enumerate(ids)  # noqa: A001
        ]
    )
    parts["rest"] = logits - torch.stack(list(parts.values())).double().sum(0).float()
    targets = tuple(run.token(one) for one in ids)
    return Direct(targets, other, tuple(parts), array(torch.stack(list(parts.values()))), array(logits))
