"""The operations of `$management`: on messages, by lock or by sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.doubles.service_bus.broker import LockLost, Queue, Topic
from tests.doubles.service_bus.encoding import Array, Timestamp
from tests.doubles.service_bus.messages import parsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.doubles.service_bus.broker import Broker


class Answer(NamedTuple):
    """What a request is answered with."""

    status: int = 200
    value: Any = None
    condition: str | None = None
    description: str = ""


_LOST = Answer(410, condition="com.microsoft:message-lock-lost", description="the lock is lost")


def _renew(broker: Broker, entity: Topic | Queue, value: dict[str, Any]) -> Answer:
    assert isinstance(entity, Queue)
    try:
        held = [entity.held(lock) for lock in value["lock-tokens"]]
    except LockLost:
        return _LOST
    for message in held:
        message.locked_until = broker.now() + entity.lock_ms
    return Answer(value={"expirations": Array(Timestamp(message.locked_until) for message in held)})


def _dispose(broker: Broker, entity: Topic | Queue, value: dict[str, Any]) -> Answer:
    assert isinstance(entity, Queue)
    try:
        for lock in value["lock-tokens"]:
            match value["disposition-status"]:
                case "completed":
                    entity.complete(lock)
                case "abandoned":
                    entity.give_back(lock, counted=True, now=broker.now())
                case "suspended":
                    reason, description = value["deadletter-reason"], value["deadletter-description"]
                    entity.bury(entity.held(lock), reason, description)
                case other:
                    return Answer(501, condition="amqp:not-implemented", description=str(other))
    except LockLost:
        return _LOST
    return Answer()


def _peek(_: Broker, entity: Topic | Queue, value: dict[str, Any]) -> Answer:
    assert isinstance(entity, Queue)
    sequences = sorted(each for each in entity.messages if each >= value["from-sequence-number"])
    chosen = [entity.messages[each] for each in sequences[: value["message-count"]]]
    if not chosen:
        return Answer(204)
    return Answer(value={"messages": [{"message": each.encoded(each.deliveries)} for each in chosen]})


def _schedule(broker: Broker, entity: Topic | Queue, value: dict[str, Any]) -> Answer:
    assert isinstance(entity, Topic)
    sequences = Array(broker.send(entity, parsed(each["message"])) for each in value["messages"])
    return Answer(value={"sequence-numbers": sequences})


def _cancel(broker: Broker, entity: Topic | Queue, value: dict[str, Any]) -> Answer:
    assert isinstance(entity, Topic)
    if broker.cancel(entity, value["sequence-numbers"]):
        return Answer()
    return Answer(404, condition="com.microsoft:message-not-found", description="no such scheduled message")


OPERATIONS: dict[str, Callable[[Broker, Topic | Queue, Any], Answer]] = {
    "renew-lock": _renew,
    "update-disposition": _dispose,
    "peek-message": _peek,
    "schedule-message": _schedule,
    "cancel-scheduled-message": _cancel,
}
