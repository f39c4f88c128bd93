"""What the API answers when it cannot do what was asked, each kind with its status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ApiError(MatoolkitError):
    """The request cannot be granted."""

    status = 400
    headers: Mapping[str, str] = {}

    def body(self) -> dict[str, Any]:
        """What the answer says."""
        return {"error": str(self)}


class BadRequest(ApiError):
    """The request is not understood, or not possible as things are."""


class Unauthenticated(ApiError):
    """The request has no valid token."""

    status = 401
    headers = {"WWW-Authenticate": "Bearer"}  # noqa: RUF012 - not changed


class Forbidden(ApiError):
    """The token does not carry the role that this needs."""

    status = 403


class NotFound(ApiError):
    """What the request speaks of is not there."""

    status = 404


class Conflict(ApiError):
    """The request does not fit the state things are in."""

    status = 409


class TooLarge(ApiError):
    """The request's body is larger than anything this takes."""

    status = 413


class TooSlow(ApiError):
    """The request's body does not come."""

    status = 408
    headers = {"Connection": "close"}  # noqa: RUF012 - not changed


class Unavailable(ApiError):
    """Something that the answer needs cannot be reached; the same request may succeed later."""

    status = 503
    retryable = True
    headers = {"Retry-After": "5"}  # noqa: RUF012 - not changed


class InvalidRunbook(ApiError):
    """The runbook has errors."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__()
        self.errors = list(errors)

    def body(self) -> dict[str, Any]:
        """Every error."""
        return {"errors": self.errors}


class InvalidFile(ApiError):
    """The file cannot be taken."""

    def __init__(self, errors: Sequence[str], warnings: Sequence[str] = ()) -> None:
        super().__init__("the file was not taken: " + (errors[0] if len(errors) == 1 else f"{len(errors)} errors"))
        self.errors, self.warnings = list(errors), list(warnings)

    def body(self) -> dict[str, Any]:
        """Every error and every warning."""
        return {"error": str(self), "errors": self.errors, "warnings": self.warnings}
