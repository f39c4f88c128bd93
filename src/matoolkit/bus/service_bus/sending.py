"""Sending to topics: in batches where that is possible, scheduled ones so that they can be withdrawn."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from azure.servicebus.exceptions import MessageNotFoundError, MessageSizeExceededError

from matoolkit.bus.service_bus.conversion import due, outgoing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from azure.servicebus import ServiceBusSender

    from matoolkit.bus.port import Outgoing
    from matoolkit.bus.service_bus.links import Links

_SCHEDULED_BYTES = 128 * 1024
"""In one request to schedule: it is one message to Service Bus, with the limit of one."""


def send(links: Links, topic: str, messages: Sequence[Outgoing]) -> list[int | None]:
    """Send messages in their order; of those for later, the sequence by which they can be withdrawn."""
    sequences: list[int | None] = []
    with links.sender(topic).lent() as sender:
        for at, group in groupby(messages, key=due):
            some = list(group)
            if at is None:
                _send_now(sender, some)
                sequences += [None] * len(some)
            else:
                for part in _parts(some):
                    sequences += sender.schedule_messages([outgoing(each) for each in part], at)
    return sequences


def withdraw(links: Links, topic: str, sequences: Sequence[int]) -> list[int]:
    """Withdraw scheduled messages, one by one; which of them were still there."""
    if not sequences:
        return []
    with links.sender(topic).lent() as sender:
        return [each for each in sequences if _withdrawn(sender, each)]


def _withdrawn(sender: ServiceBusSender, sequence: int) -> bool:
    try:
        sender.cancel_scheduled_messages(sequence)
    except MessageNotFoundError:
        return False
    return True


def _send_now(sender: ServiceBusSender, messages: Sequence[Outgoing]) -> None:
    batch = sender.create_message_batch()
    for each in messages:
        message = outgoing(each)
        try:
            batch.add_message(message)
        except MessageSizeExceededError:
            if len(batch):
                sender.send_messages(batch)
                batch = sender.create_message_batch()
            try:
                batch.add_message(message)
            except MessageSizeExceededError:
                # Too large for a batch; alone it may pass, or the namespace says what its limit is.
                sender.send_messages(message)
    if len(batch):
        sender.send_messages(batch)


def _parts(messages: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    part: list[Outgoing] = []
    size = 0
    for each in messages:
        length = len(each.body.encode())
        if part and size + length > _SCHEDULED_BYTES:
            yield part
            part, size = [], 0
        part.append(each)
        size += length
    yield part
