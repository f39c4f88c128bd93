"""Errors as Graph words them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from matoolkit.simulation.tenant.calls import Answer, Refused, json_answer


def error_answer(
    status: int,
    code: str,
    message: str,
    *,
    details: list[dict[str, str]] | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """An error in Graph's envelope."""
    request = str(uuid4())
    error: dict[str, Any] = {"code": code, "message": message}
    if details:
        error["details"] = details
    error["innerError"] = {
        "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}",
        "request-id": request,
        "client-request-id": request,
    }
    return json_answer(status, {"error": error}, headers)


def bad_request(message: str, *, code: str = "Request_BadRequest", target: str = "", detail: str = "") -> Refused:
    """400; with a target and a detail's code, they are told too."""
    details = [{"code": detail, "message": message, "target": target}] if detail else None
    return Refused(error_answer(400, code, message, details=details))


def not_found(identifier: str) -> Refused:
    """404 for an object."""
    return Refused(
        error_answer(
            404,
            "Request_ResourceNotFound",
            f"Resource '{identifier}' does not exist or one of its queried reference-property objects are not present.",
        )
    )


def no_such_segment(segment: str) -> Refused:
    """400 for a path that Graph does not know."""
    return bad_request(f"Resource not found for the segment '{segment}'.", code="BadRequest")


def method_not_allowed() -> Refused:
    """405."""
    return Refused(
        error_answer(405, "Request_BadRequest", "Specified HTTP method is not allowed for the request target.")
    )


def denied() -> Refused:
    """403."""
    return Refused(
        error_answer(403, "Authorization_RequestDenied", "Insufficient privileges to complete the operation.")
    )


def unauthorized(message: str) -> Answer:
    """401."""
    headers = {"WWW-Authenticate": 'Bearer realm="", error="invalid_token"'}
    return error_answer(401, "InvalidAuthenticationToken", message, headers=headers)


def conflict(name: str) -> Refused:
    """400: another object has that value."""
    return bad_request(
        f"Another object with the same value for property {name} already exists.", target=name, detail="ObjectConflict"
    )


def invalid_value(name: str, resource: str) -> Refused:
    """400: the value is not allowed."""
    return bad_request(
        f"Invalid value specified for property '{name}' of resource '{resource}'.", target=name, detail="InvalidValue"
    )
