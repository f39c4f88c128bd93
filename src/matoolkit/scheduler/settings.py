"""How a scheduler goes about its work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Settings:
    """Rhythm and sizes."""

    tick: timedelta = timedelta(minutes=5)
    """How often sources are asked."""
    lease: timedelta = timedelta(seconds=30)
    """How long a leader that has fallen silent stays the leader."""
    chunk_size: int = 1_000
    """Members in one transaction, so that none takes longer than about a second."""
    attempts: int = 3
    """How often a transaction is tried that collides with others."""
