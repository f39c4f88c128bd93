"""Calls to a workspace: signed in, within the time limit, and again when it is busy or stumbles."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
import requests

from matoolkit.scheduler.sources.errors import (
    BadConnection,
    QueryRefused,
    SignInRefused,
    SourceError,
    SourceUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.scheduler.sources.settings import SourceSettings
    from matoolkit.scheduler.sources.watch import Watch

_CONNECT_SECONDS: Final = 15.0
_ATTEMPTS: Final = 4
_FIRST_PAUSE: Final = 0.5
_BUSY: Final = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
_STUMBLED: Final = {HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
_LARGEST_ANSWER: Final = 128 * 1024 * 1024


class Workspace:
    """One workspace, for one reading."""

    def __init__(self, url: str, token: Callable[[], str], settings: SourceSettings, watch: Watch) -> None:
        self._url = url
        self._token = token
        self._settings = settings
        self._watch = watch
        self._session = requests.Session()
        # Said with each request: what is said for the session gives way to REQUESTS_CA_BUNDLE.
        self._verify = settings.ca_file or True

    def close(self) -> None:
        """Hang up."""
        self._session.close()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One call of the API, and its answer."""
        # What starts a statement is not sent twice when nobody knows whether the first one arrived.
        content = self._insist(method, self._url + path, _signed(self._token()), body, again=method == "GET")
        try:
            answer = msgspec.json.decode(content or b"{}")
        except msgspec.DecodeError as error:
            raise self._strange() from error
        if not isinstance(answer, dict):
            raise self._strange()
        return answer

    def fetch(self, link: str, headers: Mapping[str, str]) -> list[list[str | None]]:
        """The rows behind a link to a storage account, which is not told who we are."""
        if not acceptable(link, self._settings):
            raise SourceUnavailable(f"{self._watch.place}: refused a link to rows that does not begin with https://")
        kept = {name: value for name, value in headers.items() if name.lower() not in {"authorization", "cookie"}}
        content = self._insist("GET", link, _with_headers(kept), None, again=True)
        try:
            return msgspec.json.decode(content, type=list[list[str | None]])
        except msgspec.DecodeError as error:
            raise self._strange() from error

    def tell(self, path: str, seconds: float) -> None:
        """Say something whether or not the time is up, without waiting long and without insisting."""
        try:
            self._session.post(
                self._url + path,
                json={},
                auth=_signed(self._token()),
                allow_redirects=False,
                verify=self._verify,
                timeout=seconds,
            ).close()
        except (requests.RequestException, SourceError):
            return

    def _insist(
        self,
        method: str,
        url: str,
        auth: Callable[[requests.PreparedRequest], requests.PreparedRequest],
        body: Mapping[str, Any] | None,
        *,
        again: bool,
    ) -> bytes:
        pause = _FIRST_PAUSE
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                status, headers, content = self._once(method, url, auth, body)
            except requests.RequestException as error:
                if self._watch.over:
                    raise self._watch.too_long() from error
                # What requests says quotes the address, and a link's address is a key to what it leads to.
                kind = _kind_of(error)
                if isinstance(error, requests.exceptions.SSLError) or not again or attempt == _ATTEMPTS:
                    raise SourceUnavailable(f"{self._watch.place}: {_host(url)} {kind}") from None
            else:
                if status == HTTPStatus.OK:
                    return content
                worth = status in _BUSY or (again and status in _STUMBLED)
                if not worth or attempt == _ATTEMPTS:
                    raise self._refusal(url, status, content)
                pause = _asked_for(headers) or pause
            if pause >= self._watch.remaining():
                raise SourceUnavailable(
                    f"{self._watch.place}: {_host(url)} is busy and asks for {pause:g} seconds, which is more than the"
                    " time limit leaves"
                )
            self._settings.sleep(pause)
            pause *= 2
        raise AssertionError("the last attempt either answers or raises")

    def _once(
        self,
        method: str,
        url: str,
        auth: Callable[[requests.PreparedRequest], requests.PreparedRequest],
        body: Mapping[str, Any] | None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        remaining = self._watch.remaining()
        with self._session.request(
            method,
            url,
            json=body,
            auth=auth,
            allow_redirects=False,
            stream=True,
            verify=self._verify,
            timeout=(min(_CONNECT_SECONDS, remaining), remaining),
        ) as answer:
            parts = bytearray()
            # What comes drop by drop never runs into the time limit of one drop.
            with self._watch.interrupting(answer.raw.shutdown):
                for part in answer.iter_content(64 * 1024):
                    parts += part
                    if len(parts) > _LARGEST_ANSWER:
                        raise QueryRefused(f"{self._watch.place}: one part of the result is larger than 128 MB")
            return answer.status_code, answer.headers, bytes(parts)

    def _refusal(self, url: str, status: int, content: bytes) -> Exception:
        said = _message(content)
        place = self._watch.place
        if not url.startswith(self._url):
            return SourceUnavailable(f"{place}: the storage at {_host(url)} answered {status} for a part of the result")
        if status == HTTPStatus.UNAUTHORIZED:
            return SignInRefused(f"{place}: {_host(url)} refused the token: check the identity or the token")
        if status == HTTPStatus.FORBIDDEN:
            return SignInRefused(f"{place}: {_host(url)} does not let this identity do that{said}")
        if status == HTTPStatus.NOT_FOUND:
            return QueryRefused(f"{place}: {_host(url)} does not know the warehouse or the statement{said}")
        if status == HTTPStatus.BAD_REQUEST:
            return QueryRefused(f"{place}: {_host(url)} refused the statement{said}")
        if status in _BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return SourceUnavailable(f"{place}: {_host(url)} is busy or out of order ({status})")
        return BadConnection(f"{place}: {_host(url)} answered {status}, as no Databricks workspace does")

    def _strange(self) -> SourceUnavailable:
        return SourceUnavailable(f"{self._watch.place}: the answer is not what a Databricks workspace gives")


def acceptable(url: str, settings: SourceSettings) -> bool:
    """Whether something may be sent to this address: with TLS, or to this machine where that is allowed."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return True
    return settings.plain_loopback and parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost", "::1"}


def _signed(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    return _with_headers({"Authorization": f"Bearer {token}"})


def _with_headers(headers: Mapping[str, str]) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    """Headers set last; given in this way, so that nothing is taken from a `.netrc` either."""

    def add(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(headers)
        return request

    return add


def _asked_for(headers: Mapping[str, str]) -> float | None:
    """How long the server asks us to wait, when it says so in seconds."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the address"


def _kind_of(error: requests.RequestException) -> str:
    match error:
        case requests.exceptions.SSLError():
            return "has no certificate that this machine trusts"
        case requests.Timeout():
            return "does not answer"
        case _:
            return "cannot be reached, or broke off"


def _message(content: bytes) -> str:
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return ""
    said = answer.get("message") if isinstance(answer, dict) else None
    return f": {str(said).strip().partition(chr(10))[0][:500]}" if said else ""
