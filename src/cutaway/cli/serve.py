"""`cutaway serve`: models for programs and pages, until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from cutaway.cli import options, screen
from cutaway.cli.options import argument, option


def serve(
    models: Annotated[
        list[str] | None,
        argument("[MODEL]...", help="builtin, folders with checkpoints, or names on the hub.", show_default=False),
    ] = None,
    port: Annotated[int, option("--port", "-p", value="PORT", help="Where to listen; 0 takes any free port.")] = 8000,
    host: Annotated[
        str, option("--host", value="ADDRESS", help="Which address to listen at; 127.0.0.1 is this machine only.")
    ] = "127.0.0.1",
    weights: options.Weights = None,
    memory: Annotated[float, option("--memory", value="GIB", help="Memory for the weights of all models.")] = 4.0,
) -> None:
    """Serve models over HTTP: the OpenAI API, explanations, and the explorer.

    Models are loaded when they are first asked for. It ends with Ctrl-C.

    Example: cutaway serve
    """
    from cutaway.serve import start
    from cutaway.serve.settings import GIB, ServeSettings

    start.require()
    start.share_the_cores()
    for name in models or ():
        options.locate(name)  # fetched now, with a bar, and refused now if there is none
    settings = ServeSettings(
        models=tuple(models or ("builtin",)), host=host, port=port, weights=weights, memory=int(memory * GIB)
    )
    from cutaway.serve.server import create_server

    app = create_server(settings)
    listener = start.bind(port, host)
    address = f"http://{host}:{listener.getsockname()[1]}"

    def ready() -> None:
        screen.show(f"The explorer is at {address}/, the API at {address}/v1 (described in {address}/openapi.json).")
        screen.show("From Python (pip install openai):", style="dim")
        name = next(iter(app.state.pool.offers))
        asked = f'client.completions.create(model="{name}", prompt="Once upon a time", max_tokens=60)'
        screen.put(  # not wrapped, to be copied
            "\n  from openai import OpenAI\n"
            f'  client = OpenAI(base_url="{address}/v1", api_key="none")\n'
            f"  print({asked}.choices[0].text)\n\n"
        )
        screen.show("Ctrl-C stops it.", style="dim")

    with suppress(KeyboardInterrupt):
        start.run_app(app, listener, ready, grace=30)
