"""The recurrent translator, as the rest of the house sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cutaway.models.architecture import Architecture, Place, TensorSpec
from cutaway.models.seq2seq.map import places
from cutaway.models.seq2seq.shape import Shape as OwnShape
from cutaway.models.seq2seq.tensors import tensors

if TYPE_CHECKING:
    from torch import nn


class Recurrent:
    kind = OwnShape.kind
    Shape = OwnShape
    title, native, prefix, copies = "recurrent translator", False, "", dict[str, str]()

    def read_shape(self, given: Mapping[str, Any]) -> OwnShape:
        return OwnShape(**{name: given[name] for name in asdict(OwnShape()) if name in given})

    def write_shape(self, shape: OwnShape) -> dict[str, Any]:
        return {"model_type": self.kind, **asdict(shape)}

    def ignores(self, stored: str) -> bool:
        return False

    def build(self, shape: OwnShape) -> nn.Module:
        from cutaway.models.seq2seq.model import Seq2Seq

        return Seq2Seq(shape)

    def tensors(self, shape: OwnShape) -> Iterable[TensorSpec]:
        return tensors(shape)

    def places(self, shape: OwnShape) -> Iterable[Place]:
        return places(shape)


ARCHITECTURE: Architecture = Recurrent()
