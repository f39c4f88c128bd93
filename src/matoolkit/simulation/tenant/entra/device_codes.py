"""Signing in with a code on another device: begun by a client, decided by whoever steers the tenant."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError
from matoolkit.simulation.tenant.entra.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.simulation.tenant.entra.identities import Person

_LETTERS = "BCDFGHJKLMNPQRSTVWXYZ23456789"


class NoSuchCode(MatoolkitError):
    """No sign-in with this code is waiting."""


class Decision(StrEnum):
    """What became of a sign-in."""

    PENDING = "pending"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"


@dataclass(slots=True)
class DeviceCode:
    """A sign-in that was begun."""

    user_code: str
    device_code: str
    client_id: str
    scope: str
    expires_at: float
    decision: Decision = Decision.PENDING
    person: Person | None = None
    asked_at: float | None = None


class DeviceCodes:
    """Sign-ins that were begun with a device code."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._codes: dict[str, DeviceCode] = {}
        self.interval_seconds = 5
        self.lifetime_seconds = 900
        self.approve_as: Person | None = None
        """Whoever approves each sign-in as soon as it begins; None: they wait for a decision."""

    def begin(self, client_id: str, scope: str) -> DeviceCode:
        """Begin a sign-in."""
        code = DeviceCode(
            user_code="".join(secrets.choice(_LETTERS) for _ in range(9)),
            device_code=secrets.token_urlsafe(48),
            client_id=client_id,
            scope=scope,
            expires_at=self._monotonic() + self.lifetime_seconds,
        )
        if self.approve_as:
            code.decision, code.person = Decision.APPROVED, self.approve_as
        self._codes[code.device_code] = code
        return code

    @property
    def waiting(self) -> list[DeviceCode]:
        """Sign-ins nobody has decided on, oldest first."""
        return [code for code in self._codes.values() if code.decision is Decision.PENDING]

    def decide(self, user_code: str, decision: Decision, person: Person | None = None) -> None:
        """Approve, decline or expire a sign-in."""
        if decision is Decision.APPROVED and person is None:
            raise ValueError("an approval needs a person")
        for code in self.waiting:
            if code.user_code == user_code.upper():
                code.decision, code.person = decision, person
                return
        raise NoSuchCode(f"no sign-in with the code {user_code} is waiting")

    def redeem(self, device_code: str, client_id: str) -> tuple[Person, str]:
        """Who signed in, and for which scope; refused until it is decided."""
        code = self._codes.get(device_code)
        if code is None or code.client_id != client_id:
            raise refused(70000, "Provided grant is invalid or malformed.", error="bad_verification_code")
        now = self._monotonic()
        hasty = code.asked_at is not None and now - code.asked_at < self.interval_seconds * 0.5
        code.asked_at = now
        if now >= code.expires_at:
            code.decision = Decision.EXPIRED
        match code.decision:
            case Decision.PENDING if hasty:
                raise refused(70016, "The client is asking too often. Slow down.", error="slow_down")
            case Decision.PENDING:
                raise refused(
                    70016,
                    "OAuth 2.0 device flow error. Authorization is pending. Continue polling.",
                    error="authorization_pending",
                )
            case Decision.DECLINED:
                del self._codes[device_code]
                raise refused(70018, "The user declined the sign-in.", error="authorization_declined")
            case Decision.EXPIRED:
                del self._codes[device_code]
                raise refused(
                    70020,
                    "The provided value for the input parameter 'device_code' is not valid. It has expired.",
                    error="expired_token",
                )
            case Decision.APPROVED:
                del self._codes[device_code]
                if code.person is None:
                    raise AssertionError("an approval has a person")
                return code.person, code.scope
