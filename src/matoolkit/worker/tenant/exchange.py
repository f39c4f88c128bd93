"""Exchange Online of the target tenant, through the endpoint that Microsoft's own PowerShell module talks to.

The endpoint is not documented, so everything that is known about it stands in this file and nowhere else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from matoolkit.worker.tenant.asking import Api, Complaint, Surroundings
from matoolkit.worker.tenant.connection import address, same_host
from matoolkit.worker.tenant.errors import BadAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.worker.tenant.connection import Connection, Reply
    from matoolkit.worker.tenant.sign_in import SignIn

_ANCHOR: Final = "APP:SystemMailbox{{bb558c35-97f1-4cb9-8ff7-d53741dc928c}}@{}"
_MOST_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_THROTTLED: Final = ("serverbusyexception", "backoffexception", "microdelay", "toomanyrequests", "throttl")
_BUSY: Final = re.compile(r"server busy|microdelay|too many concurrent connections|rate limit", re.IGNORECASE)
_TRANSIENT: Final = ("cmdletproxynotavailablefailure", "transientexception", "backendcommunicationexception")
_ABOUT_SOMETHING_ELSE: Final = frozenset({401, 403, 404})


def added(value: str) -> dict[str, Any]:
    """The value of a parameter that takes a hashtable: `@{Add='value'}`."""
    return {"@odata.type": "#Exchange.GenericHashTable", "Add": value}


class Exchange:
    """Runs Exchange's commands, signed in, and patient when it is throttled."""

    def __init__(
        self, base: str, tenant_id: str, connection: Connection, sign_in: SignIn, surroundings: Surroundings
    ) -> None:
        self._base = base.rstrip("/")
        self._tenant_id = tenant_id
        self._url = address(self._base, ("adminapi", "beta", tenant_id, "InvokeCommand"))
        self._session_id = str(uuid4())
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
        return self._api.complaints("Exchange Online")

    async def invoke(
        self, command: str, parameters: Mapping[str, Any], *, repeatable: bool = True
    ) -> list[dict[str, Any]]:
        """Run a command and return what it put out, all pages of it."""
        headers = {
            "X-AnchorMailbox": _ANCHOR.format(self._tenant_id),
            "X-CmdletName": command,
            "X-ResponseFormat": "json",
            "X-SerializationLevel": "Partial",
            "X-ClientApplication": "ExoManagementModule",
            "Prefer": "odata.maxpagesize=1000",
            "connection-id": self._session_id,
        }
        body = {"CmdletInput": {"CmdletName": command, "Parameters": dict(parameters)}}
        url: str | None = self._url
        asked = self._base
        found: list[dict[str, Any]] = []
        while url is not None:
            url, content = await self._asked(url, headers, body, repeatable=repeatable)
            asked = url
            if content is None:
                return found
            values = content.get("value", []) if isinstance(content, dict) else None
            if not isinstance(values, list):
                raise BadAnswer(f"Exchange's answer to {command} cannot be understood")
            found += [each for each in values if isinstance(each, dict)]
            url = content.get("@odata.nextLink")
            if url is not None and not (isinstance(url, str) and (same_host(url, asked) or same_host(url, self._base))):
                raise BadAnswer(f"the next page of {command} is on another host, which is not asked")
        return found

    async def _asked(self, url: str, headers: Mapping[str, str], body: Any, *, repeatable: bool) -> tuple[str, Any]:
        """Where the answer came from, and what it says: another region's server may be the one to ask."""
        for _ in range(_MOST_REDIRECTS + 1):
            reply, content = await self._api.ask("POST", url, headers=headers, body=body, repeatable=repeatable)
            if reply.status not in _REDIRECTS:
                return url, content
            url = reply.headers.get("Location", "")
            if not _same_domain(url, self._base):
                raise BadAnswer("Exchange refers to a server of another domain, which is not asked")
        raise BadAnswer("Exchange refers from one server to the next without end")


def _same_domain(url: str, base: str) -> bool:
    """Whether a server is of the family: the token may be shown to it."""
    given, own = urlsplit(url), urlsplit(base)
    try:
        host, home = (given.hostname or "").lower(), (own.hostname or "").lower()
        if given.scheme != own.scheme or given.username or given.port != own.port:
            return False
    except ValueError:
        return False
    family = home.partition(".")[2]
    return host == home or ("." in family and host.endswith(f".{family}"))


def read_error(reply: Reply, content: Any) -> Complaint:
    """What an error of Exchange says: the type stands in the middle of a detail, between bars."""
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict):
        # A refused token and a missing role are answered without a word.
        words = {
            401: "Exchange does not accept the worker's token",
            403: "Exchange does not let the worker do this: it needs Exchange.ManageAsApp and a directory role",
        }.get(reply.status, f"Exchange answered with status {reply.status}")
        return Complaint(f"HTTP{reply.status}", words)
    code = str(error.get("code") or f"HTTP{reply.status}")
    message = str(error.get("message") or f"Exchange answered with status {reply.status}")
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        parts = str(detail.get("message", "")).split("|", 2) if isinstance(detail, dict) else []
        if len(parts) == 3:  # noqa: PLR2004 - number, type, text
            code, message = parts[1] or code, parts[2]
            break
    folded = code.casefold()
    busy = reply.status not in _ABOUT_SOMETHING_ELSE and _BUSY.search(message) is not None
    return Complaint(
        code,
        message,
        throttled=busy or any(each in folded for each in _THROTTLED),
        transient=any(each in folded for each in _TRANSIENT),
    )
