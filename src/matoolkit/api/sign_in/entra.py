"""Keys of Entra ID: fetched when first needed, kept for a day, fetched again when a token names one that is new.

Whoever sends tokens with made-up key ids must not make us fetch each time, so an unknown id leads to a fetch at most
once in a while. When a fetch fails, the keys there are go on being used.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any

import jwt
import msgspec

from matoolkit.api.sign_in.keys import KeysUnavailable
from matoolkit.api.sign_in.tokens import SignIn, TokenRules

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.clock import Clock

log = logging.getLogger(__name__)

ALGORITHM = "RS256"
_KEPT_FOR = timedelta(days=1)
_UNKNOWN_AT_MOST_EVERY = timedelta(minutes=5)
_FAILED_AT_MOST_EVERY = timedelta(seconds=10)
_SHORTEST_KEY_BITS = 2048
_TIMEOUT_SECONDS = 10
_LARGEST_ANSWER = 1_000_000
_OLDER_ISSUERS = {
    "login.chinacloudapi.cn": "sts.chinacloudapi.cn",
    "login.partner.microsoftonline.cn": "sts.chinacloudapi.cn",
}


@dataclass(frozen=True, slots=True)
class EntraSettings:
    """Which tenant's tokens are accepted, and for which application."""

    tenant_id: str
    client_id: str
    audience: str | None = None
    """The application's URI; `api://{client id}` unless told otherwise."""
    instance: str = "https://login.microsoftonline.com/"

    @property
    def keys_url(self) -> str:
        """Where the tenant publishes its keys."""
        return f"{self.instance.rstrip('/')}/{self.tenant_id}/discovery/v2.0/keys"

    @property
    def rules(self) -> TokenRules:
        """Tokens of both versions: they differ in who says to have issued them, and in how the audience is named."""
        instance = self.instance.rstrip("/")
        host = instance.partition("://")[2]
        older = _OLDER_ISSUERS.get(host, "sts.windows.net")
        return TokenRules(
            algorithm=ALGORITHM,
            issuers=frozenset({f"{instance}/{self.tenant_id}/v2.0", f"https://{older}/{self.tenant_id}/"}),
            audiences=frozenset({self.client_id, self.audience or f"api://{self.client_id}"}),
        )


@dataclass(slots=True)
class EntraKeys:
    """The keys a tenant publishes."""

    url: str
    clock: Clock
    fetch: Callable[[str], bytes]
    _keys: dict[str, Any] = field(default_factory=dict)
    _fetched_at: datetime | None = None
    _tried_at: datetime | None = None
    _failed: bool = False
    _turn: Lock = field(default_factory=Lock)

    def find(self, key_id: str, *, fetch: bool = True) -> Any | None:
        """The key. Where a fetch is in order one does it, and only those wait for it who have no key without it."""
        key = self._keys.get(key_id)
        if not fetch or (key is not None and not self._is_due()):
            return key
        if self._turn.acquire(blocking=key is None):
            try:
                key = self._keys.get(key_id)
                if self._may_fetch() if key is None else self._is_due():
                    self._refresh()
                    key = self._keys.get(key_id)
            finally:
                self._turn.release()
        if key is None and not self._keys:
            raise KeysUnavailable
        return key

    def has(self, key_id: str) -> bool:
        """Whether the key is there, and nobody has to fetch any first."""
        return key_id in self._keys and not self._is_due()

    def _is_due(self) -> bool:
        """Whether keys that are there should be fetched anew."""
        return self._is_old() and self._may_fetch()

    def _is_old(self) -> bool:
        return self._fetched_at is None or self.clock.now() - self._fetched_at > _KEPT_FOR

    def _may_fetch(self) -> bool:
        if self._tried_at is None:
            return True
        pause = _FAILED_AT_MOST_EVERY if self._failed else _UNKNOWN_AT_MOST_EVERY
        return self.clock.now() - self._tried_at >= pause

    def _refresh(self) -> None:
        self._tried_at = self.clock.now()
        try:
            keys = _read(self.fetch(self.url))
        except Exception as error:  # noqa: BLE001 - whatever the network or the answer does, the keys there are stay
            log.warning("the keys at %s cannot be fetched: %s: %s", self.url, type(error).__name__, error)
            self._failed = True
            return
        self._failed = not keys
        if keys:
            self._keys, self._fetched_at = keys, self._tried_at


def entra_sign_in(settings: EntraSettings, clock: Clock, fetch: Callable[[str], bytes] | None = None) -> SignIn:
    """Sign-in with Entra ID, and with nothing else."""
    return SignIn(settings.rules, EntraKeys(settings.keys_url, clock, fetch or _over_https), clock)


def _read(answer: bytes) -> dict[str, Any]:
    """The keys of a key set that can check our kind of signature; the others are none of our business."""
    document = msgspec.json.decode(answer)
    listed = document.get("keys") if isinstance(document, dict) else None
    keys: dict[str, Any] = {}
    for each in listed if isinstance(listed, list) else []:
        if not isinstance(each, dict) or each.get("kty") != "RSA" or each.get("use", "sig") != "sig":
            continue
        key_id = each.get("kid")
        try:
            key: Any = jwt.PyJWK(each, algorithm=ALGORITHM).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        if isinstance(key_id, str) and hasattr(key, "public_numbers") and key.key_size >= _SHORTEST_KEY_BITS:
            keys[key_id] = key
    return keys


def _over_https(url: str) -> bytes:
    import requests

    with requests.get(url, timeout=_TIMEOUT_SECONDS, allow_redirects=False, stream=True) as answer:
        if answer.status_code != requests.codes.ok:
            raise KeysUnavailable(f"HTTP status {answer.status_code}")
        body = answer.raw.read(_LARGEST_ANSWER, decode_content=True)
        return bytes(body)
