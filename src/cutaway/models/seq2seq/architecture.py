"""The recurrent translator, as the rest of the house sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from cutaway.models.architecture import Architecture, Place, TensorSpec
from cutaway.models.seq2seq.map import places
from cutaway.models.seq2seq.shape import Shape
from cutaway.models.seq2seq.tensors import tensors

if TYPE_CHECKING:
    from torch import nn


class Recurrent:
    kind = Shape.kind
    Shape = Shape
    title, native, prefix = "recurrent translator", False, ""
    copies: ClassVar[dict[str, str]] = {}

    def read_shape(self, given: Mapping[str, Any]) -> Shape:
        return Shape(**{name: given[name] for name in asdict(Shape()) if name in given})

    def write_shape(self, shape: Shape) -> dict[str, Any]:
        return {"model_type": self.kind, **asdict(shape)}

    def ignores(self, stored: str) -> bool:
        return False

    def build(self, shape: Shape) -> nn.Module:
        from cutaway.models.seq2seq.model import Seq2Seq

        return Seq2Seq(shape)

    def tensors(self, shape: Shape) -> Iterable[TensorSpec]:
        return tensors(shape)

    def places(self, shape: Shape) -> Iterable[Place]:
        return places(shape)


ARCHITECTURE: Architecture = Recurrent()
