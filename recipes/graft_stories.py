"""Begin the story model with what its teacher knows: stories15M, the model that wrote the corpus, as a GPT-2.

    python recipes/sample_stories.py --out stories/stories-21.txt --seed 21 --stories 35000
    python recipes/graft_stories.py stories -o story-start
    cutaway train recipes/stories.toml -o story-middle
    torchrun --nproc-per-node 2 recipes/distil_stories.py stories --from story-middle -o story-model

The teacher is a Llama: as wide and as deep as the GPT-2 made here (6 blocks of 288), but with 32,000 tokens, turned
positions (RoPE), another norm and gated MLPs. What fits is taken over (queries, keys, values, projections, norms); a
token of ours gets the mean of the teacher's pieces it is made of; each MLP first learns by itself to answer as the
teacher's does. Then the whole model learns to predict stories and, wherever a token of ours and one of the teacher's
end at the same letter, to carry the vector the teacher carries there. Positions it has to learn anew. Held-out
stories are those `cutaway train` holds out of the same folder, and are not used. Two cores need about an hour.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import time
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from sample_stories import Teacher, teacher_files
from torch import Tensor

import cutaway
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.tasks import Language
from cutaway.tasks.token_loss import next_token_loss
from cutaway.train.data.records import records
from cutaway.train.data.shards import Dataset
from cutaway.train.optimizer import clip, make_optimizer, set_learning_rate
from cutaway.train.recipe import Recipe, Train
from cutaway.train.start import prepare_data

CONTEXT, VOCABULARY, STEPS = 512, 4096, 600
SCALE = 6.0
"""Our residual stream is so much larger than the teacher's, which usual learning rates would upset."""
MATCH = 4.0
"""How much the distance to the teacher's vectors counts beside the loss of the words."""
BEGIN = 1
"""The teacher's token before a story."""


def pieces(teacher: Teacher, text: bytes) -> list[int]:
    """Bytes -> the teacher's tokens: the best pair is joined, again and again. The first 259 are specials and bytes."""
    ids = [own if (own := teacher.ids.get(bytes([byte]), 0)) > 258 else byte + 3 for byte in text]
    while True:
        pairs = (
            (teacher.scores[joined], -place, joined)
            for place in range(len(ids) - 1)
            if (joined := teacher.ids.get(teacher.pieces[ids[place]] + teacher.pieces[ids[place + 1]])) is not None
        )
        best = max(pairs, default=None)
        if best is None:
            return ids
        ids[-best[1] : -best[1] + 2] = [best[2]]


