"""Everything that `cutaway serve` offers, in one process: the explorer, the API, and what operates them."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI

from cutaway.serve.app import LOCAL, create_app
from cutaway.serve.explorer import Explorer
from cutaway.serve.openai.completions import Completions
from cutaway.serve.openai.explain import Explainer
from cutaway.serve.openai.explanations import Explanations
from cutaway.serve.openai.models import ModelList
from cutaway.serve.openai.texts import Texts
from cutaway.serve.operations.part import Operations
from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool
from cutaway.serve.settings import ServeSettings
from cutaway.serve.store import open_database, open_storage, state_folder
from cutaway.serve.teaching.part import Teaching

ANY = re.compile(".*")


def create_server(settings: ServeSettings | None = None, hosts: re.Pattern[str] | None = None) -> FastAPI:
    """The whole server as an ASGI app. Where keys are asked for, it may be called by any name."""
    settings = settings or ServeSettings()
    hosts = hosts or (ANY if settings.needs_keys else LOCAL)
    pool = ModelPool(settings)
    explorer = Explorer([str(Path(one).resolve()) for one in settings.models if Path(one).exists()])
    explainer = Explainer(settings.explanations)
    parts: list[Part] = [
        ModelList(pool),
        Completions(pool, explainer),
        Texts(pool, explainer),
        Explanations(pool, explainer),
        # Further parts stand here (see part.py): those that come later see requests first, and end first.
    ]
    database = open_database(settings) if settings.state is not None else None
    if database is not None:
        folder, storage = state_folder(settings), open_storage(settings)
        parts.append(Teaching(database, storage, folder, pool, explorer, settings.upload))
    parts.append(Operations(settings, pool, database))
    app = create_app(explorer, hosts, parts)
    app.state.settings, app.state.pool, app.state.parts = settings, pool, parts
    app.state.database = database
    return app
