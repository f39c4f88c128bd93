"""Microsoft Graph in the target tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matoolkit.worker.tenant.asking import Api, Complaint, Surroundings
from matoolkit.worker.tenant.connection import address, same_host
from matoolkit.worker.tenant.errors import BadAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matoolkit.worker.tenant.connection import Connection, Reply
    from matoolkit.worker.tenant.sign_in import SignIn

_THROTTLED: Final = ("toomanyrequests", "429", "throttled", "ratelimit", "rate limit")


class Graph:
    """Asks Graph, signed in, and patient when it is throttled."""

    def __init__(self, base: str, connection: Connection, sign_in: SignIn, surroundings: Surroundings) -> None:
        self._base = base.rstrip("/")
        self._api = Api(connection, sign_in, f"{self._base}/.default", read_error, surroundings)

    @property
    def rate(self) -> float:
        """Requests a second at the moment, at most."""
        return self._api.throttle.rate

    async def sign_in(self) -> None:
        """Have a token; a failure says why nothing can be asked."""
        await self._api.sign_in()

    def complaints(self) -> list[str]:
        """What keeps it from being asked, if anything does."""
        return self._api.complaints("Microsoft Graph")

    def address(self, path: Sequence[str], *, version: str = "v1.0") -> str:
        """The address of an object, for bodies that refer to one."""
        return address(f"{self._base}/{version}", path)

    async def request(
        self,
        method: str,
        path: Sequence[str],
        *,
        version: str = "v1.0",
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        repeatable: bool = True,
    ) -> Any:
        """Send one request and return the decoded answer, None when it has no body."""
        url = address(f"{self._base}/{version}", path, query)
        reply, content = await self._api.ask(method, url, body=body, repeatable=repeatable)
        _check_stayed(reply)
        return content

    async def collect(
        self, path: Sequence[str], *, version: str = "v1.0", query: Mapping[str, str] | None = None
    ) -> list[Any]:
        """Everything in a collection, page after page."""
        url: str | None = address(f"{self._base}/{version}", path, query)
        found: list[Any] = []
        while url is not None:
            reply, content = await self._api.ask("GET", url)
            _check_stayed(reply)
            if not isinstance(content, dict) or not isinstance(content.get("value"), list):
                raise BadAnswer(f"Graph's answer is no collection (request id {reply.request_id})")
            found += content["value"]
            url = content.get("@odata.nextLink")
            if url is not None and not (isinstance(url, str) and same_host(url, self._base)):
                raise BadAnswer("Graph's next page is on another host, which is not asked")
        return found


def _check_stayed(reply: Reply) -> None:
    if reply.status >= 300:  # noqa: PLR2004 - redirects
        raise BadAnswer(f"Graph refers to another address (status {reply.status}), which is not followed")


def read_error(reply: Reply, content: Any) -> Complaint:
    """What an error of Graph says: `{"error": {"code", "message"}}`."""
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict):
        return Complaint(f"HTTP{reply.status}", f"Graph answered with status {reply.status}")
    code = str(error.get("code") or f"HTTP{reply.status}")
    message = str(error.get("message") or f"Graph answered with status {reply.status}")
    folded = code.casefold()
    return Complaint(code, message, throttled=any(each in folded for each in _THROTTLED))
