"""Several processes, on one machine or many, training one model together: what `torchrun` starts.

Each process has its share of the rows of every batch. With DDP each has the whole model, and gradients are
added up; with FSDP each has a part of every matrix, and they lend each other the parts they need.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.rendezvous import rendezvous
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from cutaway.errors import CutawayError
from cutaway.models.architecture import blocks
from cutaway.train.learner import Learner

PATIENCE = timedelta(hours=24)
"""How long a process waits for the others: the first one may be cutting a large data set into tokens."""

PEER_LOST = re.compile(r"gloo/transport|[Cc]onnection (closed|reset|refused)|[Bb]roken pipe|NCCL|TCPStore")
"""What torch says of an exchange whose other end has gone."""


@dataclass(frozen=True)
class Team:
    """The processes of a training, seen from one of them."""

    device: torch.device
    rank: int = 0
    world: int = 1
    restarted: bool = False
    """Whether `torchrun` has started this team anew after one of it had died."""

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and speaks for all."""
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        """The sums of values over all processes."""
        if self.world == 1:
            return list(values)
        kind = torch.float32 if self.device.type == "mps" else torch.float64
        total = torch.tensor(values, dtype=kind, device=self.device)
        dist.all_reduce(total)
        return cast(list[float], total.tolist())

    def agree(self, value: float) -> float:
        """The first process's value, in all of them."""
        return self.sum(value if self.first else 0.0)[0]

    def wait(self) -> None:
        """Until all have come here."""
        if self.world > 1:
            dist.barrier()


def find_device() -> torch.device:
    """The fastest there is."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


@contextmanager
def team(device: torch.device | None = None) -> Iterator[Team]:
    """The team this process belongs to: one of several under `torchrun`, else a team of one."""
    device = device or find_device()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1 or not dist.is_torchelastic_launched():
        yield Team(device)
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    store, rank, world = next(rendezvous("env://", timeout=PATIENCE))
    if os.environ.get("GROUP_WORLD_SIZE") == "1":
        # torchrun keeps its store over a restart, with the addresses of processes that are dead (pytorch #135712).
        store = PrefixStore(f"restart-{restarts}", store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=PATIENCE)
    try:
        yield Team(device, rank, world, restarted=restarts > 0)
    except RuntimeError as error:
        if not PEER_LOST.search(str(error)):
            raise
        raise CutawayError(
            f"Process {rank} of {world} cannot continue: another process of this training was lost (its own message "
            "is above or in its log; a killed process leaves none). Continue with --resume; with --max-restarts, "
            "torchrun does so by itself."
        ) from error
    finally:
        dist.destroy_process_group()


def shared(learner: Learner, team: Team, shard: bool, precision: str) -> nn.Module:
    """The learner, to be called by all processes together: divided between them (FSDP), or copied to each (DDP)."""
    if team.world == 1:
        return learner
    if not shard:
        ids = [team.device.index] if team.device.type == "cuda" else None
        return DistributedDataParallel(learner, device_ids=ids, gradient_as_bucket_view=True)
    mesh = init_device_mesh(team.device.type, (team.world,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options: dict[str, Any] = {"mp_policy": policy} if precision == "bfloat16" else {}
    for block in blocks(learner.model):
        fully_shard(block, mesh=mesh, **options)
    fully_shard(learner, mesh=mesh, **options)
    return learner


@contextmanager
def adding_up(module: nn.Module, last: bool) -> Iterator[None]:
    """While gradients of several pieces are added up: only the last one is the moment to exchange them."""
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(last)
    quiet = isinstance(module, DistributedDataParallel) and not last
    with cast(DistributedDataParallel, module).no_sync() if quiet else nullcontext():
        yield


def give_back(module: nn.Module) -> None:
    """After a way through the model without a way back: return the parts that other processes lent."""
    if isinstance(module, FSDPModule):
        module.reshard()


def divided(tensors: dict[str, Tensor]) -> bool:
    """Whether each process has only a part of these."""
    return any(isinstance(tensor, DTensor) for tensor in tensors.values())


def whole(tensor: Tensor) -> Tensor:
    """A tensor put together from its parts; all processes must ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def write_parts(tensors: dict[str, Tensor], folder: Path) -> None:
    """Every process writes its parts, as torch's distributed checkpoint in safetensors files: no pickle among them."""
    save(tensors, storage_writer=HuggingFaceStorageWriter(str(folder), save_distributed=True))


def read_parts(tensors: dict[str, Tensor], folder: Path) -> None:
    """Fill these tensors, divided or not, from such files, however they were divided; or from one plain safetensors."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # one process is fine
        load(tensors, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=not dist.is_initialized())
