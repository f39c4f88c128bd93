"""What SQLite and PostgreSQL do each in their own way for the embedded bus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import timedelta

    from matoolkit.bus.outgoing import Entry
    from matoolkit.bus.port import Subscription
    from matoolkit.bus.statements import Statements
    from matoolkit.store.database import Transaction


class Claimed(NamedTuple):
    """A message that was locked, before it is decided whether it may be handed out."""

    sequence: int
    message_id: str | None
    properties: str
    body: str
    delivery_count: int
    enqueued_at: int
    locked_until: int
    expired: bool
    max_delivery_count: int


class Storage(Protocol):
    """One kind of database under the embedded bus."""

    @property
    def statements(self) -> Statements:
        """The shared statements in this database's words."""

    def times(self) -> dict[str, int]:
        """The parameters that carry the time, if it does not come from the database itself."""

    def numbers(self, values: Collection[int]) -> Any:
        """Numbers as one parameter."""

    def texts(self, values: Collection[str]) -> Any:
        """Texts as one parameter."""

    def publish(self, tx: Transaction, topic: str, entries: Sequence[Entry]) -> list[int] | None:
        """Write what is no duplicate to each subscription it passes; which those are, or None without that topic."""

    def claim(
        self, tx: Transaction, subscription: Subscription, limit: int, lock_for: timedelta | None
    ) -> Sequence[Claimed] | None:
        """Lock what has been ready longest, in whatever order; None without such a subscription."""

    def ready(self, tx: Transaction, subscription: Subscription, limit: int) -> Sequence[Claimed] | None:
        """What could be locked, oldest first, and until the commit nobody else's; None without such a subscription."""

    def announce(self, tx: Transaction, subscription_ids: Collection[int]) -> None:
        """Tell other processes, once the transaction is committed, that something may be there."""

    def hold_subscriptions(self, tx: Transaction) -> None:
        """Let nobody publish until the transaction ends."""
