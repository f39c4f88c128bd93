"""Azure Service Bus for a process: where it is, the bus on it, and the relay that takes there what is published.

Every process that publishes has a relay of its own: whatever one of them left behind, the others send.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from matoolkit.bus import Names, Outgoing, Topology
from matoolkit.bus.errors import BusUnavailable
from matoolkit.bus.outbox import Outbox
from matoolkit.bus.relay import Relay
from matoolkit.bus.service_bus import ServiceBusSettings, open_service_bus
from matoolkit.errors import MatoolkitError
from matoolkit.hosts.loops import Loop
from matoolkit.messages import UnreadableMessage, WorkerError, WorkerResult, decode_job, encode
from matoolkit.settings import Secret, optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.bus.service_bus.bus import ServiceBus
    from matoolkit.clock import Clock
    from matoolkit.hosts.loops import Loops
    from matoolkit.store.database import Database, Transaction

log = logging.getLogger(__name__)

connection_string = optional("SERVICE_BUS_CONNECTION_STRING", Secret)
"""The setting, as every service has it: in place of a namespace, for development and for tests."""

_RESTS_SECONDS = 1.0
"""How long what another process left behind may lie before this one looks for it."""

_SENDS_SECONDS = 20.0
"""How long sending may take at a time: meanwhile the messages of who is called by Service Bus are locked."""


class TwoNamespaces(MatoolkitError):
    """Service Bus is named in two ways."""


@dataclass(frozen=True, slots=True)
class ServiceBusAddress:
    """A namespace, and how to sign in there: by managed identity, or with the key in a connection string."""

    namespace: str | None = None
    connection_string: Secret | None = None

    def __post_init__(self) -> None:
        """Refuse to be in two places."""
        if self.namespace is not None and self.connection_string is not None:
            raise TwoNamespaces(
                "SERVICE_BUS_CONNECTION_STRING cannot be set beside a namespace: they name the same thing"
            )

    def __bool__(self) -> bool:
        return self.namespace is not None or self.connection_string is not None

    def settings(self, names: Names, worker_ids: Sequence[str]) -> ServiceBusSettings:
        """What the bus is told, with what infrastructure made for who may not ask."""
        return ServiceBusSettings(
            namespace=self.namespace,
            connection_string=None if self.connection_string is None else self.connection_string.reveal(),
            known=_topology(names, worker_ids),
        )

    def open(
        self, clock: Clock, names: Names, worker_ids: Sequence[str] = (), outbox: Outbox | None = None
    ) -> ServiceBus:
        """The bus; nothing is connected before it is used."""
        return open_service_bus(self.settings(names, worker_ids), clock, outbox)


class RelayedBus:
    """The bus of a process with a database: what is published goes through the outbox, and a relay takes it there."""

    def __init__(
        self, address: ServiceBusAddress, database: Database, clock: Clock, names: Names, worker_ids: Sequence[str] = ()
    ) -> None:
        outbox = Outbox(clock)
        self._topology = _topology(names, worker_ids)
        self.bus = address.open(clock, names, worker_ids, outbox)
        self.relay = Relay(database, outbox, self.bus, clock, refused=RefusedJobs(outbox, names))

    def declare(self) -> None:
        """Make what is not there, with the right to; a namespace that is away does not keep anybody from starting."""
        try:
            with self.bus.transaction() as unit:
                self.bus.declare(unit, self._topology)
        except BusUnavailable as error:
            log.warning("topics and subscriptions are not looked at: %s", error)

    def start(self, loops: Loops) -> None:
        """Have the relay at work in a thread of its own."""
        loops.start(Loop("relay", self.relay.work, partial(self.relay.rest, _RESTS_SECONDS)))
        loops.on_stop(self.relay.wake)

    def send(self) -> None:
        """Send what there is, for who has no threads; what cannot be sent now stays where it is, for any relay."""
        ends = time.monotonic() + _SENDS_SECONDS
        try:
            while self.relay.work() and time.monotonic() < ends:
                pass
        except MatoolkitError as error:
            if error.retryable:
                log.warning("what was published is sent later: %s", error)
            else:
                log.exception("what was published cannot be sent now")

    def close(self) -> None:
        """Give back what is locked, and close every link."""
        self.bus.disconnect()


def _topology(names: Names, worker_ids: Sequence[str]) -> Topology:
    found = names.topology()
    return Topology(found.topics, (*found.subscriptions, *(names.worker(each) for each in worker_ids)))


@dataclass(frozen=True, slots=True)
class RefusedJobs:
    """Answers jobs that Service Bus does not take: their steps hear of it at once, and not when their time is up."""

    outbox: Outbox
    names: Names

    def __call__(self, tx: Transaction, topic: str, message: Outgoing, why: str) -> None:
        """Publish a failure in place of a job; nothing is to be said for anything else."""
        if topic != self.names.jobs:
            return
        try:
            job = decode_job(message.body)
        except UnreadableMessage:
            return
        result = WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=job.worker_id,
            function_name=job.function_name,
            status="failure",
            error=WorkerError(message=f"the job could not be sent: {why}", type="JobTooLarge"),
            correlation_data=job.correlation_data,
        )
        properties = {"JobId": job.job_id, "Status": result.status}
        self.outbox.publish(tx, self.names.results, [Outgoing(encode(result), properties)])
