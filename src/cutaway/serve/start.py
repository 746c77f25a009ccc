"""Start the explorer: a free port on this machine only, the page in the browser, until Ctrl-C."""

from __future__ import annotations

import math
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from cutaway.checkpoint.locate import PIANIST
from cutaway.errors import CutawayError
from cutaway.serve.explorer import Explorer

if TYPE_CHECKING:
    from fastapi import FastAPI

    from cutaway.serve.settings import ServeSettings

HOST = "127.0.0.1"


def bind(port: int = 0, host: str = HOST) -> socket.socket:
    """A socket, of this machine only if nothing else is said, on this port or on any that is free."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OverflowError:
        listener.close()
        raise CutawayError(f"There is no port {port}: give one up to 65535, or none for any free port.") from None
    except OSError as error:
        listener.close()
        raise CutawayError(
            f"Port {port} cannot be used: {error.strerror}. Give another with --port, or none for any free port."
        ) from None
    listener.listen(128)
    return listener


def address(
    listener: socket.socket, model: str = "builtin", text: str = "", page: str = "predict", tour: str = ""
) -> str:
    """Where the page is, with the model and the text to begin with, or a step of a tour, which has a text of its own.

    A judge of texts is opened on the page of tasks, a pianist at the piano: neither is the model of the other pages.
    """
    key, usual = {"tasks": ("with", "translator"), "piano": ("with", PIANIST)}.get(page, ("model", "builtin"))
    wanted = ((key, model, usual), ("text", text, ""), ("tour", tour, ""))
    asked = {name: value for name, value, common in wanted if value != common}
    here = f"http://{HOST}:{listener.getsockname()[1]}/"
    return here + (f"#/{page}?{urlencode(asked)}" if asked or page == "piano" else "")


def share_the_cores() -> None:
    """Let torch's threads sleep while they wait for each other: spinning, they would fight the browser for the cores.

    Call it before torch is loaded. Where other programs are busy, a pass is then several times as quick.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def has_screen() -> bool:
    """Whether a browser could open here: a desktop, and not the far end of an ssh session."""
    if sys.platform in ("win32", "darwin"):
        return not os.environ.get("SSH_CONNECTION")
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(where: str) -> None:
    threading.Thread(target=webbrowser.open, args=(where,), daemon=True).start()


def network_address() -> str:
    """The address that this machine has in its network; its own where there is none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # an address that is nobody's: it only says which way out is taken
            return str(asking.getsockname()[0])
        except OSError:
            return HOST


def run(
    explorer: Explorer, listener: socket.socket, ready: Callable[[], None], door: socket.socket | None = None
) -> None:
    """Serve the explorer until the process is told to stop; `ready` is called once the page can be asked for.

    `door` is a second socket, open to the network, for the remote control of a presentation.
    """
    from cutaway.serve.app import create_app
    from cutaway.serve.stage import Presenting

    port = door.getsockname()[1] if door else None
    presenting = Presenting(port, f"http://{network_address()}:{port}/" if door else None)
    run_app(create_app(explorer, parts=[presenting]), listener, ready, more=[door] if door else [])


def run_app(
    app: FastAPI,
    listener: socket.socket,
    ready: Callable[[], None],
    settings: ServeSettings | None = None,
    more: Sequence[socket.socket] = (),
) -> None:
    """Serve an app until the process is told to stop; what is being answered then has some time to end."""
    import uvicorn

    from cutaway.serve.operations.patience import patient_protocol

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

    config = uvicorn.Config(
        app,
        log_level="warning",
        log_config=None if settings else uvicorn.config.LOGGING_CONFIG,
        http=patient_protocol(settings.receive_seconds if settings else 30.0),
        timeout_graceful_shutdown=math.ceil(settings.grace) if settings else 1,
    )
    Server(config).run([listener, *more])


def require() -> None:
    """Say what to install where the parts of the server are missing."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise CutawayError(
            "The explorer in the browser needs FastAPI and uvicorn: pip install 'cutaway[serve]'. "
            "Without them there is the one in the terminal: cutaway explore --terminal"
        ) from None
