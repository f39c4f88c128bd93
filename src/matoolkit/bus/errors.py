"""What can go wrong with the bus, told apart by whether trying again helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.bus.port import Received

_NAMED_AT_MOST = 5


class BusError(MatoolkitError):
    """The bus refused."""


class MessageTooLarge(BusError):
    """A message is larger than the bus takes: 256 KB, or what the namespace's tier allows."""


class InvalidMessage(BusError):
    """A message holds what not every bus and database can carry."""


class InvalidTopology(BusError):
    """A topic or subscription cannot be declared like this."""


class TopicNotFound(BusError):
    """There is no such topic; it was never declared."""


class SubscriptionNotFound(BusError):
    """There is no such subscription; it was never declared, or was removed."""


class DatabaseNotSupported(BusError):
    """The embedded bus lives in SQLite and PostgreSQL only; other databases go with Azure Service Bus."""


class BusUnavailable(BusError):
    """The bus cannot be reached, or ended the connection."""

    retryable = True


class BusBusy(BusUnavailable):
    """The bus is throttled: more was asked of it than its tier allows."""


class BusDenied(BusError):
    """The bus does not let in who signs in, or not to this; new roles take some minutes to count."""

    retryable = True


class LockLost(BusError):
    """Messages are no longer locked by who received them: the lock expired, or somebody else has taken them since."""

    def __init__(self, lost: Sequence[Received], renewed: Sequence[Received] = ()) -> None:
        named = ", ".join(
            f"{message.message_id} of {message.topic}/{message.subscription} (delivery {message.delivery_count})"
            for message in lost[:_NAMED_AT_MOST]
        )
        more = f" and {len(lost) - _NAMED_AT_MOST} more" if len(lost) > _NAMED_AT_MOST else ""
        super().__init__(f"the lock is lost on {named}{more}")
        self.lost = tuple(lost)
        self.renewed = tuple(renewed)
        """Those whose lock was renewed by the same call, if it was one that renews."""
