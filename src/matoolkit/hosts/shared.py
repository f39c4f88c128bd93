"""What processes apart share: the database, and the bus that takes messages from one to another.

This is the one place where a process finds out where they are; what it does with them does not depend on that.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matoolkit.bus import EmbeddedBus, Names, Topology
from matoolkit.bus.embedded import require_topics
from matoolkit.clock import SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.hosts.service_bus import RelayedBus, ServiceBusAddress
from matoolkit.settings import Secret, Unusable, matching, names
from matoolkit.store.address import parsed
from matoolkit.store.database import open_database
from matoolkit.store.migrate import require_current
from matoolkit.worker.configuration import worker_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matoolkit.bus import Bus, Publisher
    from matoolkit.hosts.loops import Loops
    from matoolkit.store.database import Database

namespace = matching(
    r"[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*", "the name of a namespace, as in contoso.servicebus.windows.net"
)
topic_name = matching(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", "letters, digits, dots, hyphens, underscores and slashes")
DATABASE_VARIABLE = "MATOOLKIT_DATABASE_URL"


def workers(value: str) -> tuple[str, ...]:
    """Ids of workers, with commas between them."""
    try:
        return tuple(worker_id(each) for each in names(value))
    except Unusable as error:
        raise Unusable(f"ids with commas between them, each of {error}") from None


class NoDatabase(MatoolkitError):
    """There is no database that a process could share with others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where a service finds what it shares, as its settings and its options say."""

    service: str
    """As messages name it: `the scheduler`."""
    database_url: str | Secret | None
    database_setting: str
    """What is to be set when there is no database."""
    service_bus: ServiceBusAddress = field(default_factory=ServiceBusAddress)
    """Empty: topics are kept in the database."""
    names: Names = field(default_factory=Names)
    worker_ids: tuple[str, ...] = ()
    """Workers whose jobs are to wait for them, though they were never started."""
    declares: bool = False
    """Whether it makes the topics on Service Bus that are not there, should it have the right to."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What a process shares with others."""

    database: Database
    bus: Bus
    """For who takes messages in."""
    publisher: Publisher
    """For who only sends: what is published is written beside the rows it speaks of."""
    described: str
    """The bus as people know it, for the log."""
    relayed: RelayedBus | None = None
    """The bus once more, where it is not in the database."""

    def start(self, loops: Loops) -> None:
        """Begin what has to go on beside a process that publishes: a relay, for a bus that is not in the database."""
        if self.relayed is not None:
            self.relayed.start(loops)

    def relay(self) -> None:
        """Send what was published and not sent, for who has no loops."""
        if self.relayed is not None:
            self.relayed.send()

    def close(self) -> None:
        """End every wait, and leave a bus that is elsewhere."""
        self.bus.close()
        if self.relayed is not None:
            self.relayed.close()


def chosen_database(option: str | None, environment: Mapping[str, str], setting: Secret | None) -> str | Secret | None:
    """Of what names a database the nearest: the option, the variable (`.env` has it too), the service's setting."""
    return option or environment.get(DATABASE_VARIABLE, "").strip() or setting


@contextmanager
def shared(where: Whereabouts) -> Iterator[Shared]:
    """The database and the bus, for as long as the process works."""
    database = shared_database(where)
    try:
        require_current(database)
        found = _on_the_bus(where, database)
        try:
            yield found
        finally:
            found.close()
    finally:
        database.close()


def shared_database(where: Whereabouts) -> Database:
    """The database, opened; its schema has not been looked at."""
    url = where.database_url
    if url is None:
        raise NoDatabase(f"{where.service} needs a database: set {where.database_setting} or {DATABASE_VARIABLE}")
    address = parsed(url.reveal() if isinstance(url, Secret) else url)
    if not where.service_bus:
        require_topics(address)
    database = open_database(address)
    if database.dialect == "sqlite":
        database.close()
        raise NoDatabase("SQLite serves one process, which is `matoolkit up`; for parts apart, take PostgreSQL")
    return database


def _on_the_bus(where: Whereabouts, database: Database) -> Shared:
    if where.service_bus:
        relayed = RelayedBus(where.service_bus, database, SystemClock(), where.names, where.worker_ids)
        if where.declares:
            relayed.declare()
        return Shared(database, relayed.bus, relayed.bus, "Azure Service Bus", relayed)
    bus = EmbeddedBus(database)
    places = tuple(where.names.worker(each) for each in where.worker_ids)
    with database.transaction() as tx:
        bus.declare(tx, where.names.topology())
        bus.declare(tx, Topology(subscriptions=places))
    return Shared(database, bus, bus, "the topics in the database")
