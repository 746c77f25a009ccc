"""The files that ship are what the source says."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEB, STATIC = ROOT / "web", ROOT / "src" / "cutaway" / "serve" / "static"


def node(*command: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("node") is None:
        pytest.skip("there is no Node on this machine (apt install nodejs npm)")
    if not (WEB / "node_modules").is_dir():
        pytest.skip("the explorer's tools are not installed (make complete)")
    return subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=280)


def digest(folder: Path, files: Iterable[Path]) -> str:
    """The digest of web/scripts/digest.mjs."""
    names = sorted((file.relative_to(folder).as_posix() for file in files if file.is_file()), key=str.encode)
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_source_is_the_one_that_was_built():
    made_of = [WEB / name for name in ("index.html", "package.json", "package-lock.json")]
    made_of += [
        WEB / name for name in ("svelte.config.js", "tsconfig.json", "vite.config.ts", "vite.offline.config.ts")
    ]
    made_of += [file for file in (WEB / "src").rglob("*") if not file.name.endswith(".test.ts")]
    told = json.loads((STATIC / "digest.json").read_text())
    assert digest(WEB, made_of) == told["source"], "the source changed since the build: cd web && npm run build"


def test_the_built_files_are_those_that_the_build_wrote():
    told = json.loads((STATIC / "digest.json").read_text())
    built = (file for file in STATIC.rglob("*") if file.name != "digest.json")
    assert digest(STATIC, built) == told["built"], "changed by hand: cd web && npm run build"


def test_the_built_files_match_the_source_exactly():
    ran = node("node", "scripts/verify.mjs")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_units_of_the_explorer_hold():
    ran = node("npx", "vitest", "run")
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]


def test_nothing_is_fetched_from_elsewhere():
    for file in STATIC.rglob("*"):
        if file.suffix in (".js", ".css", ".html"):
            text = file.read_text()
            for scheme in ("https://", "http://", "//fonts.", "@import"):
                for found in text.split(scheme)[1:]:
                    assert (scheme == "http://" and found.startswith("www.w3.org/")) or found.startswith(
                        "svelte.dev/e/"
                    ), f"{file.name}: {scheme}{found[:60]}"


def test_the_bundle_stays_small():
    """What comes before the first page; all pages, each of which comes when it is opened; and, by itself, the engine

    that only an exported site loads.
    """
    engine = {"engine-worker.js", "site.js", "moments.json"}
    sizes = {file.name: file.stat().st_size for file in STATIC.rglob("*") if file.is_file()}
    assert engine <= sizes.keys()
    first = ("index.html", "index.js", "index.css", "kit.js", "kit.css", "Predict.js", "Predict.css")
    assert sum(sizes[name] for name in first) < 650_000
    assert sum(size for name, size in sizes.items() if name not in engine) < 1_200_000
    assert sum(sizes[name] for name in engine) < 100_000
