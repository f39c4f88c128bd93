"""The first connection: waited for where the database may be asleep.

A serverless Azure SQL database that nobody asked for an hour pauses. Whoever asks then is refused, and the database
wakes up, which takes about a minute.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, literal_column, select

from matoolkit.store.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.store.database import Database

log = logging.getLogger(__name__)

ASKED: Select[Any] = select(literal_column("1"))
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 15.0


@dataclass(frozen=True)
class Patience:
    """How long is waited, and by which clock."""

    seconds: float = 120.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def arrive(database: Database, patience: Patience | None = None) -> None:
    """Return once the database answers; DatabaseUnavailable when it does not for so long, other errors at once."""
    if database.dialect != "mssql":
        return
    waiting = patience or Patience()
    end, pause = waiting.now() + waiting.seconds, _FIRST_PAUSE
    while True:
        try:
            with database.reading() as tx:
                tx.execute(ASKED).all()
        except DatabaseUnavailable as error:
            left = end - waiting.now()
            if left <= 0:
                raise
            said = str(error).rstrip(".")
            log.warning("%s; it may be waking up: trying again in %.0f s, for another %.0f s", said, pause, left)
            waiting.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        else:
            return
