"""Models from the hub: fetched once, pinned to a commit, every byte checked, found again without a network.

While it is being fetched a model lies in `<commit>.incoming/` beside its place in the store. An interrupted pull leaves
it there and the next one goes on from it; the folder takes its place, whole, when the last file has been checked.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import quote, urlsplit

from cutaway import __version__
from cutaway.atomic import write_text
from cutaway.checkpoint.store import (
    COMMIT,
    PINNED,
    SOURCE,
    LocalModel,
    Pin,
    find_model,
    home_of,
    inside,
    known,
    local,
    weights_among,
    whole,
)
from cutaway.errors import CutawayError, nearest

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["PINNED", "LocalModel", "Pin", "Progress", "find_model", "local", "pull"]

Progress = Callable[[str, int, int], None]

SMALL_FILES = (
    "config.json", "generation_config.json", "tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "source.spm", "target.spm", "README.md", "LICENSE",
    "LICENSE.txt", "LICENSE.md",
)  # fmt: skip
PAUSES = (0.5, 1.0, 2.0)  # seconds before each new try, when a connection drops
TIMEOUT = 30.0  # seconds of silence after which a connection counts as dropped
LONGEST_LISTING = 1 << 26

_SHA256 = re.compile(r"[0-9a-f]{64}")


def pull(name: str, revision: str | None = None, progress: Progress | None = None) -> Path:
    """The model's folder, fetched from the hub unless it is here; `progress` gets (file, bytes done, bytes in all).

    Without a revision, what is here stays as it is; a branch or tag, such as "main", is asked for anew each time.
    """
    name, pin = known(name, revision)
    if revision is None and pin:
        revision = pin.revision
    settled = revision is None or COMMIT.fullmatch(revision)
    offline = _offline()
    found = find_model(name, revision) if settled or offline else None
    if found:
        return found
    if offline:
        at = f" at {revision}" if revision else ""
        message = f"{name}{at} is not on this machine, and {offline} forbids asking the hub. {_have()}"
        raise CutawayError(message, "offline", name=name, setting=offline)
    hub = _Hub()
    commit, files = hub.listing(name, revision or "main")
    if pin and pin.weights and commit == pin.revision:  # our own checksum counts for more than what the hub says
        files = [replace(file, sha256=pin.weights) if file.name == "model.safetensors" else file for file in files]
    home = home_of(name)
    try:
        folder = find_model(name, commit) or _fetch(hub, home, name, commit, files, progress or (lambda *_: None))
        if revision != commit:
            _write(home / "refs" / (revision or "main"), commit)
    except BrokenPipeError:
        raise  # whoever watched the progress has gone; nothing is wrong with the store
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CutawayError(
                f"The disk that holds {home} is full. What was downloaded of {name} is kept: "
                "free some space and pull again to continue from there.",
                "disk_full",
                name=name,
                folder=str(home),
            ) from error
        raise CutawayError(
            f"Cannot write to {home}: {_reason(error)}. Set CUTAWAY_HOME to a folder you can write to."
        ) from error
    return folder


def _offline() -> str | None:
    """The switch that forbids the network, if one is on."""
    for switch in ("CUTAWAY_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(switch, "").strip().lower() in ("1", "on", "true", "yes"):
            return switch
    return None


def _have() -> str:
    return f"Models on this machine: {', '.join(sorted({model.name for model in local()})) or 'none'}."


@dataclass(frozen=True)
class _File:
    """One file as the hub lists it, and the checksum its bytes must have: git's own, or a large file's sha256."""

    name: str
    size: int
    sha256: str | None
    git_sha1: str | None

    def matches(self, path: Path) -> bool:
        if path.stat().st_size != self.size:
            return False
        if self.sha256:
            return _digest(path) == self.sha256
        return _digest(path, "sha1", b"blob %d\0" % self.size) == self.git_sha1


def _fetch(hub: _Hub, home: Path, name: str, commit: str, files: list[_File], progress: Progress) -> Path:
    """Fetch and check every file, then move the whole folder into its place."""
    home.mkdir(parents=True, exist_ok=True)
    folder, incoming = home / commit, home / f"{commit}.incoming"
    with _alone(home / ".lock"):
        if whole(folder):
            return folder  # another process fetched it while we waited
        if folder.exists():  # something was lost from it: what is left is checked again and kept
            shutil.rmtree(incoming, ignore_errors=True)
            folder.rename(incoming)
        incoming.mkdir(exist_ok=True)
        _make_room(name, incoming, files)
        for file in files:
            target = incoming / file.name
            if not (target.exists() and file.matches(target)):
                hub.download(name, commit, file, target, progress)
            progress(file.name, file.size, file.size)
        checked = {f.name: {"bytes": f.size, "sha256": f.sha256 or _digest(incoming / f.name)} for f in files}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        source = {"name": name, "revision": commit, "from": hub.host, "date": now, "files": checked}
        _write(incoming / SOURCE, json.dumps(source, indent=2) + "\n")
        incoming.rename(folder)
    return folder


def _make_room(name: str, incoming: Path, files: list[_File]) -> None:
    """Clear away what is not part of the model, and refuse to begin what the disk cannot hold."""
    ours = {name for file in files for name in (file.name, f"{file.name}.partial")}
    for path in inside(incoming):
        if path.name not in ours:
            path.unlink()
    need = sum(file.size for file in files) - sum(path.stat().st_size for path in inside(incoming))
    free = shutil.disk_usage(incoming).free
    if need > free:
        raise CutawayError(
            f"{name} needs {_size(need)} and the disk that holds {incoming.parent} has {_size(free)} free: "
            "free some space, or set CUTAWAY_HOME to a folder on a larger disk."
        )


class _Dropped(Exception):
    """A fault that may pass: worth another try."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows the hub to the servers that hold the large files, without showing them the user's token."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if new.scheme not in ("http", "https"):
            raise CutawayError(f"{old.netloc} sent us to {newurl!r}, which is not a web address.")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request and (old.scheme, old.netloc) != (new.scheme, new.netloc):
            request.remove_header("Authorization")
        return request


