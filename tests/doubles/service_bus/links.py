"""What is at the double's end of a link: a topic that takes messages, a queue that hands them out, or a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from tests.doubles.service_bus import management
from tests.doubles.service_bus.broker import LockLost, Queue
from tests.doubles.service_bus.faults import Fault
from tests.doubles.service_bus.frames import Outcome, error, outcome
from tests.doubles.service_bus.messages import in_batch, parsed, request, response

if TYPE_CHECKING:
    from tests.doubles.service_bus.broker import Broker
    from tests.doubles.service_bus.encoding import Described
    from tests.doubles.service_bus.faults import Faults

BATCH_FORMAT = 0x80013700
ACCEPTED = outcome(Outcome.ACCEPTED)


class Detach(Exception):
    """The link is to be ended, with a condition."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(description)
        self.condition = condition


class Drop(Exception):
    """The connection is to end without a word."""


def gone(address: str) -> Detach:
    """What a link is told whose entity is not there any more."""
    return Detach("amqp:not-found", f"The messaging entity '{address}' could not be found.")


class Wire(Protocol):
    """How an end sends; the session's part."""

    def deliver(self, payload: bytes, tag: bytes, *, settled: bool) -> int | None:
        """Send a message if there is credit for one; its delivery id."""

    credit: int
    """How many messages the other side has asked for."""


class Taking:
    """The end of a link that clients send to."""

    def __init__(self, broker: Broker, address: str, faults: Faults, largest: int) -> None:
        self._broker = broker
        self._address = address
        self._faults = faults
        self._largest = largest

    def take(self, payload: bytes, message_format: int) -> Described:
        """Take in a message or a batch; what became of it."""
        if self._faults.strikes(Fault.DETACH):
            raise Detach("amqp:link:detach-forced", "the service is being upgraded")
        if self._faults.strikes(Fault.DROP_CONNECTION):
            raise Drop
        if self._faults.strikes(Fault.SERVER_BUSY):
            busy = "The request was terminated because the namespace is being throttled. Error code : 50009."
            return outcome(Outcome.REJECTED, [error("com.microsoft:server-busy", busy)])
        if len(payload) > self._largest:
            large = f"The message is {len(payload)} bytes; the limit is {self._largest}."
            return outcome(Outcome.REJECTED, [error("amqp:link:message-size-exceeded", large)])
        topic = self._broker.topic(self._address)
        if topic is None:
            raise gone(self._address)
        for each in in_batch(payload) if message_format == BATCH_FORMAT else [payload]:
            self._broker.send(topic, parsed(each))
        if self._faults.strikes(Fault.DROP_AFTER_ACCEPTING):
            raise Drop
        return ACCEPTED


class Giving:
    """The end of a link that clients receive from: everything it hands out is locked."""

    def __init__(self, broker: Broker, address: str, faults: Faults) -> None:
        self._broker = broker
        self._address = address
        self._faults = faults
        self._locks: dict[int, UUID] = {}

    def flowed(self) -> None:
        """The client asks for messages."""
        if self._faults.strikes(Fault.DETACH):
            raise Detach("amqp:link:detach-forced", "the service is being upgraded")
        if self._broker.queue(self._address) is None:
            raise gone(self._address)

    def pump(self, wire: Wire) -> None:
        """Hand out what there is, as far as it was asked for."""
        queue = self._broker.queue(self._address)
        while queue is not None and wire.credit > 0:
            message = queue.hand_out(self._broker.now())
            if message is None:
                return
            delivery = wire.deliver(message.encoded(message.deliveries - 1), message.lock.bytes_le, settled=False)
            self._broker.handed_out += 1
            if delivery is not None:
                self._locks[delivery] = message.lock

    def settle(self, delivery: int, state: Described | None) -> Described:
        """Do with a delivery what the client says; what is to be answered."""
        if self._faults.strikes(Fault.SILENT_SETTLING):
            raise Detach("amqp:link:detach-forced", "the service is being upgraded")
        self._broker.tick()
        queue = self._broker.queue(self._address)
        try:
            # No message has the zero of locks.
            lock = self._locks.pop(delivery, UUID(int=0))
            self._apply(queue or Queue(), lock, state or ACCEPTED)
        except LockLost:
            lost = "The lock supplied is invalid. Either the lock expired, or the message has been removed."
            return outcome(Outcome.REJECTED, [error("com.microsoft:message-lock-lost", lost)])
        return outcome(Outcome(state.descriptor), []) if state is not None else ACCEPTED

    def _apply(self, queue: Queue, lock: UUID, state: Described) -> None:
        match Outcome(state.descriptor):
            case Outcome.ACCEPTED:
                queue.complete(lock)
            case Outcome.RELEASED:
                queue.give_back(lock, counted=False, now=self._broker.now())
            case Outcome.MODIFIED:
                queue.give_back(lock, counted=True, now=self._broker.now())
            case Outcome.REJECTED:
                info: dict[Any, Any] = state.value[0].value[2] if state.value else {}
                message = queue.held(lock)
                reason = info.get("DeadLetterReason") or ""
                queue.bury(message, reason, info.get("DeadLetterErrorDescription") or "")


class SignIn:
    """`$cbs`: who asks gets in, unless a fault says otherwise."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.audiences: list[str] = []

    def answer(self, payload: bytes) -> bytes:
        """The answer to a token."""
        message_id, _, asked, _ = request(payload)
        self.audiences.append(str(asked.get("name")))
        if self._faults.strikes(Fault.REFUSE_TOKEN):
            return response(message_id, {"status-code": 401, "status-description": "InvalidSignature"}, None)
        return response(message_id, {"status-code": 200, "status-description": "OK"}, None)


class Managing:
    """`$management` of a topic or a queue."""

    def __init__(self, broker: Broker, address: str, faults: Faults) -> None:
        self._broker = broker
        self._address = address
        self._faults = faults

    def answer(self, payload: bytes) -> bytes:
        """The answer to a request."""
        message_id, _, asked, value = request(payload)
        if self._faults.strikes(Fault.DROP_CONNECTION):
            raise Drop
        self._broker.tick()
        entity = self._broker.queue(self._address) or self._broker.topic(self._address)
        if entity is None:
            raise gone(self._address)
        operation = str(asked["operation"]).removeprefix("com.microsoft:")
        if operation == "schedule-message" and self._faults.strikes(Fault.SERVER_BUSY):
            answer = management.Answer(500, condition="com.microsoft:server-busy", description="throttled: 50009")
        else:
            answer = management.OPERATIONS[operation](self._broker, entity, value)
        if operation == "schedule-message" and self._faults.strikes(Fault.DROP_AFTER_ACCEPTING):
            raise Drop
        properties: dict[str, Any] = {"statusCode": answer.status, "statusDescription": answer.description}
        if answer.condition:
            properties["errorCondition"] = answer.condition
        return response(message_id, properties, answer.value)
