"""How asking the tenant fails."""

from __future__ import annotations

from matoolkit.worker.errors import FunctionError


class TenantError(FunctionError):
    """The tenant was asked, and it did not work out."""

    uncertain: bool = False
    """Whether the tenant may have done what it was asked."""


class Refused(TenantError):
    """The tenant answered that it will not, or cannot; the type is its own code."""

    def __init__(
        self, message: str, *, code: str, status: int, request_id: str = "", attempts: int, is_throttled: bool = False
    ) -> None:
        named = f"{message} (request id {request_id})" if request_id else message
        super().__init__(named, type=code, attempts=attempts, is_throttled=is_throttled)
        self.status = status
        """The status of HTTP."""
        self.said = message
        """In the tenant's own words."""
        self.uncertain = status >= 500 and not is_throttled  # noqa: PLR2004 - from here on it is the server's failure


class NotReached(TenantError):
    """The tenant cannot be reached; it was not asked."""

    retryable = True


class ConnectionLost(TenantError):
    """The connection broke before the answer was there; the tenant may have done what it was asked, or not."""

    retryable = True
    uncertain = True


class BadAnswer(TenantError):
    """The tenant's answer cannot be understood, or is not to be trusted."""

    uncertain = True
