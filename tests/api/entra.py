"""A tenant of Entra ID as far as tokens go: keys, a place where they are published, tokens right and wrong."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from matoolkit.api.sign_in import EntraSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

TENANT = "11111111-2222-3333-4444-555555555555"
CLIENT = "66666666-7777-8888-9999-000000000000"
SETTINGS = EntraSettings(TENANT, CLIENT)
V2 = f"https://login.microsoftonline.com/{TENANT}/v2.0"
V1 = f"https://sts.windows.net/{TENANT}/"


@cache
def rsa_key(_name: str, bits: int = 2048) -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=bits)


class Directory:
    """Publishes keys, and counts who asks."""

    def __init__(self) -> None:
        self.published = {"first": rsa_key("first")}
        self.asked = 0
        self.fails = False
        self.extra: list[Any] = []
        self.gate: threading.Event | None = None
        self.is_asked = threading.Event()

    def fetch(self, url: str) -> bytes:
        assert url == f"https://login.microsoftonline.com/{TENANT}/discovery/v2.0/keys"
        self.asked += 1
        if self.gate is not None:
            self.is_asked.set()
        if self.gate is not None:
            assert self.gate.wait(10)
        if self.fails:
            raise OSError("no route")
        keys = [{**public(key), "kid": kid, "use": "sig"} for kid, key in self.published.items()]
        return json.dumps({"keys": [*keys, *self.extra]}).encode()


def public(key: RSAPrivateKey) -> dict[str, Any]:
    found: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return found


def claims(now: datetime | None = None, **changes: Any) -> dict[str, Any]:
    now = now or datetime.now(UTC)
    given = {
        "iss": V2,
        "aud": CLIENT,
        "preferred_username": "anna@example.test",
        "roles": ["Admin"],
        "iat": int(now.timestamp()),
        "nbf": int(now.timestamp()),
        "exp": int((now + timedelta(hours=1)).timestamp()),
        **changes,
    }
    return {name: value for name, value in given.items() if value is not None}


def signed(
    given: Mapping[str, Any] | None = None, *, key: Any = None, kid: str | None = "first", algorithm: str = "RS256"
) -> str:
    """Signed whatever it says: the library would look at the claims."""
    headers = {} if kid is None else {"kid": kid}
    body = json.dumps(dict(claims() if given is None else given)).encode()
    return jwt.PyJWS().encode(body, rsa_key("first") if key is None else key, algorithm, headers)