class Stories:
    """Stories in our tokens and in the teacher's, and where both have a token that ends at the same letter."""

    def __init__(self, teacher: Teacher, tokenizer: cutaway.Tokenizer, data: Dataset, seed: int):
        self.teacher, self.tokenizer, self.data = teacher, tokenizer, data
        self.words: dict[str, list[int]] = {}
        self.order = np.random.default_rng(seed).permutation(len(data.train)).tolist()
        self.place = 0

    def teachers(self, text: str) -> list[int]:
        ids = [BEGIN]
        for word in re.findall(r" ?[^ ]+| ", " " + text):  # the teacher's tokens never reach over a space
            if word not in self.words:
                self.words[word] = pieces(self.teacher, word.encode())
            ids += self.words[word]
        return ids

    def next(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """A story: our tokens, what follows each, the teacher's tokens, and the one that ends with ours (or -1)."""
        ids = self.data.train[self.order[self.place % len(self.order)]].tolist()
        self.place += 1
        ids = [token for token in ids if token != self.tokenizer.end]
        theirs = self.teachers(self.tokenizer.decode(ids))[: self.teacher.context]
        lengths = [1 if token < 259 else len(self.teacher.pieces[token]) for token in theirs[1:]]
        ends = {end: place for place, end in enumerate(np.cumsum([0, *lengths]).tolist())}
        ours = 1 + np.cumsum([len(self.tokenizer.token_bytes(token)) for token in ids])  # theirs begins with a space
        where = [0, *(ends.get(end, -1) for end in ours.tolist())]
        both = [self.tokenizer.end, *ids, self.tokenizer.end]
        kept = min(len(both) - 1, self.teacher.context)
        return both[:kept], both[1 : kept + 1], theirs, where[:kept]

    def batch(self, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        columns = zip(*(self.next() for _ in range(count)), strict=True)
        return tuple(  # type: ignore[return-value]
            torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=filler)
            for rows, filler in zip(columns, (0, -100, 0, -1), strict=True)
        )


@torch.inference_mode()
def stream(teacher: Teacher, ids: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Block by block: the residual stream before the MLP, what the MLP adds, and the stream after it."""
    rows, length = ids.shape
    x = teacher.embedding[ids]
    for layer in range(teacher.layers):
        qkv = F.linear(F.rms_norm(x, (teacher.dim,), teacher.norm1[layer], 1e-5), teacher.qkv[layer])
        q, k, v = qkv.view(rows, length, 3, teacher.heads, teacher.head).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(teacher.rotate(q, 0), teacher.rotate(k, 0), v, is_causal=True)
        middle = x + F.linear(heads.transpose(1, 2).reshape(rows, length, teacher.dim), teacher.out[layer])
        norm = F.rms_norm(middle, (teacher.dim,), teacher.norm2[layer], 1e-5)
        gate, up = F.linear(norm, teacher.gate_up[layer]).chunk(2, -1)
        added = F.linear(F.silu(gate) * up, teacher.down[layer])
        x = middle + added
        yield middle, added, x


def transplant(teacher: Teacher, gpt: GPT, tokenizer: cutaway.Tokenizer) -> None:
    """Everything but the MLPs. Our norms also take away the mean: one direction of 288, which hardly matters."""
    bytes_of = [tokenizer.token_bytes(token) for token in range(len(tokenizer))]
    known = [[BEGIN] if token == tokenizer.end else pieces(teacher, one) for token, one in enumerate(bytes_of)]
    half = teacher.head // 2
    angles = torch.arange(float(CONTEXT))[:, None] / 2000 ** (torch.arange(half) / half)
    waves = torch.cat([angles.sin(), angles.cos()], 1) @ torch.linalg.qr(torch.randn(teacher.dim, teacher.head))[0].T
    with torch.no_grad():
        gpt.token_embedding.weight.copy_(torch.stack([teacher.embedding[one].mean(0) for one in known]) * SCALE)
        gpt.position_embedding.weight.copy_(waves / waves.square().mean().sqrt() * 0.01 * SCALE)
        for layer, block in enumerate(gpt.blocks):
            block.attention_norm.weight.copy_(teacher.norm1[layer])
            block.attention.queries_keys_values.weight.copy_(teacher.qkv[layer])
            block.attention.projection.weight.copy_(teacher.out[layer] * SCALE)
        gpt.final_norm.weight.copy_(teacher.norm / SCALE)


def fit_mlps(teacher: Teacher, gpt: GPT, stories: Stories, steps: int) -> None:
    """Each MLP by itself learns the teacher's, on the vectors the teacher gives it."""
    seen: list[list[Tensor]] = [[] for _ in range(teacher.layers)]
    for _ in range(80):
        ids = stories.batch(16)[2]
        real = ids > 0
        for layer, (middle, added, _) in enumerate(stream(teacher, ids)):
            seen[layer].append(torch.cat([F.rms_norm(middle[real], (teacher.dim,)), added[real]], -1))
    for layer, block in enumerate(gpt.blocks):
        mlp, (x, y) = block.mlp, torch.cat(seen[layer]).clone().chunk(2, -1)
        seen[layer] = []
        gate, up = (teacher.gate_up[layer] * teacher.norm2[layer]).chunk(2, 0)
        order = (teacher.down[layer].norm(dim=0) * gate.norm(dim=1) * up.norm(dim=1)).argsort(descending=True)
        strong, weak = order.tensor_split([mlp.widen.out_features - len(order)])
        two = gate[strong] + up[strong], gate[strong] - up[strong]  # of our units, for one gated unit that matters
        start = torch.cat([*two, gate[weak]])
        hidden = F.pad(F.gelu(F.linear(x[:60_000], start), approximate="tanh"), (0, 1), value=1.0)
        square = hidden.T @ hidden
        square += torch.eye(len(square)) * square.diagonal().mean() * 1e-4
        found = torch.linalg.solve(square, hidden.T @ y[:60_000])
        with torch.no_grad():
            mlp.widen.weight.copy_(start)
            mlp.projection.weight.copy_(found[:-1].T)
            mlp.projection.bias.copy_(found[-1])
        size, optimizer = y.var(), torch.optim.Adam(mlp.parameters(), betas=(0.9, 0.99))
        for step in range(steps):
            set_learning_rate(optimizer, 2e-3 * min(1, (step + 1) / 20) * (1 - step / steps))
            some = torch.randint(len(x), (1024,))
            loss = (mlp(x[some]) - y[some]).square().mean() / size
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"MLP {layer}: {loss.item():.1%} of what the teacher's does is not explained", flush=True)
        with torch.no_grad():
            mlp.projection.weight.mul_(SCALE)
            mlp.projection.bias.mul_(SCALE)


def distance(teacher: Teacher, gpt: GPT, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The loss of the next tokens, and how far the residual stream is from the teacher's, both as means."""
    ids, targets, theirs, where = batch
    row, column = (where >= 0).nonzero(as_tuple=True)
    first = int(torch.randint(CONTEXT - ids.shape[1] + 1, ()))  # any place of the context is learned
    x = gpt.token_embedding(ids) + gpt.position_embedding.weight[first : first + ids.shape[1]]
    far = x.new_zeros(())
    for block, (_, _, wanted) in zip(gpt.blocks, stream(teacher, theirs), strict=True):
        x = block(x)
        aim = wanted[row, where[row, column]].clone() * SCALE
        far = far + (x[row, column] - aim).square().mean() / aim.square().mean() / teacher.layers
    words = next_token_loss(gpt.final_norm(x), gpt.token_embedding.weight, targets, 1 / int((targets >= 0).sum()))
    return words, far


def graft(teacher: Teacher, folder: str, steps: int, seed: int, fitting: int = 400, batch: int = 16) -> LanguageModel:
    """The whole way, from a folder of stories; Ctrl-C ends it early."""
    torch.manual_seed(seed)
    texts = (str(record["text"]) for record, _ in records([folder], None, Language().fields))
    tokenizer = cutaway.Tokenizer.train(texts, VOCABULARY, ("<|endoftext|>",))
    recipe = Recipe.from_dict({"data": {"paths": [folder], "held_out": 400}})
    stories = Stories(teacher, tokenizer, prepare_data(recipe, Language(), tokenizer, lambda _: None), seed)
    shape = Config(len(tokenizer), CONTEXT, teacher.dim, teacher.layers, teacher.heads, end_token=tokenizer.end)
    gpt = GPT(shape)
    transplant(teacher, gpt, tokenizer)
    fit_mlps(teacher, gpt, stories, fitting)
    optimizer = make_optimizer(gpt, Train(steps=steps, optimizer="muon", weight_decay=0.01))
    begun, parameters = time.monotonic(), list(gpt.parameters())
    try:
        for step in range(1, steps + 1):
            set_learning_rate(optimizer, 4e-4 * min(1, step / 20))
            words, far = distance(teacher, gpt, stories.batch(batch))
            (words + MATCH * far).backward()
            clip(parameters, 5.0)
            optimizer.step()
            optimizer.zero_grad()
            if step % 20 == 0:
                left = (time.monotonic() - begun) / step * (steps - step) / 60
                print(f"{step}/{steps}: loss {words:.3f}, {far:.1%} unexplained, {left:.0f} min left", flush=True)
    except KeyboardInterrupt:
        print("Stopped; what has been learned is saved.")
    return LanguageModel(gpt, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", help="folder of stories, as sample_stories.py writes them")
    parser.add_argument("-o", "--out", required=True, help="folder for the model")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of 16 stories")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--teacher", default="~/.cache/stories15M", help="where the teacher is kept")
    given = parser.parse_args()
    teacher = Teacher(teacher_files(pathlib.Path(given.teacher).expanduser()), 1)
    graft(teacher, given.stories, given.steps, given.seed).save(given.out)


if __name__ == "__main__":
    main()
