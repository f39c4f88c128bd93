"""Tokens and the keys that sign them: RS256, published as a key set, rolled over on demand."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from jwt.algorithms import RSAAlgorithm

if TYPE_CHECKING:
    from matoolkit.clock import Clock
    from matoolkit.simulation.tenant.archive import Archive

_REMEMBERED = 4096


class SigningKeys:
    """The tenant's keys: the newest signs, all that are not retired verify."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._keys: dict[str, rsa.RSAPrivateKey] = {}
        for identifier, pem in archive.load("signing-key"):
            key = load_pem_private_key(pem.encode(), None)
            if isinstance(key, rsa.RSAPrivateKey):
                self._keys[identifier] = key
        if not self._keys:
            self.roll_over()

    def roll_over(self, *, retire: bool = False) -> str:
        """Sign with a new key from now on; with `retire`, what the old ones signed counts no more. Gives its id."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        identifier = hashlib.sha256(public).hexdigest()[:27]
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        with self._archive.together():
            if retire:
                for old in self._keys:
                    self._archive.remove("signing-key", old)
                self._keys.clear()
            self._archive.put("signing-key", identifier, pem)
        self._keys[identifier] = key
        return identifier

    @property
    def current(self) -> tuple[str, rsa.RSAPrivateKey]:
        """The key that signs, with its id."""
        return next(reversed(self._keys.items()))

    def find(self, identifier: str) -> rsa.RSAPublicKey | None:
        """The public part of a key that is not retired."""
        key = self._keys.get(identifier)
        return key.public_key() if key else None

    def published(self, issuer: str) -> dict[str, Any]:
        """The key set as clients fetch it."""
        return {
            "keys": [
                {
                    **json.loads(RSAAlgorithm.to_jwk(key.public_key())),
                    "kid": identifier,
                    "x5t": identifier,
                    "use": "sig",
                    "alg": "RS256",
                    "issuer": issuer,
                }
                for identifier, key in self._keys.items()
            ]
        }


class Tokens:
    """Signs tokens, and checks those that come back."""

    def __init__(self, keys: SigningKeys, clock: Clock, *, lifetime_seconds: float = 3599) -> None:
        self.keys = keys
        self.lifetime_seconds = lifetime_seconds
        self._clock = clock
        self._known: dict[str, dict[str, Any]] = {}

    def issue(self, claims: dict[str, Any]) -> tuple[str, int]:
        """A signed token, and the seconds for which it holds."""
        now = self._clock.now().timestamp()
        identifier, key = self.keys.current
        full = {
            "iat": int(now),
            "nbf": int(now),
            # With a fraction, so that a life of half a second is one.
            "exp": now + self.lifetime_seconds if self.lifetime_seconds % 1 else int(now + self.lifetime_seconds),
            "uti": uuid4().hex,
            **claims,
        }
        return jwt.encode(full, key, "RS256", headers={"kid": identifier, "x5t": identifier}), int(
            self.lifetime_seconds
        )

    def check(self, token: str) -> dict[str, Any] | None:
        """What a token of ours claims, expired or not; None when it is not ours or its key is retired."""
        known = self._known.get(token)
        if known is not None and self.keys.find(known["kid"]):
            return known
        try:
            identifier = str(jwt.get_unverified_header(token).get("kid", ""))
            key = self.keys.find(identifier)
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                ["RS256"],
                options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except jwt.InvalidTokenError:
            return None
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[token] = {**claims, "kid": identifier}
        return self._known[token]

    def expired(self, claims: dict[str, Any]) -> bool:
        """Whether its time is over."""
        return bool(claims["exp"] <= self._clock.now().timestamp())
