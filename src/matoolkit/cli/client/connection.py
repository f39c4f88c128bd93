"""Requests to the admin API over HTTP: signed, tried again where that is safe, their failures told by name.

Reads are repeated when the connection breaks or the server asks for it. Writes are too, because each carries a key of
its own by which the server knows a repetition and answers it alike.
"""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import requests
from requests.auth import AuthBase

from matoolkit import __version__
from matoolkit.cli.client.errors import NotOurServer, ServerAway, ServerFailed, ServerSilent, ServerUntrusted, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.cli.client.errors import ClientError

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
_TRIES = 3
_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE = 10.0
_TRANSIENT = frozenset({429, 502, 503, 504})
_FIRST_REDIRECT, _FIRST_REFUSAL, _FIRST_FAILURE = 300, 400, 500


class _Bearer(AuthBase):
    """Signs a request; it also keeps `requests` from looking for passwords in ~/.netrc."""

    def __init__(self, token: Callable[[], str] | None) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token()}"
        return request


@dataclass
class Connection:
    """To one server, as one person."""

    url: str
    token: Callable[[], str] | None
    advice: str = "Sign in again with `matoolkit auth login`"
    """What to do when the server does not accept the token."""
    new_key: Callable[[], str] = lambda: uuid4().hex
    sleep: Callable[[float], None] = time.sleep
    tries: int = _TRIES
    _session: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")
        self._session.auth = _Bearer(self.token)
        self._session.headers["User-Agent"] = f"matoolkit/{__version__}"
        # A proxy is between machines, never between this one and itself.
        self._proxies = {"no_proxy": "*"} if is_loopback(self.url) else None

    def close(self) -> None:
        """Let go of what is open."""
        self._session.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        file: tuple[str, bytes] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> requests.Response:
        """Ask, and give an answer that is good; anything else is an error of ours."""
        writing = method != "GET"
        headers = {"Idempotency-Key": self.new_key()} if writing else {}
        given: dict[str, Any] = {
            "params": {name: _plain(value) for name, value in (query or {}).items() if value is not None},
            "headers": headers,
            "json": json,
            "data": form,
            "files": None if file is None else {"file": (_file_name(file[0]), file[1], "text/csv")},
            "timeout": (CONNECT_SECONDS, seconds),
            "proxies": self._proxies,
        }
        failure: ClientError | None = None
        for attempt in range(self.tries):
            if attempt:
                self.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
            answer, failure, again = self._once(method, path, given, writing=writing, seconds=seconds)
            if answer is not None:
                return answer
            if not again:
                break
        if failure is None:
            raise AssertionError("there was no attempt")
        raise failure

    def _once(
        self, method: str, path: str, given: Mapping[str, Any], *, writing: bool, seconds: float
    ) -> tuple[requests.Response | None, ClientError | None, bool]:
        """An answer, or what went wrong and whether to try again at once."""
        try:
            answer = self._session.request(method, self.url + path, allow_redirects=False, **given)
        except requests.exceptions.SSLError as error:
            return None, ServerUntrusted(self.url, _reason(error)), False
        except requests.exceptions.ReadTimeout:
            # Whoever let us wait that long will do so again.
            return None, ServerSilent(self.url, seconds, writing=writing), False
        except requests.exceptions.ConnectTimeout:
            return None, ServerAway(self.url, f"no connection within {CONNECT_SECONDS:g} seconds"), False
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema) as error:
            return None, ServerAway(self.url, str(error)), False
        except requests.exceptions.RequestException as error:
            reason = _reason(error)
            # Nobody is there: a person waits for this, and nothing was begun that a second try could save.
            return None, ServerAway(self.url, reason), "refused" not in reason.casefold()
        status = answer.status_code
        if status < _FIRST_REDIRECT:
            return answer, None, False
        if status < _FIRST_REFUSAL:
            target = answer.headers.get("Location", "elsewhere")
            return None, NotOurServer(self.url, f"it sends us to {target}"), False
        body = _body(answer)
        if status in _TRANSIENT and body is not None and (pause := _retry_after(answer)):
            self.sleep(min(pause, _LONGEST_PAUSE))
        if status >= _FIRST_FAILURE or status in _TRANSIENT:
            said = str((body or {}).get("error") or answer.reason or "no reason given")
            request_id = answer.headers.get("X-Request-Id")
            return None, ServerFailed(self.url, status, said, request_id), status in _TRANSIENT
        if body is None:
            return None, NotOurServer(self.url, f"it answers {status} with {_kind(answer)}"), False
        return None, refusal(status, body, advice=self.advice), False


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def decoded(answer: requests.Response, url: str) -> dict[str, Any]:
    """The object that a good answer holds."""
    body = _body(answer)
    if body is None:
        raise NotOurServer(url, f"it answers with {_kind(answer)}")
    return body


def _body(answer: requests.Response) -> dict[str, Any] | None:
    try:
        found = answer.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _kind(answer: requests.Response) -> str:
    return answer.headers.get("Content-Type", "").partition(";")[0] or "nothing that says what it is"


def _retry_after(answer: requests.Response) -> float:
    given = answer.headers.get("Retry-After", "")
    return float(given) if given.isascii() and given.isdigit() else 0.0


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _file_name(name: str) -> str:
    """A name that fits into a header whatever the file is called; the server makes nothing of it."""
    return name.encode("ascii", "replace").decode().replace("?", "_") or "people.csv"


def _reason(error: BaseException) -> str:
    """The innermost reason, without the layers that were passed on the way."""
    found: Any = error
    while True:
        inner = getattr(found, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((each for each in reversed(found.args) if isinstance(each, BaseException)), None)
        if inner is None:
            inner = found.__cause__
        if inner is None or inner is found:
            break
        found = inner
    text = getattr(found, "strerror", None) or str(found.args[-1] if found.args else found)
    # "HTTPConnection(host=…): Failed to resolve …": what matters comes last.
    return str(text).rpartition(">: ")[2] or type(found).__name__
