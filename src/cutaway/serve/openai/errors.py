"""Mistakes in the form that OpenAI's clients read: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

import math
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from cutaway.errors import CutawayError

PATHS = ("/v1", "/tokenize", "/detokenize")
"""What lies below these is answered in this form."""

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}


class ApiError(Exception):
    """A request that is refused: its status, a sentence, and where it stands in the request."""

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        allow: str = "",
    ):
        super().__init__(message)
        self.status, self.param, self.code, self.retry_after = status, param, code, retry_after
        self.allow = allow

    @property
    def headers(self) -> dict[str, str]:
        """When to come again, and by which methods."""
        again = {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}
        return again | ({"Allow": self.allow} if self.allow else {})


def is_openai(path: str) -> bool:
    """Whether an address belongs to this API."""
    return any(path == one or path.startswith(f"{one}/") for one in PATHS)


def body(status: int, message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    kind = KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def explain(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Any exception as status, body and headers."""
    if isinstance(error, ApiError):
        return error.status, body(error.status, str(error), error.param, error.code), error.headers
    if isinstance(error, CutawayError):
        return 400, body(400, str(error), code=error.code), {}
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return 400, body(400, f"{where}: {first['msg']}." if where else f"{first['msg']}.", where or None), {}
    if isinstance(error, HTTPException):
        found = error.status_code == 404
        said = "There is nothing at this address." if found else f"{error.detail}."
        return error.status_code, body(error.status_code, said), dict(error.headers or {})
    if isinstance(error, MemoryError):
        return 503, body(503, "There is not enough memory for this now. Ask for less, or try again later."), {}
    return 500, body(500, f"This is a bug in Cutaway: {type(error).__name__}. Please report it."), {}
