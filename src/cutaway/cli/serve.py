"""`cutaway serve`: models for programs and pages, until Ctrl-C. Its options are the fields of `ServeSettings`."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Annotated, Any

from cutaway.cli import options, screen
from cutaway.cli.options import argument, option
from cutaway.serve import configuration


def serve(models: list[str] | None = None, config: str | None = None, **flags: Any) -> None:
    """Serve models over HTTP: the OpenAI API, explanations, teaching, and the explorer.

    Models are loaded when they are first asked for. It ends with Ctrl-C. Every option can stand in the
    file of --config or in the environment as well (CUTAWAY_SERVE_PORT). Keys: cutaway serve keys --help

    Example: cutaway serve

    Example: cutaway serve my-model builtin --port 9000
    """
    from cutaway.serve import start

    start.require()
    start.share_the_cores()
    settings = configuration.read_settings({**flags, "models": models}, config)
    for name in settings.models:
        options.locate(name)  # fetched now, with a bar, and refused now if there is none
    if settings.replicas > 1 or settings.most_replicas > settings.replicas:
        from cutaway.serve import cluster

        screen.show(f"Ray Serve answers at http://{settings.host}:{settings.port}/v1; Ctrl-C stops it.")
        with suppress(KeyboardInterrupt):
            cluster.run(settings)
        return
    from cutaway.serve.server import create_server

    app = create_server(settings)
    listener = start.bind(settings.port, settings.host)
    address = f"http://{settings.host}:{listener.getsockname()[1]}"

    def ready() -> None:
        screen.show(f"The explorer is at {address}/, the API at {address}/v1 (described in {address}/openapi.json).")
        screen.show("From Python (pip install openai):", style="dim")
        key = "sk-cutaway-..." if settings.needs_keys else "none"
        name = next(iter(app.state.pool.offers))
        asked = f'client.completions.create(model="{name}", prompt="Once upon a time", max_tokens=60)'
        screen.put(  # not wrapped, to be copied
            "\n  from openai import OpenAI\n"
            f'  client = OpenAI(base_url="{address}/v1", api_key="{key}")\n'
            f"  print({asked}.choices[0].text)\n\n"
        )
        screen.show("Ctrl-C stops it.", style="dim")

    with suppress(KeyboardInterrupt):
        start.run_app(app, listener, ready, settings)


SHORT = {"port": "-p"}
VALUES = {int: "N", float: "N", str: "TEXT", tuple: "TEXT"}


def declare() -> None:
    """Give the verb the settings as its options."""
    helps = configuration.helps()
    given: dict[str, Any] = {
        "models": Annotated[
            list[str] | None,
            argument("MODEL", help="builtin, folders with checkpoints, or names on the hub.", show_default=False),
        ],
        "config": Annotated[str | None, option("--config", "-c", value="FILE", help="A TOML file of settings.")],
    }
    for name, one in configuration.declared().items():
        if name == "models":
            continue
        kind = configuration.kind_of(name)
        value = "" if kind is bool else "SIZE" if name in configuration.BYTES else VALUES[kind]
        said = helps.get(name, "") + usual(name, one.default)
        info = option(f"--{name.replace('_', '-')}", *filter(None, [SHORT.get(name)]), value=value, help=said)
        plain: Any = str if name in configuration.BYTES or kind is tuple else kind
        given[name] = Annotated[plain if kind is bool else plain | None, info]
    parameters = [
        inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False if hint.__origin__ is bool else None
        )
        for name, hint in given.items()
    ]
    serve.__annotations__ = given
    serve.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


def usual(name: str, default: Any) -> str:
    """What a setting is if nothing is said, where its help does not tell."""
    if default in (None, "", (), False):
        return ""
    if name in configuration.BYTES:
        unit, letter = (1 << 30, "GiB") if default >= 1 << 30 else (1 << 20, "MiB")
        default = f"{default // unit}{letter}"
    return f" [dim]\\[default: {default:g}][/]" if isinstance(default, float) else f" [dim]\\[default: {default}][/]"


declare()
