"""The Transformer, as the rest of the house sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cutaway.models.architecture import Architecture, Place, TensorSpec
from cutaway.models.transformer.config_json import COMPUTED, COPIES, PREFIX, generation, read_shape, write_shape
from cutaway.models.transformer.map import places
from cutaway.models.transformer.shape import Shape as OwnShape
from cutaway.models.transformer.tensors import tensors

if TYPE_CHECKING:
    from torch import nn


class Transformers:
    kind = OwnShape.kind
    Shape = OwnShape
    title, native, prefix, copies = "Transformer", False, PREFIX, COPIES

    def read_shape(self, given: Mapping[str, Any]) -> OwnShape:
        return read_shape(given)

    def write_shape(self, shape: OwnShape) -> dict[str, Any]:
        return write_shape(shape)

    def generation(self, shape: OwnShape) -> dict[str, Any]:
        return generation(shape)

    def ignores(self, stored: str) -> bool:
        return stored in COMPUTED

    def build(self, shape: OwnShape) -> nn.Module:
        from cutaway.models.transformer.model import Transformer

        return Transformer(shape)

    def tensors(self, shape: OwnShape) -> Iterable[TensorSpec]:
        return tensors(shape)

    def places(self, shape: OwnShape) -> Iterable[Place]:
        return places(shape)


ARCHITECTURE: Architecture = Transformers()
