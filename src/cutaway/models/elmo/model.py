"""ELMo, from the characters of a word to one vector for it in its sentence, in the order of the article.

    the characters of each word -> convolutions, the largest value of each -> highway layers -> projection
    -> two stacks of LSTM layers, one that has read the words before, one that has read those after
       (from the second layer on, what comes in is added to what goes out)
    -> what they are trained for: the forward stack predicts the next word, the backward one the word before
    -> what they are used for: the layers, both directions side by side, are mixed: gamma x their weighted sum

Every step has a name. `trace` (see parts/trace.py) is told each value under its name and may keep or replace it. Ids
are characters (see text/spelled_words.py), so a row of the result is a word, not an id.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway.models.elmo.shape import Shape
from cutaway.parts.trace import UNWATCHED, Trace, Watch

START, END, WORD, WORD_END = 1, 2, 3, 4

warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")  # torch's own are used


@dataclass(frozen=True)
class Spelled:
    """The words of some rows of ids, each as its characters."""

    characters: Tensor
    """[row, word, character]; 0 where a word has no more."""
    heard: Tensor
    """[row, word]: True where there is a word."""

    @classmethod
    def of(cls, ids: Tensor, longest: int) -> Spelled:
        """Divide ids [row, place] at their marks. White space and padding are in no word."""
        whole = (ids == START) | (ids == END)  # one character, and a word by itself
        begins, ends = (whole | (ids == WORD)).long(), (whole | (ids == WORD_END)).long()
        inside = begins.cumsum(1) > ends.cumsum(1) - ends
        word = (begins.cumsum(1) - 1).clamp(min=0)  # [row, place]: the number of its word
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        first = torch.where(begins.bool(), places, 0).cummax(1).values
        at = places - first
        counts = begins.sum(1)
        fits = inside & (at < longest)
        words, length = max(1, int(counts.max())), int(torch.where(fits, at, 0).max()) + 1
        characters = ids.new_zeros(len(ids), words, length)
        rows = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)
        characters[rows[fits], word[fits], at[fits]] = ids[fits]
        return cls(characters, torch.arange(words, device=ids.device) < counts[:, None])


class Highway(nn.Module):
    """A gate says of each number how much of it stays, and how much of another takes its place."""

    def __init__(self, width: int):
        super().__init__()
        self.change = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        stays = torch.sigmoid(self.gate(x))
        return stays * x + (1 - stays) * F.relu(self.change(x))


class Direction(nn.Module):
    """One LSTM layer with a projection: word after word goes in, a hidden state comes out of each step."""

    def __init__(self, shape: Shape, backward: bool):
        super().__init__()
        self.backward = backward
        self.cell = nn.LSTM(shape.width, shape.cell_width, batch_first=True, proj_size=shape.width)

    def forward(self, x: Tensor, turned: Tensor) -> Tensor:
        """[row, word, width] -> the hidden state after each word has been read, from the one end or the other."""
        if not self.backward:
            return cast(Tensor, self.cell(x)[0])
        order = turned[..., None].expand_as(x)  # each row's own words from its last to its first
        return cast(Tensor, self.cell(x.gather(1, order))[0]).gather(1, order)


class Block(nn.Module):
    """One layer of both directions; neither knows of the other."""

    def __init__(self, shape: Shape, first: bool):
        super().__init__()
        self.first = first
        self.forwards = Direction(shape, backward=False)
        self.backwards = Direction(shape, backward=True)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, before: Tensor, after: Tensor, turned: Tensor, watch: Watch = UNWATCHED) -> tuple[Tensor, Tensor]:
        """What has been read before each word and after it, each [row, word, width]: one layer higher."""
        before = self.one_way(self.forwards, before, turned, watch.within("forwards"))
        after = self.one_way(self.backwards, after, turned, watch.within("backwards"))
        watch("residual", torch.cat([before, after], dim=-1))
        return before, after

    def one_way(self, direction: Direction, x: Tensor, turned: Tensor, watch: Watch) -> Tensor:
        hidden = watch("hidden", direction(self.dropout(x), turned))
        return watch("output", hidden if self.first else x + hidden)


class Mix(nn.Module):
    """One vector of several: gamma times their weighted sum, the weights made positive and 1 in all by a softmax."""

    def __init__(self, layers: int):
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, layers: list[Tensor]) -> Tensor:
        shares = self.weights.softmax(0)
        return self.scale * sum(share * layer for share, layer in zip(shares, layers, strict=True))


class Elmo(nn.Module):
    """The whole machine. `read` gives one vector a word, `both` what the two language models are trained by."""

    encoder = True
    """See `Encoder` in models/architecture.py."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.config = shape
        self.character_embedding = nn.Embedding(shape.vocabulary, shape.character_width)
        self.filters = nn.ModuleList(nn.Conv1d(shape.character_width, made, seen) for seen, made in shape.filters)
        self.highways = nn.ModuleList(Highway(shape.filtered) for _ in range(shape.highways))
        self.projection = nn.Linear(shape.filtered, shape.width)
        self.blocks = nn.ModuleList(Block(shape, first=layer == 0) for layer in range(shape.layers))
        self.dropout = nn.Dropout(shape.dropout)
        self.mix = Mix(shape.layers + 1)
        self.output = nn.Linear(shape.width, shape.words)
        self.initialize()

    def forward(self, ids: Tensor, trace: Trace | None = None) -> Tensor:
        """One vector for each word of the ids [row, place], as `read`; a trace sees the scores of both models, too."""
        watch: Watch = UNWATCHED if trace is None else trace
        spelled = Spelled.of(ids, self.config.longest)
        mixed, (before, after) = self.layers(spelled, watch)
        if trace is not None:
            watch("forwards.logits", self.output(before))
            watch("backwards.logits", self.output(after))
        return mixed

    def read(
        self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None, trace: Trace | None = None
    ) -> Tensor:
        """Ids [row, place] -> one vector a word, [row, word, 2 x width]. The marks say what is no word."""
        return self.layers(Spelled.of(ids, self.config.longest), UNWATCHED if trace is None else trace)[0]

    def both(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The top of both stacks, each [row, word, width], and where there are words: what the scores are made of."""
        spelled = Spelled.of(ids, self.config.longest)
        _, (before, after) = self.layers(spelled, UNWATCHED)
        return self.dropout(before), self.dropout(after), spelled.heard

    def heard(self, ids: Tensor) -> Tensor:
        """Which rows of the result are words, and not what shorter texts are filled up with: [row, word]."""
        return Spelled.of(ids, self.config.longest).heard

    def layers(self, spelled: Spelled, watch: Watch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The mix of all layers, and the top of the two stacks."""
        lengths = spelled.heard.sum(1, keepdim=True)
        place = torch.arange(spelled.heard.shape[1], device=lengths.device)
        turned = torch.where(spelled.heard, lengths - 1 - place, place)  # [row, word]: the words from the last on

        word = self.words(spelled, watch)  # [row, word, width]
        layers = [watch("residual.0", torch.cat([word, word], dim=-1))]
        before = after = word
        for number, block in enumerate(self.blocks):
            before, after = block(before, after, turned, watch.within(f"blocks.{number}"))
            layers.append(torch.cat([before, after], dim=-1))
        return watch("mixed", self.mix(layers)), (before, after)

    def words(self, spelled: Spelled, watch: Watch) -> Tensor:
        """A vector for each word, from its characters alone. A word that comes more than once is made once."""
        shape = spelled.characters.shape[:2]
        if watch.watching:
            return self.spell(spelled.characters.flatten(0, 1), shape, watch).unflatten(0, shape)
        unique, which = spelled.characters.flatten(0, 1).unique(dim=0, return_inverse=True)
        return self.spell(unique, unique.shape[:1], watch)[which].unflatten(0, shape)

    def spell(self, characters: Tensor, shape: torch.Size, watch: Watch) -> Tensor:
        """Words [word, character] -> vectors [word, width]; `shape` is how a trace is to see the words."""

        def seen(name: str, value: Tensor) -> Tensor:
            return watch(name, value.unflatten(0, shape)).flatten(0, len(shape) - 1)

        vectors = self.character_embedding(characters)  # [word, character, character width]
        if watch.watching:
            vectors = watch("characters", vectors.unflatten(0, shape).movedim(2, 1)).movedim(1, 2).flatten(0, 1)
        written = (characters != 0)[:, None]  # [word, 1, character]; windows begin at characters, none at what follows
        written = torch.cat([torch.ones_like(written[..., :1]), written[..., 1:]], dim=-1)
        vectors = vectors.movedim(1, 2) * written  # [word, character width, character]; after a word comes nothing
        found = []
        for convolution in self.filters:
            windows = cast(nn.Conv1d, convolution)(F.pad(vectors, (0, cast(nn.Conv1d, convolution).kernel_size[0] - 1)))
            found.append(windows.masked_fill(~written, -torch.inf).amax(-1))  # the largest value of each, wherever
        x = seen("filters", F.relu(torch.cat(found, dim=-1)))  # [word, filter]
        for number, highway in enumerate(self.highways):
            x = seen(f"highways.{number}", highway(x))
        return seen("word", self.projection(x))

    @torch.no_grad()
    def initialize(self) -> None:
        """Small embeddings; orthogonal matrices from state to state; highways that at first let most pass."""
        for name, parameter in self.named_parameters():
            if parameter.is_meta or name.startswith("mix."):
                continue
            if name.endswith("gate.bias"):
                parameter.fill_(1.0)
            elif parameter.ndim < 2:
                parameter.zero_()
                if name.endswith("bias_ih_l0"):
                    parameter.chunk(4)[1].fill_(1.0)  # the forget gate: to remember is the beginning
            elif "weight_hh" in name:
                for gate in parameter.chunk(4):
                    nn.init.orthogonal_(gate)
            elif name == "output.weight":
                parameter.normal_(std=self.config.width**-0.5)
            elif name == "character_embedding.weight":
                parameter.normal_(std=0.5)
            else:
                nn.init.xavier_uniform_(parameter)
