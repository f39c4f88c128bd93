"""The outbox: written with the state, taken in order, sent at least once under the same id."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.dialects import mssql

from matoolkit.bus import outbox as statements
from matoolkit.bus.errors import MessageTooLarge
from matoolkit.bus.outbox import Lag, Outbox, Unsent
from matoolkit.bus.port import Outgoing
from tests.bus.lines import START, WORKER_1, Line, job

if TYPE_CHECKING:
    from matoolkit.clock import ManualClock
    from matoolkit.store.database import Database


@pytest.fixture
def outbox(clock: ManualClock) -> Outbox:
    return Outbox(clock)


def write(database: Database, outbox: Outbox, *messages: Outgoing, topic: str = "worker-jobs") -> None:
    with database.transaction() as tx:
        outbox.publish(tx, topic, messages)


def take(database: Database, outbox: Outbox, limit: int = 100) -> list[Unsent]:
    with database.transaction() as tx:
        return outbox.take(tx, limit)


def test_what_is_taken_is_what_was_published_in_order(database: Database, outbox: Outbox) -> None:
    full = Outgoing("a", {"WorkerId": "1"}, "step-1", START + timedelta(minutes=5), timedelta(hours=1))
    write(database, outbox, full, *(job(str(number), message_id=f"id-{number}") for number in range(600)))
    write(database, outbox, Outgoing("last"), topic="worker-results")
    taken = take(database, outbox, 1000)
    assert taken[0].message == full
    assert [each.message.body for each in taken] == ["a", *map(str, range(600)), "last"]
    assert [taken[0].topic, taken[-1].topic] == ["worker-jobs", "worker-results"]
    assert taken[-1].message.message_id, "one of its own, and the same whenever it is taken"


def test_what_is_not_committed_is_never_sent(database: Database, outbox: Outbox) -> None:
    def die() -> None:
        with database.transaction() as tx:
            outbox.publish(tx, "worker-jobs", [job("a")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        die()
    assert take(database, outbox) == []


def test_what_is_sent_is_gone(database: Database, outbox: Outbox) -> None:
    write(database, outbox, job("a"), job("b"), job("c"))
    first = take(database, outbox, 2)
    with database.transaction() as tx:
        outbox.sent(tx, first)
        outbox.sent(tx, first)
        outbox.sent(tx, [])
        assert outbox.lag(tx) == Lag(1, START)
    assert [each.message.body for each in take(database, outbox)] == ["c"]


@pytest.mark.parametrize(("database", "line"), [("sqlite", "postgresql"), ("postgresql", "service bus")], indirect=True)
def test_a_relay_that_dies_between_sending_and_saying_so_costs_a_duplicate(
    database: Database, outbox: Outbox, line: Line
) -> None:
    """The bus that is sent to knows the ids again."""

    def send(messages: list[Unsent]) -> None:
        for each in messages:
            line.publish(each.topic, each.message)

    write(database, outbox, job("a", message_id="step-1"), job("b"))
    send(take(database, outbox))
    assert take(database, outbox) == [], "still the first relay's"
    line.clock.advance(seconds=60)
    again = take(database, outbox)
    assert [each.message.body for each in again] == ["a", "b"]
    send(again)
    with database.transaction() as tx:
        outbox.sent(tx, again)
    line.clock.advance(days=1)
    assert take(database, outbox) == []
    arrived = line.receive(WORKER_1)
    assert [message.body for message in arrived] == ["a", "b"]


def test_a_relay_that_dies_before_sending_loses_nothing(database: Database, outbox: Outbox, clock: ManualClock) -> None:
    write(database, outbox, job("a"))
    (lost,) = take(database, outbox)
    clock.advance(seconds=60)
    assert take(database, outbox) == [lost]


def test_what_could_not_be_sent_comes_back_when_it_is_to_be_tried_again(
    database: Database, outbox: Outbox, clock: ManualClock
) -> None:
    write(database, outbox, job("a"), job("b"))
    taken = take(database, outbox)
    with database.transaction() as tx:
        outbox.give_back(tx, taken[:1], retry_at=START + timedelta(seconds=5))
        outbox.give_back(tx, [], retry_at=START)
    clock.advance(seconds=5)
    assert take(database, outbox) == taken[:1]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_two_relays_at_once_take_different_messages(database: Database, outbox: Outbox) -> None:
    write(database, outbox, job("a"), job("b"), job("c"))
    with database.transaction() as one, database.transaction() as other:
        first, second = outbox.take(one, 2), outbox.take(other, 2)
    assert [[each.message.body for each in part] for part in (first, second)] == [["a", "b"], ["c"]]


def test_what_the_bus_would_refuse_is_refused_at_once(database: Database, outbox: Outbox) -> None:
    with pytest.raises(MessageTooLarge):
        write(database, outbox, job("x" * 300_000))
    write(database, outbox)


@pytest.mark.parametrize(
    "name", ["_WRITE", "_FREE", "_TAKE", "_SENT", "_WAITING", "_SCHEDULED", "_TO_WITHDRAW", "_OVER"]
)
def test_its_statements_are_azure_sqls_too(name: str) -> None:
    compiled = str(getattr(statements, name).compile(dialect=mssql.dialect()))  # type: ignore[no-untyped-call]
    if name == "_FREE":
        assert "READPAST" in compiled


def later(body: str, minutes: int) -> Outgoing:
    return job(body, message_id=body, deliver_at=START + timedelta(minutes=minutes))


def test_what_was_sent_for_later_is_known_by_its_sequence_until_its_time_has_come(
    database: Database, outbox: Outbox, clock: ManualClock
) -> None:
    write(database, outbox, later("a", 1), later("b", 2), later("c", 3), job("now", message_id="now"))
    taken = take(database, outbox, 2)
    with database.transaction() as tx:
        outbox.scheduled(tx, [(taken[0], 71), (taken[1], 72)])
        outbox.scheduled(tx, [])
        assert outbox.lag(tx).waiting == 2
    clock.advance(minutes=1)
    assert [each.message.body for each in take(database, outbox)] == ["c", "now"], "what is sent is not sent again"
    with database.transaction() as tx:
        assert outbox.withdraw(tx, "worker-jobs", ["a", "b", "c", "now", "unknown"]) == (1, [72])
        assert outbox.withdraw(tx, "worker-jobs", ["b", "c"]) == (0, []), "withdrawn already"
        assert outbox.withdraw(tx, "worker-jobs", []) == (0, [])


def test_sequences_are_forgotten_when_they_mean_nothing_any_more(
    database: Database, outbox: Outbox, clock: ManualClock
) -> None:
    write(database, outbox, later("a", 1), later("b", 2))
    with database.transaction() as tx:
        outbox.scheduled(tx, [(each, each.id) for each in outbox.take(tx, 10)])
    clock.advance(minutes=1)
    with database.transaction() as tx:
        outbox.forget(tx)
        assert tx.connection.exec_driver_sql("SELECT message_id FROM outbox").scalars().all() == ["b"]


def test_relays_of_the_process_are_told_once_it_is_committed(database: Database, outbox: Outbox) -> None:
    told: list[str] = []
    outbox.tell(lambda: told.append("told"))
    with database.transaction() as tx:
        outbox.publish(tx, "worker-jobs", [job("a")])
        assert told == []
    assert told == ["told"]
