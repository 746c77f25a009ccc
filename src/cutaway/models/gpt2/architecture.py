"""GPT-2, as the rest of the house sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cutaway.models.architecture import Architecture, Place, TensorSpec
from cutaway.models.gpt2.config_json import BUFFER, COPIES, PREFIX, read_shape, write_shape
from cutaway.models.gpt2.map import places
from cutaway.models.gpt2.shape import Config
from cutaway.models.gpt2.tensors import tensors

if TYPE_CHECKING:
    from torch import nn


class GPT2:
    kind = Config.kind
    Shape = Config
    title, native, prefix, copies = "GPT-2", True, PREFIX, COPIES

    def read_shape(self, given: Mapping[str, Any]) -> Config:
        return read_shape(given)

    def write_shape(self, shape: Config) -> dict[str, Any]:
        return write_shape(shape)

    def ignores(self, stored: str) -> bool:
        return BUFFER.fullmatch(stored) is not None

    def build(self, shape: Config) -> nn.Module:
        from cutaway.models.gpt2.model import GPT

        return GPT(shape)

    def tensors(self, shape: Config) -> Iterable[TensorSpec]:
        return tensors(shape)

    def places(self, shape: Config) -> Iterable[Place]:
        return places(shape)


ARCHITECTURE: Architecture = GPT2()
