"""Query plans at 50,000 messages: every statement of the daily work goes by an index, whatever the statistics say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from matoolkit.bus.embedded import EmbeddedBus
from matoolkit.store.prepared import Answer, Prepared
from tests.bus.lines import EVENTS, NAMES, TOPOLOGY, WORKER_1, WORKER_2, job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy import Connection

    from matoolkit.bus.port import Received
    from matoolkit.store.database import Database, Transaction

MESSAGES = 50_000


@pytest.fixture(params=["statistics of an empty table", "statistics of a full table"])
def bus(request: pytest.FixtureRequest, database: Database) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(database)
    with bus.transaction() as tx:
        bus.declare(tx, TOPOLOGY)
        if tx.dialect == "postgresql":
            tx.execute(text("ALTER TABLE bus_messages SET (autovacuum_enabled = off)"))
    for filled in (False, True):
        if filled:
            with bus.transaction() as tx:
                for _ in range(10):
                    half = MESSAGES // 20
                    jobs = [job("{}", str(1 + number % 2), message_id=None) for number in range(2 * half)]
                    bus.publish(tx, NAMES.jobs, jobs)
                bus.dead_letter(tx, bus.receive(tx, WORKER_2, 1000), "Broken")
        if filled == (request.param == "statistics of a full table"):
            with bus.transaction() as tx:
                tx.execute(text("ANALYZE"))
    yield bus
    bus.close()


class Plans:
    """How the database goes about what is executed meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seen: list[tuple[str, Any]] = []
        run = Prepared.run

        def run_and_remember(statement: Prepared, connection: Connection, parameters: Mapping[str, Any]) -> Answer:
            values = {**statement._given, **statement._processed(parameters)}
            order = statement._order
            self._seen.append((statement._sql, values if order is None else [values[name] for name in order]))
            return run(statement, connection, parameters)

        monkeypatch.setattr(Prepared, "run", run_and_remember)

    def of(self, tx: Transaction, action: Callable[[], object]) -> str:
        self._seen.clear()
        action()
        driver: Any = tx.connection.connection.driver_connection
        lines: list[str] = []
        for statement, parameters in self._seen:
            if tx.dialect == "sqlite":
                lines += [row[-1] for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            else:
                lines += [row[0] for row in driver.execute(f"EXPLAIN {statement}", parameters)]
                lines += _generic_plan(driver, statement)
        return "\n".join(lines)


def _generic_plan(driver: Any, statement: str) -> list[str]:
    """The plan that is kept for a prepared statement, which knows no parameters."""
    numbers: dict[str, int] = {}
    numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", statement)
    return [row[0] for row in driver.execute(f"EXPLAIN (GENERIC_PLAN) {numbered}")]


def test_the_daily_work_goes_by_indexes(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = Plans(monkeypatch)
    received: list[Received] = []
    with bus.transaction() as tx:
        by_index = {
            "receive": (lambda: received.extend(bus.receive(tx, WORKER_1, 500)), "ix_bus_messages_available"),
            "renew": (lambda: bus.renew(tx, received), None),
            "abandon": (lambda: bus.abandon(tx, received[:100]), None),
            "dead letter": (lambda: bus.dead_letter(tx, received[100:200], "Broken"), None),
            "complete": (lambda: bus.complete(tx, received[200:]), None),
            "take": (lambda: bus.take(tx, WORKER_1, 500), "ix_bus_messages_available"),
            "look": (lambda: bus.next_due(tx, WORKER_1), "ix_bus_messages_available"),
            "sweep": (lambda: bus.sweep(tx, 500), "ix_bus_messages_expires"),
            "read dead letters": (lambda: bus.dead_letters(tx, WORKER_2, 100), "ix_bus_messages_dead"),
            "take dead letters": (lambda: bus.take_dead(tx, WORKER_2, 100), "ix_bus_messages_dead"),
            "receive nothing": (lambda: bus.receive(tx, EVENTS, 500), "ix_bus_messages_available"),
        }
        for verb, (action, index) in by_index.items():
            plan = plans.of(tx, action)
            assert plan, verb
            assert "Seq Scan on bus_messages" not in plan, f"{verb}:\n{plan}"
            assert not re.search(r"SCAN bus_messages(?! USING)", plan), f"{verb}:\n{plan}"
            if index is not None:
                assert index in plan, f"{verb}:\n{plan}"
        received_plan = plans.of(tx, lambda: bus.receive(tx, WORKER_1, 500))
        assert "TEMP B-TREE" not in received_plan, "ordered by the index"
