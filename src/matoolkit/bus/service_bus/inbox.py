"""Receiving from one subscription: what was handed out and not yet settled, and the locks that are on it."""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError

from matoolkit.bus.errors import BusBusy, BusUnavailable
from matoolkit.bus.service_bus.conversion import received

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from azure.servicebus import ServiceBusReceivedMessage, ServiceBusReceiver

    from matoolkit.bus.port import Received, Subscription
    from matoolkit.bus.service_bus.links import Link
    from matoolkit.clock import Clock

    Verb = Callable[[ServiceBusReceiver, ServiceBusReceivedMessage], object]

log = logging.getLogger(__name__)

T = TypeVar("T")

_FEWEST, _MOST = 16, 1024
"""How many messages are asked for at a time. What is asked for and not there travels ahead as soon as it comes, locked
from then on; so no more are asked for than lately came."""


class Inbox:
    """Where a subscription's messages come in, for all threads of a process."""

    def __init__(
        self, link: Link[ServiceBusReceiver], subscription: Subscription, clock: Clock, patience: float
    ) -> None:
        self._link = link
        self._subscription = subscription
        self._clock = clock
        self._patience = patience
        self._ahead: deque[ServiceBusReceivedMessage] = deque()
        """Received by who waited, for who receives next."""
        self._held: dict[tuple[int, int], ServiceBusReceivedMessage] = {}
        self._hope = _FEWEST

    @property
    def wanted(self) -> bool:
        """Whether a thread waits to receive or settle."""
        return self._link.wanted

    def receive(self, limit: int) -> list[Received]:
        """Lock what is ready."""
        return _twice(lambda: self._receive(limit))

    def _receive(self, limit: int) -> list[Received]:
        with self._link.lent() as receiver:
            messages = self._taken_ahead(limit)
            while len(messages) < limit:
                asked = min(limit - len(messages), self._hope)
                some = receiver.receive_messages(asked, self._patience)
                messages += some
                if len(some) == asked:
                    self._hope = min(self._hope * 2, _MOST)
                else:
                    self._hope = max(_FEWEST, len(some))
                # Some may mean that the time was over, and not that there are no more.
                if len(some) <= asked // 4:
                    break
            self._forget_lost_locks()
            handed_out = [(received(message, self._subscription), message) for message in messages]
            self._held.update({_lock(ours): message for ours, message in handed_out})
            return [ours for ours, _ in handed_out]

    def look(self, seconds: float) -> bool:
        """Wait for a message and keep it for who receives next; whether there is one."""
        with self._link.lent() as receiver:
            self._ahead.extend(self._taken_ahead(len(self._ahead)))
            if not self._ahead:
                self._ahead.extend(receiver.receive_messages(1, max(seconds, 0.001)))
            return bool(self._ahead)

    def holds(self, message: Received, now: datetime) -> bool:
        """Whether a message is locked here as far as anybody can tell without asking."""
        held = self._held.get(_lock(message))
        return held is not None and (held.locked_until_utc is None or held.locked_until_utc > now)

    def complete(self, messages: Sequence[Received]) -> list[Received]:
        """They are gone; those whose lock was lost."""
        return self._settle(messages, lambda receiver, message: receiver.complete_message(message))

    def abandon(self, messages: Sequence[Received]) -> list[Received]:
        """They are ready again; those whose lock was lost."""
        return self._settle(messages, lambda receiver, message: receiver.abandon_message(message))

    def dead_letter(self, reason: str, description: str, messages: Sequence[Received]) -> list[Received]:
        """They are set aside; those whose lock was lost."""
        return self._settle(messages, partial(_set_aside, reason=reason, description=description))

    def renew(self, messages: Sequence[Received]) -> tuple[list[Received], datetime | None]:
        """Lock anew; those whose lock was lost, and until when the first of the others is locked."""
        return _twice(lambda: self._renew(messages))

    def _renew(self, messages: Sequence[Received]) -> tuple[list[Received], datetime | None]:
        lost: list[Received] = []
        until: list[datetime] = []
        with self._link.lent() as receiver:
            for ours in messages:
                message = self._held.get(_lock(ours))
                try:
                    if message is None:
                        lost.append(ours)
                    else:
                        until.append(receiver.renew_message_lock(message))
                except MessageLockLostError:
                    lost.append(ours)
        return lost, min(until, default=None)

    def peek(self, limit: int, after: int = 0) -> list[ServiceBusReceivedMessage]:
        """See what is there without locking it."""
        return _twice(lambda: self._peek(limit, after))

    def _peek(self, limit: int, after: int) -> list[ServiceBusReceivedMessage]:
        seen: list[ServiceBusReceivedMessage] = []
        with self._link.lent() as receiver:
            while len(seen) < limit:
                some = receiver.peek_messages(limit - len(seen), sequence_number=after + 1)
                if not some:
                    break
                seen += some
                after = some[-1].sequence_number or after
        return seen

    def _settle(self, messages: Sequence[Received], verb: Verb) -> list[Received]:
        """By the link they came on or, once that is closed, by their locks."""
        left = {_lock(each): each for each in messages}
        lost: list[Received] = []

        def settle() -> None:
            with self._link.lent() as receiver:
                for key, ours in [*left.items()]:
                    message = self._held.get(key)
                    try:
                        if message is None:
                            lost.append(ours)
                        else:
                            verb(receiver, message)
                    except (MessageLockLostError, MessageAlreadySettled):
                        lost.append(ours)
                    del left[key]
                    self._held.pop(key, None)

        _twice(settle)
        return lost

    def _taken_ahead(self, limit: int) -> list[ServiceBusReceivedMessage]:
        now = self._clock.now()
        taken = [self._ahead.popleft() for _ in range(min(limit, len(self._ahead)))]
        return [each for each in taken if each.locked_until_utc is None or each.locked_until_utc > now]

    def _forget_lost_locks(self) -> None:
        now = self._clock.now()
        lost = [key for key, each in self._held.items() if each.locked_until_utc and each.locked_until_utc < now]
        for key in lost:
            del self._held[key]


def _twice(action: Callable[[], T]) -> T:
    """Do something, and once more when the link turns out to have ended since it was used."""
    try:
        return action()
    except BusBusy:
        raise
    except BusUnavailable as error:
        log.info("%s; once more on a new link", error)
        return action()


def _lock(message: Received) -> tuple[int, int]:
    return message.sequence, message.delivery_count


def _set_aside(receiver: ServiceBusReceiver, message: Any, *, reason: str, description: str) -> None:
    receiver.dead_letter_message(message, reason=reason, error_description=description)
