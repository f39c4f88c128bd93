"""What routes say of themselves in the OpenAPI document: their errors, and bodies that are read by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path

from matoolkit.api.answers import ErrorAnswer
from matoolkit.api.paging import LARGEST_ID

if TYPE_CHECKING:
    from pydantic import BaseModel

_LARGEST_VERSION = 2**31 - 1

Id = Annotated[int, Path(ge=1, le=LARGEST_ID)]
Version = Annotated[int, Path(ge=1, le=_LARGEST_VERSION)]
RunbookName = Annotated[str, Path(min_length=1, max_length=256, description="The runbook's name, in any case.")]

_WHEN = {
    400: "The request is not understood, or not possible yet.",
    401: "No token, or none that is valid.",
    403: "The token lacks the role.",
    404: "What it speaks of is not there.",
    408: "The rest of the request did not come.",
    409: "It does not fit the state things are in.",
    413: "The request is too large.",
    500: "A fault of the program; the log says more under the request's id.",
    503: "The database, or the keys that tokens are checked with, cannot be reached.",
}

_KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request under the same key is done once and answered alike, for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
}
_UPLOAD = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary", "description": "CSV, UTF-8, at most 50 MB."}},
}


def errors(*statuses: int, **models: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The errors a route may answer with, besides those that all may."""
    return {
        status: {"model": models.get(f"of_{status}", ErrorAnswer), "description": _WHEN[status]}
        for status in (400, 401, 403, 500, 503, *statuses)
    }


def json_body(kind: type[BaseModel]) -> dict[str, Any]:
    """A write whose body is JSON."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "parameters": [_KEY_PARAMETER],
    }


def form_body(**fields: str) -> dict[str, Any]:
    """A write whose body is a form with a file and some text."""
    texts = {name: {"type": "string", "description": text} for name, text in fields.items()}
    schema = {
        **_UPLOAD,
        "required": [*fields, "file"],
        "properties": {**texts, **_UPLOAD["properties"]},  # type: ignore[dict-item]
    }
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}},
        "parameters": [_KEY_PARAMETER],
    }


def no_body() -> dict[str, Any]:
    """A write that says everything in its path."""
    return {"parameters": [_KEY_PARAMETER]}
