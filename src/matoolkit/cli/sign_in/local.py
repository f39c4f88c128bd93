"""Signing in on the machine that the server runs on, as whoever may read the key in its data folder."""

from __future__ import annotations

import getpass
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.local_key import load_local_key

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from matoolkit.clock import Clock

LIFETIME = timedelta(minutes=10)
_RENEWED_BEFORE = timedelta(minutes=2)
ROLE = "Admin"


@dataclass
class LocalSignIn:
    """Signs tokens that hold for some minutes, a new one whenever the last is about to end."""

    folder: Path
    clock: Clock
    _token: str = ""
    _until: datetime | None = field(default=None)

    def token(self) -> str:
        """A token that is valid."""
        now = self.clock.now()
        if self._until is None or now >= self._until - _RENEWED_BEFORE:
            self._token = load_local_key(self.folder).token(user_name(), [ROLE], now, LIFETIME)
            self._until = now + LIFETIME
        return self._token

    @property
    def advice(self) -> str:
        """What to do when the server does not accept the token."""
        return (
            f"It is signed with the key in {self.folder}: set MATOOLKIT_DATA to the data folder of that server. "
            "If it signs in through Entra ID, run `matoolkit config set tenant-id …` and `… client-id …`"
        )


def user_name() -> str:
    """Whom the audit will name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "local user"
