"""Give a model a head that looks at the token before: what copying has to begin with.

    python recipes/exhibit_previous.py --from exhibit-start -o exhibit-begun

A row that comes again is copied by two heads in turn: one tells every token what stood before it, another finds the
place where the token of now was the one before (an induction head). With a thousand learned positions the first of them
is found late: a model that had read six million tokens had none. So it is made by hand, from waves, as the first
Transformers' positions were: the position vectors get a wave code in directions that nothing else uses much, and the
head of the first block that matters least compares the code of a place with that of the one before. What it hands on is
the token, in as many numbers as a head has. All the rest of copying is learned.
"""

from __future__ import annotations

import argparse
import math

import torch
import torch.nn.functional as F
from torch import Tensor

import cutaway
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT

WAVES, SHORTEST, LONGEST = 16, 3.0, 4096.0
"""Waves of the code, and their lengths in tokens."""
CODE, MARGIN, SHARE = 1.0, 2.0, 0.3
"""How strong the code is beside the other numbers of a vector; how much a wave counts in a score; and how strong what
the head adds is beside what was there."""
STEPS, RATE, NEAR = 200, 2e-3, 10.0
"""A little learning after it: steps, their rate, and what it costs to move the positions."""


def wave_code(positions: Tensor) -> Tensor:
    """[..., 2 * WAVES]: cosines, then sines."""
    lengths = torch.logspace(math.log10(SHORTEST), math.log10(LONGEST), WAVES)
    angles = positions[..., None] * 2 * math.pi / lengths
    return torch.cat([angles.cos(), angles.sin()], -1)


def turn_back() -> Tensor:
    """The matrix that makes the code of a place that of the one before it."""
    lengths = torch.logspace(math.log10(SHORTEST), math.log10(LONGEST), WAVES)
    by = 2 * math.pi / lengths
    cosine, sine = torch.diag(by.cos()), torch.diag(by.sin())
    return torch.cat([torch.cat([cosine, sine], 1), torch.cat([-sine, cosine], 1)])


def inputs(gpt: GPT, ids: Tensor, first: Tensor) -> Tensor:
    """What the first block reads. [row, token, width]"""
    positions = first[:, None] + torch.arange(ids.shape[1])
    return gpt.token_embedding(ids) + gpt.position_embedding(positions)


