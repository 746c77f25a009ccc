"""The same server as a Ray Serve deployment: replicas side by side, on one machine or many, behind Ray's proxy.

Replicas on several machines need a database and a storage that they share (`database`, `storage`); on one machine the
state folder is shared. A replica that dies is replaced by Ray; a job of its is taken up by another.

    routing = "load"      proxy -> replica: the one with the fewest requests
    routing = "prefix"    proxy -> front -> replica: the one that has read how the prompt begins (front.py, router.py)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cutaway.errors import CutawayError
from cutaway.serve.settings import ServeSettings

NAME = "cutaway"
FRONT = "front"


def application(settings: ServeSettings, cores: float = 1.0, autoscaling: Mapping[str, Any] | None = None) -> Any:
    """The server as a Ray Serve application: so many replicas, or between so many and `most_replicas` by the load.

    `cores` are those of each replica. `autoscaling` is said to Ray besides, like {"upscale_delay_s": 5}.
    """
    serve = require()
    inside = replace(settings, replicas=1, most_replicas=0)
    scaling: dict[str, Any] = {"num_replicas": settings.replicas}
    if settings.most_replicas > settings.replicas:
        limits = {"min_replicas": settings.replicas, "max_replicas": settings.most_replicas}
        target = {"target_ongoing_requests": max(1, settings.rows // 2)}
        scaling = {"autoscaling_config": {**limits, **target, **(autoscaling or {})}}
    common = {"graceful_shutdown_timeout_s": settings.grace, "health_check_period_s": 1}
    options = {"max_ongoing_requests": settings.requests, "ray_actor_options": {"num_cpus": cores}, **common, **scaling}
    if settings.routing == "prefix":
        from cutaway.serve.cluster.front import Behind, create_front

        router = {
            "request_router_class": "cutaway.serve.cluster.router:PrefixRouter",
            "request_router_kwargs": {"spare": settings.rows // 2},
        }

        class Asked(Behind):
            async def __del__(self) -> None:  # which Ray calls when it stops a replica
                await self.end()

        behind = serve.deployment(name=NAME, request_router_config=router, **options)(Asked).bind(inside)

        def front() -> Any:
            return create_front(serve.get_deployment_handle(NAME, NAME), settings)

        asked = settings.requests * max(settings.replicas, settings.most_replicas)
        thin = {"max_ongoing_requests": asked, "ray_actor_options": {"num_cpus": 0}, **common}
        return serve.deployment(name=FRONT, **thin)(serve.ingress(front)()).bind(behind)

    def app() -> Any:  # made inside each replica: threads and locks cannot be sent there
        from cutaway.serve.server import create_server

        return create_server(inside)

    class Replica:
        """All that it does is the app's."""

    return serve.deployment(name=NAME, **options)(serve.ingress(app)(Replica)).bind()


def run(
    settings: ServeSettings,
    blocking: bool = True,
    cores: float = 1.0,
    autoscaling: Mapping[str, Any] | None = None,
) -> None:
    """Serve until Ctrl-C, on the Ray cluster that is running (RAY_ADDRESS), or on one of this machine alone."""
    serve = require()
    import ray

    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING)
    serve.start(http_options={"host": settings.host, "port": settings.port})
    serve.run(application(settings, cores, autoscaling), name=NAME, blocking=blocking)


def require() -> Any:
    try:
        from ray import serve
    except ImportError:
        raise CutawayError("Several replicas need Ray Serve: pip install 'cutaway[cluster]'.") from None
    return serve
