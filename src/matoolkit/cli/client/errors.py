"""What can go wrong between the command line and the admin API, each with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ClientError(MatoolkitError):
    """The admin API was asked in vain."""

    @property
    def brief(self) -> str:
        """What is wrong, without what to do about it."""
        return str(self)


class ServerAway(ClientError):
    """Nobody answers at the address."""

    retryable = True

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        self.why = why
        super().__init__(
            f"{self.brief}. Is it running (`matoolkit up` starts one on this machine), and is that its address? "
            "Another one is named with --api-url, MATOOLKIT_API_URL or `matoolkit config set api-url`"
        )

    @property
    def brief(self) -> str:
        """Where nobody is."""
        return f"the server at {self.url} cannot be reached: {self.why}"


class ServerSilent(ClientError):
    """The server took the request and did not answer in time."""

    retryable = True

    def __init__(self, url: str, seconds: float, *, writing: bool) -> None:
        outcome = " Whether it did what was asked is not known: look before you do it again." if writing else ""
        super().__init__(f"the server at {url} did not answer within {seconds:g} seconds.{outcome}")


class ServerUntrusted(ClientError):
    """The server's certificate is not trusted."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"the server at {url} shows a certificate that is not trusted here: {why}. "
            "If it comes from an authority of your own, name its file in REQUESTS_CA_BUNDLE"
        )


class NotOurServer(ClientError):
    """Something answers at the address that is not the admin API."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"what answers at {url} does not look like the admin API: {what}. "
            "Check the address (--api-url, MATOOLKIT_API_URL, `matoolkit config show`)"
        )


class Refused(ClientError):
    """The server understood, and said no."""

    def __init__(self, status: int, error: str, errors: Sequence[str] = (), warnings: Sequence[str] = ()) -> None:
        self.status = status
        self.error = error
        self.errors = tuple(errors)
        self.warnings = tuple(warnings)
        lines = [error]
        # With one error the sentence says it already.
        if not (len(self.errors) == 1 and self.errors[0] in error):
            lines += [f"  {each}" for each in self.errors]
        lines += [f"  warning: {each}" for each in self.warnings]
        super().__init__("\n".join(lines))


class NotThere(Refused):
    """What was asked about is not there."""


class DoesNotFit(Refused):
    """The request does not fit the state things are in."""


class SignInRefused(Refused):
    """The server does not accept the token."""


class RoleMissing(Refused):
    """The token lacks the role."""


class ServerFailed(ClientError):
    """A fault of the server."""

    retryable = True

    def __init__(self, url: str, status: int, error: str, request_id: str | None) -> None:
        self.status = status
        self.request_id = request_id
        where = f"; its log says more under request {request_id}" if request_id else ""
        super().__init__(f"the server at {url} failed: {error} (status {status}{where})")


def refusal(status: int, body: Mapping[str, Any], *, advice: str = "") -> Refused:
    """The error that an answer of the API stands for; `advice` is what whoever signed in can do about a 401."""
    errors = [str(each) for each in body.get("errors") or ()]
    warnings = [str(each) for each in body.get("warnings") or ()]
    error = str(body.get("error") or "")
    if not error:
        error = f"it has {len(errors)} errors:" if len(errors) > 1 else (*errors, "no reason was given")[0]
    match status:
        case 401:
            return SignInRefused(status, f"the server does not accept your sign-in: {error}. {advice}".rstrip())
        case 403:
            return RoleMissing(
                status,
                f"you are signed in, but may not do this: {error}. Have the role assigned, then sign in again "
                "(`matoolkit auth logout`, `matoolkit auth login`); `matoolkit auth status` shows what you have",
            )
        case 404:
            return NotThere(status, error, errors, warnings)
        case 409:
            return DoesNotFit(status, error, errors, warnings)
        case _:
            return Refused(status, error, errors, warnings)