def least(gpt: GPT, ids: Tensor) -> int:
    """The head of the first block without which the texts are as likely as can be."""
    projection = gpt.blocks[0].attention.projection.weight
    losses = []
    for head in range(gpt.config.heads):
        part = slice(head * gpt.config.head_width, (head + 1) * gpt.config.head_width)
        kept = projection[:, part].clone()
        projection[:, part] = 0
        losses.append(float(F.cross_entropy(gpt(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())))
        projection[:, part] = kept
    return min(range(len(losses)), key=losses.__getitem__)


@torch.no_grad()
def make(gpt: GPT, ids: Tensor, seed: int = 0) -> int:
    """Write the code and the head into the model; which head it is."""
    config, block = gpt.config, gpt.blocks[0]
    width, size, twice = config.width, config.head_width, 2 * WAVES
    head = least(gpt, ids)
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(0, config.context - ids.shape[1], (len(ids),), generator=generator)
    vectors = inputs(gpt, ids, first).flatten(0, 1)
    centred = vectors - vectors.mean(1, keepdim=True)
    usual = float(centred.pow(2).mean().sqrt())
    quiet = torch.linalg.eigh(centred.T @ centred)[1]  # from the least used direction on; the first is the mean's
    room = quiet[:, 1 : 1 + twice]
    code = wave_code(torch.arange(config.context).float())  # [position, twice]
    gpt.position_embedding.weight += CODE * usual * code @ room.T

    norm, attention = block.attention_norm, block.attention
    reading = room.T / norm.weight  # [twice, width]: a norm's gain is undone
    strength = math.sqrt(MARGIN * math.sqrt(size)) / CODE
    rows = attention.queries_keys_values.weight.view(3, config.heads, size, width)[:, head]
    biases = attention.queries_keys_values.bias.view(3, config.heads, size)[:, head]
    rows[:2], biases[:2] = 0, 0
    for place, turned in enumerate((turn_back(), torch.eye(twice))):
        rows[place, :twice] = strength * turned @ reading
        biases[place, :twice] = -strength * turned @ reading @ norm.bias
    read = norm(inputs(gpt, ids, first).flatten(0, 1))
    told = torch.linalg.eigh(torch.cov(read.T))[1][:, -size:].T  # [size, width]: what tells tokens apart
    rows[2], biases[2] = told, -told @ read.mean(0)
    values = (read - read.mean(0)) @ told.T
    written = torch.linalg.qr(torch.randn(width, size, generator=generator))[0]  # [width, size]
    strong = SHARE * usual * math.sqrt(width) / float(values.pow(2).sum(1).mean().sqrt())
    attention.projection.weight[:, head * size : (head + 1) * size] = strong * written
    return head


def settle(gpt: GPT, texts: Tensor, head: int, steps: int = STEPS, seed: int = 0) -> float:
    """Learn a little more of it: only where the head looks, and positions. Returns the weight it gives in the end."""
    config, block, size = gpt.config, gpt.blocks[0], gpt.config.head_width
    generator = torch.Generator().manual_seed(seed)
    attention = block.attention.queries_keys_values
    part = [slice(n * config.width + head * size, n * config.width + (head + 1) * size) for n in range(2)]
    weights = [attention.weight.data[one].clone().requires_grad_() for one in part]
    biases = [attention.bias.data[one].clone().requires_grad_() for one in part]
    positions = gpt.position_embedding.weight.data
    moved = torch.zeros_like(positions).requires_grad_()
    optimizer = torch.optim.Adam([*weights, *biases, moved], RATE)
    given = 0.0
    for step in range(steps):
        ids = texts[torch.randint(0, len(texts), (8,), generator=generator)]
        first = torch.randint(0, config.context - ids.shape[1], (len(ids),), generator=generator)
        places = first[:, None] + torch.arange(ids.shape[1])
        vectors = gpt.token_embedding(ids).detach() + positions[places] + moved[places]
        norm = F.layer_norm(
            vectors, (config.width,), block.attention_norm.weight.detach(), block.attention_norm.bias.detach(),
            config.norm_epsilon,
        )  # fmt: skip
        queries, keys = (F.linear(norm, w, b) for w, b in zip(weights, biases, strict=True))
        scores = queries @ keys.transpose(1, 2) * block.attention.scale
        scores = scores.masked_fill(~torch.ones_like(scores[0], dtype=torch.bool).tril(), -1e9)
        logs = scores.log_softmax(-1).diagonal(-1, 1, 2)  # from each token to the one before it
        loss = -logs.mean() + NEAR * moved.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - step / steps)
        optimizer.step()
        given = float(logs.exp().mean().detach())
    with torch.no_grad():
        for one, weight, bias in zip(part, weights, biases, strict=True):
            attention.weight[one], attention.bias[one] = weight, bias
        gpt.position_embedding.weight += moved
    return given


def sample(lm: LanguageModel, seed: int = 0, rows: int = 64, length: int = 128) -> Tensor:
    """Rows of exhibits, one after the other."""
    from exhibits import documents

    ids: list[int] = []
    for text in documents(10_000 + seed):
        ids += [lm.tokenizer.end, *lm.tokenizer.encode(text)]
        if len(ids) >= rows * length:
            break
    return torch.tensor(ids[: rows * length]).view(rows, length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="start", default="exhibit-start", help="the model to begin with")
    parser.add_argument("-o", "--out", required=True, help="folder for the model")
    given = parser.parse_args()
    lm = cutaway.load(given.start)
    texts = sample(lm)
    head = make(lm.model, texts[:16])
    weight = settle(lm.model, texts, head)
    print(f"Head {head} of the first block gives {weight:.0%} to the token before.")
    lm.save(given.out)


if __name__ == "__main__":
    main()
