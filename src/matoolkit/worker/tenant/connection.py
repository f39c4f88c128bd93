"""One HTTP client for all that is asked of a tenant: pooled connections, time limits, bounded answers, no surprises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from matoolkit.worker.errors import ValidationError
from matoolkit.worker.tenant.errors import BadAnswer, ConnectionLost, NotReached

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping

LARGEST_ANSWER: Final = 32 * 1024 * 1024
"""Bytes of an answer that are read at most."""
_CHUNK: Final = 64 * 1024
_SHORTEST_WITH_OPERATION: Final = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """How long is waited for what."""

    connect_seconds: float = 15.0
    read_seconds: float = 120.0
    """Between two pieces of an answer; Exchange thinks long."""
    connections: int = 64


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def request_id(self) -> str:
        """What Microsoft's support asks for."""
        return self.headers.get("request-id") or self.headers.get("client-request-id") or ""


class Connection:
    """Sends requests to the tenant's services, each of them once, and follows nothing by itself."""

    def __init__(self, tls: ssl.SSLContext | None = None, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limits.connections, ssl=tls or True),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=limits.connect_seconds, sock_read=limits.read_seconds
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "matoolkit"},
            # Else it looks into `.netrc` before each request, and a password there gets in the token's way.
            trust_env=False,
        )
        self._proxies: dict[str, str | None] = {}

    async def close(self) -> None:
        """Let go of all connections."""
        await self.session.close()

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        """Send a request and read the answer; an error says whether the tenant may have acted, and is never retried."""
        host = urlsplit(url).hostname or ""
        if host not in self._proxies:
            self._proxies[host] = proxy_to(url)
        try:
            # What is encoded stays as it is encoded: an identifier never becomes part of the path.
            async with self.session.request(
                method, _encoded(url), headers=headers, data=body, allow_redirects=False, proxy=self._proxies[host]
            ) as answer:
                return Reply(answer.status, answer.headers, await _bounded(answer))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotReached(f"{host} cannot be reached: {reason(error)}", attempts=0) from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(
                f"the connection to {host} broke before its answer was there: {reason(error)}"
            ) from error


def proxy_to(url: str) -> str | None:
    """The proxy on the way to an address, if this machine's settings name one: HTTPS_PROXY, NO_PROXY."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    if (answer.content_length or 0) > LARGEST_ANSWER:
        raise BadAnswer(f"the answer is larger than {LARGEST_ANSWER} bytes")
    body = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise BadAnswer(f"the answer is larger than {LARGEST_ANSWER} bytes")
    return bytes(body)


def reason(error: BaseException) -> str:
    """What broke. The texts of certificate errors are kept; everything else may quote addresses, and does not help."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        return f"its certificate is not trusted: {why} (TENANT_CA_PATH names who else is trusted)"
    return type(error).__name__


def _encoded(url: str) -> Any:
    from yarl import URL

    return URL(url, encoded=True)


def address(base: str, path: Iterable[str], query: Mapping[str, str] | None = None) -> str:
    """An address of which every part is encoded by itself."""
    parts = list(path)
    # `$ref` and the like end a longer path, as in groups/…/members/$ref; an identifier is never one of them.
    if any(part.startswith("$") for part in (parts if len(parts) < _SHORTEST_WITH_OPERATION else parts[:-1])):
        raise ValidationError("an identifier begins with a dollar sign, which stands for operations of the service")
    segments = [quote(_safe(segment), safe="$") for segment in parts]
    parameters = "&".join(f"{quote(name, safe='$')}={quote(value, safe=',')}" for name, value in (query or {}).items())
    return "/".join([base.rstrip("/"), *segments]) + (f"?{parameters}" if parameters else "")


def same_host(url: str, base: str) -> bool:
    """Whether an address that the tenant gave leads to where it was asked."""
    given, own = urlsplit(url), urlsplit(base)
    try:
        return (given.scheme, given.hostname, given.port) == (own.scheme, own.hostname, own.port) and not given.username
    except ValueError:
        return False


def _safe(segment: str) -> str:
    """Dots alone are steps in a path, however they are encoded: no identifier is one."""
    if not segment.strip(".") or any(ord(letter) < ord(" ") for letter in segment):
        raise ValidationError("an identifier is empty, or is nothing but dots, or has control characters in it")
    try:
        segment.encode()
    except UnicodeEncodeError:
        raise ValidationError("an identifier has characters in it that no text may have") from None
    return segment
