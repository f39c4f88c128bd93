"""Checking a token: signature, algorithm, issuer, audience and times. There is no way around it.

Only what the rules name is accepted; a token's header says which key signed it and has no other say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jwt

from matoolkit.api.sign_in.identity import Identity, identity_of
from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from matoolkit.api.sign_in.keys import KeySource
    from matoolkit.clock import Clock

LARGEST_TOKEN = 16 * 1024
_LONGEST_KEY_ID = 256


class Refused(MatoolkitError):
    """The token is not accepted."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must say."""

    algorithm: str
    """The only one; a token that names another is refused whatever its signature."""
    issuers: frozenset[str]
    audiences: frozenset[str]
    leeway: timedelta = timedelta(seconds=60)
    """By how much the issuer's clock and ours may differ."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """Says whose token it is, or refuses it."""

    rules: TokenRules
    keys: KeySource
    clock: Clock

    def is_ready(self, token: str) -> bool:
        """Whether a check will not have to fetch anything."""
        try:
            return len(token) > LARGEST_TOKEN or self.keys.has(self._key_id(token))
        except Refused:
            return True

    def check(self, token: str, *, fetch: bool = True) -> Identity:
        """Whose token this is. May fetch keys, and so block, unless told not to."""
        if len(token) > LARGEST_TOKEN:
            raise Refused(f"the token is longer than {LARGEST_TOKEN:,} characters")
        key = self.keys.find(self._key_id(token), fetch=fetch)
        if key is None:
            raise Refused("the token is signed with a key that is not known")
        claims = self._verified(token, key)
        self._check_times(claims)
        return identity_of(claims)

    def _key_id(self, token: str) -> str:
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise Refused("the token is not a JSON Web Token") from None
        if header.get("alg") != self.rules.algorithm:
            raise Refused(f"the token is not signed with {self.rules.algorithm}")
        key_id = header.get("kid")
        if not isinstance(key_id, str) or not 0 < len(key_id) <= _LONGEST_KEY_ID:
            raise Refused("the token does not say which key it is signed with")
        return key_id

    def _verified(self, token: str, key: Any) -> dict[str, Any]:
        rules = self.rules
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[rules.algorithm],
                audience=sorted(rules.audiences),
                options={
                    "require": ["exp", "iss", "aud"],
                    # By the clock that was handed in, below.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidSignatureError:
            raise Refused("the token's signature is wrong") from None
        except jwt.InvalidAudienceError:
            raise Refused("the token is for somebody else: its audience is not this API") from None
        except jwt.MissingRequiredClaimError as error:
            raise Refused(f"the token has no claim {error.claim}") from None
        except (jwt.InvalidTokenError, ValueError, TypeError, RecursionError):
            raise Refused("the token is not valid") from None
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in rules.issuers:
            raise Refused("the token comes from an issuer that is not trusted here")
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        now, leeway = self.clock.now().timestamp(), self.rules.leeway.total_seconds()
        if now >= _seconds(claims, "exp") + leeway:
            raise Refused("the token has expired")
        for claim in ("nbf", "iat"):
            if claim in claims and now < _seconds(claims, claim) - leeway:
                raise Refused("the token is not valid yet")


def _seconds(claims: dict[str, Any], name: str) -> float:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"the token's claim {name} is not a time")
    return value
