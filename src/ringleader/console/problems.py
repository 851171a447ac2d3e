"""Errors as answers: problem+json for programs, a page for people."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ringleader.console.deciding import OtherModelError, UnknownError
from ringleader.errors import ConflictError, ModelBusyError, ModelFileError, RingleaderError, StorageError
from ringleader.wording import json_ready

TITLES = {
    400: "Not understood",
    404: "Not found",
    405: "Not allowed",
    409: "Decided meanwhile",
    412: "Another model",
    415: "Not JSON",
    422: "Makes no sense",
    500: "A mistake of the console",
    503: "Busy",
    507: "Not saved",
}


class ProblemDetails(BaseModel):
    """RFC 9457: what went wrong. ``since`` is what happened in between, where that is it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    since: list[dict[str, Any]] | None = None


def status_of(error: RingleaderError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, UnknownError):
        return 404
    if isinstance(error, OtherModelError):
        return 412
    if isinstance(error, ConflictError):
        return 409
    if isinstance(error, ModelBusyError):
        return 503
    if isinstance(error, (StorageError, ModelFileError)):
        return 507
    return 422


def details(status: int, detail: str, since: Any = None) -> dict[str, Any]:
    """The body of a problem."""
    body = {"type": "about:blank", "title": TITLES.get(status, "Not done"), "status": status, "detail": detail}
    if since is not None:
        body["since"] = json_ready([event._asdict() for event in since])
    return body
