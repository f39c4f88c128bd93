"""A unit of work on a bus elsewhere, for who has no database: nothing is sent or settled before its end.

It is no transaction: what is sent stays sent when settling fails. So results go out before their job is settled, and
whoever receives the same job again sends a result that is recognised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.bus.errors import BusError
from matoolkit.store.database import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from matoolkit.bus.port import Outgoing, Received

    Settlement = Callable[[], Sequence[Received]]


class NoDatabase(BusError):
    """A unit of work of Service Bus has no database."""


class Unit(Transaction):
    """What is to be sent and settled at its end."""

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        self.dialect = ""
        self.outgoing: list[tuple[str, list[Outgoing]]] = []
        self.settlements: list[Settlement] = []
        self.received: list[Settlement] = []
        """How what it received is given back, should it fail."""
        self._after_commit = []

    @property
    def connection(self) -> Connection:
        """There is none."""
        raise NoDatabase

    def send(self, topic: str, messages: list[Outgoing]) -> None:
        """Send messages at the end."""
        if messages:
            self.outgoing.append((topic, messages))
