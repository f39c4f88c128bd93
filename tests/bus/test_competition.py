"""Several consumers and publishers at the same messages, on the buses that allow it: all but SQLite's."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.embedded import EmbeddedBus
from matoolkit.bus.port import DeadLetter, Outgoing
from matoolkit.store.errors import TransactionConflict
from tests.bus.lines import EVENTS, NAMES, TOPOLOGY, WORKER_1, Line, job

if TYPE_CHECKING:
    from matoolkit.store.database import Database

competing = pytest.mark.parametrize("line", ["postgresql", "service bus"], indirect=True)
in_open_transactions = pytest.mark.parametrize("line", ["postgresql"], indirect=True)
"""Only a bus in the database has transactions that stay open beside each other."""

CONSUMERS, MESSAGES = 4, 2000


@competing
def test_every_message_reaches_one_of_four_consumers(line: Line) -> None:
    line.publish(EVENTS.topic, *(str(number) for number in range(MESSAGES)))
    together = Barrier(CONSUMERS)

    def consume() -> list[str]:
        bodies: list[str] = []
        together.wait()
        while True:
            with line.bus.transaction() as tx:
                messages = line.bus.receive(tx, EVENTS, 37)
                line.bus.publish(tx, NAMES.results, [Outgoing(message.body) for message in messages])
            if not messages:
                return bodies
            line.complete(*messages)
            bodies += [message.body for message in messages]

    with ThreadPoolExecutor(CONSUMERS) as threads:
        parts = [future.result() for future in [threads.submit(consume) for _ in range(CONSUMERS)]]
    assert Counter(body for part in parts for body in part) == Counter(str(number) for number in range(MESSAGES))
    assert sum(bool(part) for part in parts) > 1


@competing
def test_every_dead_letter_is_taken_by_one(line: Line) -> None:
    line.publish(EVENTS.topic, *(str(number) for number in range(500)))
    line.dead_letter(*line.receive(EVENTS, limit=500))
    together = Barrier(CONSUMERS)

    def take() -> list[DeadLetter]:
        taken: list[DeadLetter] = []
        together.wait()
        while True:
            with line.bus.transaction() as tx:
                some = line.bus.take_dead(tx, EVENTS, 20)
            if not some:
                return taken
            taken += some

    with ThreadPoolExecutor(CONSUMERS) as threads:
        futures = [threads.submit(take) for _ in range(CONSUMERS)]
        bodies = [dead.body for future in futures for dead in future.result()]
    assert Counter(bodies) == Counter(str(number) for number in range(500))


@in_open_transactions
def test_two_who_take_dead_letters_in_open_transactions_get_different_ones(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b", "c")
    line.dead_letter(*line.receive(EVENTS))
    with line.bus.transaction() as one, line.bus.transaction() as other:
        first = line.bus.take_dead(one, EVENTS, 2)
        second = line.bus.take_dead(other, EVENTS, 2)
    assert [[dead.body for dead in each] for each in (first, second)] == [["a", "b"], ["c"]]


@competing
def test_of_equal_ids_published_at_once_one_arrives(line: Line) -> None:
    together = Barrier(CONSUMERS)

    def publish(number: int) -> None:
        ids = [f"step-{each}" for each in range(200)]
        together.wait()
        line.publish(NAMES.jobs, *(job(f"{number}", message_id=each) for each in (ids if number % 2 else ids[::-1])))

    with ThreadPoolExecutor(CONSUMERS) as threads:
        for future in [threads.submit(publish, number) for number in range(CONSUMERS)]:
            future.result()
    assert Counter(message.message_id for message in line.receive(WORKER_1, limit=1000)) == Counter(
        f"step-{each}" for each in range(200)
    )


@in_open_transactions
def test_two_sweeps_at_once_do_not_wait_for_each_other(line: Line) -> None:
    line.publish(EVENTS.topic, *(Outgoing(str(number), message_id=str(number)) for number in range(4)))
    line.clock.advance(days=8)
    with line.bus.transaction() as one, line.bus.transaction() as other:
        reports = [line.bus.sweep(one, 3), line.bus.sweep(other, 3)]
    assert [(report.expired, report.forgotten_ids) for report in reports] == [(3, 3), (1, 1)]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_services_that_start_together_declare_together(database: Database) -> None:
    bus = EmbeddedBus(database)
    together = Barrier(CONSUMERS)

    def declare() -> None:
        together.wait()
        with bus.transaction() as tx:
            bus.declare(tx, TOPOLOGY)

    with ThreadPoolExecutor(CONSUMERS) as threads:
        for future in [threads.submit(declare) for _ in range(CONSUMERS)]:
            assert not isinstance(future.exception(), TransactionConflict)
            future.result()


@in_open_transactions
def test_a_removal_waits_for_who_is_publishing(line: Line) -> None:
    with ThreadPoolExecutor(1) as threads:
        with line.bus.transaction() as tx:
            line.bus.publish(tx, NAMES.jobs, [job("a")])
            removal = threads.submit(_remove, line)
        removal.result()
    line.declare(NAMES.worker("1"))
    assert line.bodies(WORKER_1) == []


def _remove(line: Line) -> None:
    with line.bus.transaction() as tx:
        line.bus.remove(tx, WORKER_1)
