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
from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool
from cutaway.serve.settings import ServeSettings


def create_server(settings: ServeSettings | None = None, hosts: re.Pattern[str] = LOCAL) -> FastAPI:
    """The whole server as an ASGI app."""
    settings = settings or ServeSettings()
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
    app = create_app(explorer, hosts, parts)
    app.state.settings, app.state.pool, app.state.parts = settings, pool, parts
    return app
