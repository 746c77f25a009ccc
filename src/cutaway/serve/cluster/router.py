"""How Ray sends requests to the replica that has read their beginning. Needs Ray; it lives in the front's process."""

from __future__ import annotations

import random
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from cutaway.serve.cluster.affinity import Affinity


class PrefixRouter(RequestRouter):
    """Sends a request where most of how it begins has been read, unless that replica is much busier than another."""

    def initialize_state(self, **given: Any) -> None:
        """`spare`: so many requests more than another a replica may have, and still be chosen for what it has read."""
        self.spare, self.affinity = int(given["spare"]), Affinity()

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Every replica, in the order in which they are asked to take the request."""
        known = self.replica_queue_len_cache
        by_id = {one.replica_id: one for one in random.sample(candidate_replicas, len(candidate_replicas))}
        loads = {one: known.get(one) or 0 for one in by_id}
        return [[by_id[one]] for one in self.affinity.choose(begins(pending_request), loads, self.spare)]

    def on_request_routed(self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any) -> None:
        self.affinity.note(begins(pending_request), replica_id)

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        super().update_replicas(replicas)
        self.affinity.keep({one.replica_id for one in replicas})


def begins(pending: PendingRequest | None) -> list[bytes]:
    """What the front says of a request: the last argument of `Behind.answer`."""
    return pending.args[2] if pending is not None and len(pending.args) > 2 else []