class _Hub:
    """The hub's two questions: which files does this model have, and what is in one of them."""

    def __init__(self) -> None:
        self.address = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CutawayError(f"HF_ENDPOINT is {self.address!r}; it must be an address like https://huggingface.co.")
        self.host = parts.netloc.rpartition("@")[2]
        self.headers = {"User-Agent": f"cutaway/{__version__}"}
        token = os.environ.get("HF_TOKEN", "").strip()
        if not (token.isascii() and token.isprintable()):
            raise CutawayError("HF_TOKEN holds characters that no token has: copy it again from your hub settings.")
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.opener = urllib.request.build_opener(_Redirects)  # with the proxies and certificates of the environment

    def listing(self, name: str, revision: str) -> tuple[str, list[_File]]:
        """The commit that a revision is now, and the files of it that a GPT-2 needs."""
        path = f"/api/models/{name}/revision/{quote(revision, safe='')}?blobs=true"
        for pause in (*PAUSES, None):
            try:
                with self.open(path, name, revision) as response:
                    body = self.read(response.read, LONGEST_LISTING)
                    if response.length:
                        raise _Dropped(f"{self.host} broke off its answer")
                break
            except _Dropped as error:
                if pause is None:
                    raise CutawayError(f"{error}. {_have()}", "unreachable", name=name, host=self.host) from error
                sleep(pause)
        try:
            answer = json.loads(body)
            commit = str(answer["sha"])
            listed = {str(file["rfilename"]): file for file in answer["siblings"]}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise CutawayError(f"{self.host} did not answer as a model hub does: check HF_ENDPOINT.") from None
        if not COMMIT.fullmatch(commit) or (COMMIT.fullmatch(revision) and commit != revision):
            raise CutawayError(
                f"{self.host} was asked for {name} at {revision} and offered {commit!r}: not downloaded."
            )
        for file in listed:
            if file.startswith("/") or "\\" in file or ":" in file or ".." in file.split("/"):
                raise CutawayError(
                    f"{self.host} lists a file of {name} as {file!r}, outside its folder: not downloaded."
                )
        weights = weights_among(set(listed))
        if not weights or "config.json" not in listed:
            missing = "config.json" if weights else "whole model.safetensors or pytorch_model.bin"
            raise CutawayError(f"{name} on {self.host} has no {missing}, so there is no GPT-2 to download.")
        return commit, [self.file(listed[file]) for file in (*SMALL_FILES, *weights) if file in listed]

    def file(self, listed: dict[str, Any]) -> _File:
        """A file as the listing describes it; without a size and a checksum it is refused."""
        name, size, git_sha1, lfs = (listed.get(key) for key in ("rfilename", "size", "blobId", "lfs"))
        size, sha256 = (lfs.get("size"), lfs.get("sha256")) if isinstance(lfs, dict) else (size, None)
        checksum = _SHA256.fullmatch(str(sha256)) if lfs else COMMIT.fullmatch(str(git_sha1))
        if not isinstance(size, int) or size < 0 or not checksum:
            raise CutawayError(f"{self.host} does not say the size and checksum of {name}, so it could not be checked.")
        return _File(str(name), size, sha256, git_sha1)

    def download(self, name: str, commit: str, file: _File, target: Path, progress: Progress) -> None:
        """One file, by way of FILE.partial: resumed where it stopped, checked, fetched once more if the check fails."""
        partial = target.with_name(f"{file.name}.partial")
        for _ in range(2):
            pauses = iter(PAUSES)
            while _length(partial) != file.size:
                before = _length(partial)
                try:
                    self.receive(name, commit, file, partial, progress)
                except _Dropped as error:
                    kept = max(0, _length(partial))
                    if kept > max(0, before):
                        pauses = iter(PAUSES)  # it is getting on, if slowly
                    pause = next(pauses, None)
                    if pause is None:
                        raise CutawayError(
                            f"{error}. {_size(kept)} of {_size(file.size)} of {file.name} are kept: "
                            "pull again to continue from there."
                        ) from error
                    sleep(pause)
            if file.matches(partial):
                partial.replace(target)
                return
            partial.unlink()
        raise CutawayError(
            f"{file.name} of {name}, downloaded twice from {self.host}, has the wrong checksum and was deleted. "
            "Something on the way changes it (a proxy, a mirror): try another network or another HF_ENDPOINT."
        )

    def receive(self, name: str, commit: str, file: _File, partial: Path, progress: Progress) -> None:
        """Ask for the rest of a file and write it behind what is there; if the server sends the whole, start over."""
        done = _length(partial) if 0 < _length(partial) < file.size else 0
        response = self.open(f"/{name}/resolve/{commit}/{quote(file.name)}", name, commit, start=done)
        if response is None:
            partial.unlink()
            raise _Dropped(f"{self.host} has less of {file.name} than it message")
        with response, partial.open("ab") as out:
            if not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
                done = 0
            out.truncate(done)
            progress(file.name, done, file.size)
            while done < file.size and (chunk := self.read(response.read1, min(1 << 20, file.size - done))):
                out.write(chunk)
                done += len(chunk)
                progress(file.name, done, file.size)
            out.flush()
            os.fsync(out.fileno())
        if done < file.size:
            raise _Dropped(f"{self.host} broke off {file.name}")

    def open(self, path: str, name: str, revision: str, start: int = 0) -> Any:
        """The response to one request, for the bytes from `start` on; None when there are no such bytes."""
        headers = self.headers | ({"Range": f"bytes={start}-"} if start else {})
        try:
            return self.opener.open(urllib.request.Request(self.address + path, headers=headers), timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416 and start:
                    return None
                raise self.refusal(error, name, revision) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise CutawayError(
                    f"The certificate of {self.host} is not valid: {reason.verify_message}. "
                    "Behind a company's proxy, set SSL_CERT_FILE to its certificates."
                ) from error
            raise _Dropped(f"Could not reach {self.host}: {_reason(reason)}") from error

    def read(self, reader: Callable[[int], bytes], most: int) -> bytes:
        try:
            return reader(most)
        except (OSError, http.client.HTTPException) as error:
            raise _Dropped(f"{self.host} broke off: {_reason(error)}") from error

    def refusal(self, error: urllib.error.HTTPError, name: str, revision: str) -> Exception:
        """What an answer that is not the file means, for the person who asked."""
        code, reason = error.code, error.headers.get("X-Error-Code", "")
        if code >= 500 or code in (408, 429):
            return _Dropped(f"{self.host} answered {code} ({error.reason}): it is busy or broken, try again later")
        if reason == "RevisionNotFound":
            return CutawayError(f"{name} on {self.host} has no revision {revision!r}.")
        if reason == "GatedRepo":
            return CutawayError(
                f"{name} is gated: accept its terms at {self.address}/{name}, then set HF_TOKEN to a token of yours."
            )
        if error.headers.get("X-Error-Message", "").startswith("Invalid credentials"):
            return CutawayError(f"{self.host} does not accept the token in HF_TOKEN: correct it, or unset it.")
        if code in (401, 403, 404):
            private = "HF_TOKEN may not read it" if "Authorization" in self.headers else "set HF_TOKEN"
            at = "" if revision == "main" else f" with a revision {revision!r}"
            hint = "" if known(name, None)[1] else nearest(name.rpartition("/")[2], PINNED)
            message = f"No model called {name}{at} on {self.host} (or it is private: {private}).{hint}"
            return CutawayError(message, "not_on_hub", name=name, host=self.host)
        return CutawayError(f"{self.host} answered {code} ({error.reason}) when asked for {name}.")


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Only one process at a time gets past this. The lock ends with the process, so a crash leaves none behind."""
    with path.open("a") as file:
        if sys.platform == "win32":
            while True:
                with contextlib.suppress(OSError):  # it gives up after ten seconds
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def _digest(path: Path, algorithm: str = "sha256", prefix: bytes = b"") -> str:
    begun = hashlib.new(algorithm, prefix, usedforsecurity=algorithm != "sha1")
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: begun).hexdigest()


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _reason(error: object) -> str:
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
