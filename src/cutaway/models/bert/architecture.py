"""BERT and DistilBERT, as the rest of the house sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cutaway.models.architecture import Architecture, Place, TensorSpec
from cutaway.models.bert import config_json
from cutaway.models.bert.map import places
from cutaway.models.bert.shape import Config
from cutaway.models.bert.tensors import tensors

if TYPE_CHECKING:
    from torch import nn


class BERT:
    kind = Config.kind
    Shape = Config
    title, native, prefix, copies, encoder = "BERT", False, "", config_json.COPIES, True

    def read_shape(self, given: Mapping[str, Any]) -> Config:
        return config_json.read_shape(given)

    def write_shape(self, shape: Config) -> dict[str, Any]:
        return config_json.write_shape(shape)

    def shape_with(self, shape: Config, stored: Collection[str]) -> Config:
        return config_json.with_head(shape, stored)

    def plain_name(self, stored: str) -> str:
        return config_json.plain_name(stored)

    def file_name(self, shape: Config, plain: str) -> str:
        return config_json.file_name(shape, plain)

    def ignores(self, stored: str) -> bool:
        return config_json.BUFFER.fullmatch(stored) is not None

    def build(self, shape: Config) -> nn.Module:
        from cutaway.models.bert.model import Bert

        return Bert(shape)

    def tensors(self, shape: Config) -> Iterable[TensorSpec]:
        return tensors(shape)

    def places(self, shape: Config) -> Iterable[Place]:
        return places(shape)


ARCHITECTURE: Architecture = BERT()
