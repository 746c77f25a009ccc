"""ELMo, as the rest of the house sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cutaway.models.architecture import Architecture, Place, TensorSpec
from cutaway.models.elmo.map import places
from cutaway.models.elmo.shape import Shape as OwnShape
from cutaway.models.elmo.tensors import tensors

if TYPE_CHECKING:
    from torch import nn


class ELMo:
    kind = OwnShape.kind
    Shape = OwnShape
    title, native, prefix, copies, encoder = "ELMo", False, "", dict[str, str](), True

    def read_shape(self, given: Mapping[str, Any]) -> OwnShape:
        return OwnShape(**{name: given[name] for name in asdict(OwnShape()) if name in given})

    def write_shape(self, shape: OwnShape) -> dict[str, Any]:
        return {"model_type": self.kind, **asdict(shape)}

    def ignores(self, stored: str) -> bool:
        return False

    def build(self, shape: OwnShape) -> nn.Module:
        from cutaway.models.elmo.model import Elmo

        return Elmo(shape)

    def tensors(self, shape: OwnShape) -> Iterable[TensorSpec]:
        return tensors(shape)

    def places(self, shape: OwnShape) -> Iterable[Place]:
        return places(shape)


ARCHITECTURE: Architecture = ELMo()
