"""A worker's place at the jobs: nothing is lost when it changes, and no job has two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.bus import EmbeddedBus, Names, Outgoing, Topology
from matoolkit.hosts.places import PlaceTaken, insist_on_own_place, take_place

if TYPE_CHECKING:
    from matoolkit.store.database import Database

NAMES = Names()
EVERYBODY = NAMES.worker(None)


@pytest.fixture
def bus(database: Database) -> EmbeddedBus:
    bus = EmbeddedBus(database)
    with database.transaction() as tx:
        bus.declare(tx, NAMES.topology())
    return bus


def send(database: Database, bus: EmbeddedBus, *workers: str) -> None:
    with database.transaction() as tx:
        bus.publish(tx, NAMES.jobs, [Outgoing(body="{}", properties={"WorkerId": each}) for each in workers])


def waiting(database: Database, bus: EmbeddedBus) -> dict[str, int]:
    with database.transaction() as tx:
        return {each.name: bus.depth(tx, each).ready for each in bus.subscriptions(tx, NAMES.jobs)}


def test_whoever_becomes_one_worker_leaves_the_others_their_jobs(database: Database, bus: EmbeddedBus) -> None:
    take_place(database, bus, NAMES, EVERYBODY)
    send(database, bus, "a", "b", "a")
    take_place(database, bus, NAMES, NAMES.worker("a"))
    assert waiting(database, bus) == {"worker-a": 2, "worker-b": 1}
    send(database, bus, "a", "b")
    assert waiting(database, bus) == {"worker-a": 3, "worker-b": 2}
    take_place(database, bus, NAMES, NAMES.worker("a"))
    assert waiting(database, bus) == {"worker-a": 3, "worker-b": 2}


def test_in_a_file_whoever_becomes_every_worker_takes_over_all_jobs(sqlite_database: Database) -> None:
    bus = EmbeddedBus(sqlite_database)
    with sqlite_database.transaction() as tx:
        bus.declare(tx, NAMES.topology())
        bus.declare(tx, Topology(subscriptions=(NAMES.worker("a"), NAMES.worker("b"))))
    send(sqlite_database, bus, "a", "b", "a")
    take_place(sqlite_database, bus, NAMES, EVERYBODY)
    assert waiting(sqlite_database, bus) == {"every-worker": 3}


def test_nobody_takes_every_workers_jobs_beside_workers_of_their_own(postgres_database: Database) -> None:
    bus = EmbeddedBus(postgres_database)
    with postgres_database.transaction() as tx:
        bus.declare(tx, NAMES.topology())
        bus.declare(tx, Topology(subscriptions=(NAMES.worker("a"),)))
    with pytest.raises(PlaceTaken, match=r"\(a\).*WORKER_ID"):
        take_place(postgres_database, bus, NAMES, EVERYBODY)
    assert waiting(postgres_database, bus) == {"worker-a": 0}
    insist_on_own_place(bus, NAMES, "b")


def test_no_worker_of_its_own_works_beside_one_that_takes_all(database: Database, bus: EmbeddedBus) -> None:
    take_place(database, bus, NAMES, EVERYBODY)
    with pytest.raises(PlaceTaken, match="WORKER_ID"):
        insist_on_own_place(bus, NAMES, "a")


def test_what_the_dead_held_is_given_out_again(database: Database, bus: EmbeddedBus) -> None:
    take_place(database, bus, NAMES, EVERYBODY)
    send(database, bus, "a", "b")
    with database.transaction() as tx:
        assert len(bus.receive(tx, EVERYBODY.subscription, 1)) == 1
    assert waiting(database, bus) == {"every-worker": 1}
    with database.transaction() as tx:
        assert bus.release_all(tx) == 1
    assert waiting(database, bus) == {"every-worker": 2}
