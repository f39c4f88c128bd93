"""Where the keys come from that tokens are checked with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from matoolkit.api.sign_in.tokens import SignIn, TokenRules
from matoolkit.errors import MatoolkitError
from matoolkit.local_key import ALGORITHM, AUDIENCE, ISSUER

if TYPE_CHECKING:
    from matoolkit.clock import Clock
    from matoolkit.local_key import LocalKey


class KeysUnavailable(MatoolkitError):
    """The keys that tokens are checked with cannot be fetched."""

    retryable = True


class KeySource(Protocol):
    """Knows keys by their ids."""

    def find(self, key_id: str, *, fetch: bool = True) -> Any | None:
        """The key, or nothing when there is none of that id; `KeysUnavailable` when that cannot be known now.

        Without `fetch` it answers at once, from what it has.
        """

    def has(self, key_id: str) -> bool:
        """Whether `find` has no reason to fetch anything."""


@dataclass(frozen=True, slots=True)
class LocalKeys:
    """The one key of this machine."""

    key: LocalKey

    def find(self, key_id: str, *, fetch: bool = True) -> Any | None:  # noqa: ARG002 - the port's signature
        """The key, when it is meant."""
        return self.key.public if key_id == self.key.key_id else None

    def has(self, key_id: str) -> bool:  # noqa: ARG002 - the port's signature
        """Always: there is nothing to fetch."""
        return True


def local_sign_in(key: LocalKey, clock: Clock) -> SignIn:
    """Sign-in with the key of this machine, and with no other."""
    rules = TokenRules(algorithm=ALGORITHM, issuers=frozenset({ISSUER}), audiences=frozenset({AUDIENCE}))
    return SignIn(rules, LocalKeys(key), clock)
