"""What is measured is what happened; and every metric is described, with what to do about it."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.bus import Outgoing
from matoolkit.bus.outbox import Outbox
from matoolkit.bus.relay import Relay
from matoolkit.clock import ManualClock
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.telling import watch_outbox, watch_queues, watch_state, watch_worker
from matoolkit.hosts.ticking import Ticking
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.store import leases
from matoolkit.telemetry import ALL, Reading, Sort, metrics
from matoolkit.worker.registry import Registry
from matoolkit.worker.tenant.throttle import Throttle
from tests.orchestrator.post import NAMES
from tests.orchestrator.runbooks import RETRY, runbook, step
from tests.telemetry.listening import Listening, trace_of, traceparent_of
from tests.telemetry.told import ToldWave
from tests.worker.workplace import SECONDS, Workplace, doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

PAGE = (Path(__file__).parents[2] / "docs/operations.md").read_text()


@pytest.fixture
def listening() -> Listening:
    return Listening()


@pytest.fixture
def told(emptied_sqlite: Database, listening: Listening) -> Iterator[ToldWave]:
    wave = ToldWave(emptied_sqlite, listening)
    yield wave
    wave.bus.close()


# What there is --------------------------------------------------------------------------------------------------------


def test_every_metric_is_described_once_with_what_to_do() -> None:
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in PAGE.partition("### What each alarm means")[2].splitlines()
        if line.startswith("| `matoolkit.")
    ]
    assert [row[0].strip("`") for row in rows] == [each.name for each in ALL]
    assert all(len(row) == 4 and row[3] for row in rows)


def test_names_units_and_sentences_are_what_opentelemetry_takes() -> None:
    assert len({each.name for each in ALL}) == len(ALL) > 25
    for each in ALL:
        assert re.fullmatch(r"matoolkit(\.[a-z_]+)+", each.name)
        assert each.says
        assert (each.unit == "s") >= (each.sort is Sort.TIMES)


# What happened --------------------------------------------------------------------------------------------------------


def test_a_wave_is_counted(told: ToldWave, listening: Listening) -> None:
    told.publish(runbook({"go T-0": [step("one", retry=RETRY | {"max_retries": 1}), "two"]}))
    told.batch("anna", "bert", "carl", minutes=1)
    told.tick(minutes=1)
    told.succeed("one anna", "one bert")
    told.fail("one carl")
    told.tick(minutes=1)
    told.fail("one carl")
    assert told.finish() == "completed"
    assert listening.readings(metrics.JOBS_SENT) == {("step",): 6}
    assert listening.readings(metrics.STEPS_ENDED) == {("step", "succeeded"): 4, ("step", "failed"): 1}
    assert listening.readings(metrics.STEPS_RETRIED) == {("step",): 1}
    assert listening.readings(metrics.PHASES_ENDED) == {("completed",): 1}
    assert listening.readings(metrics.BATCHES_ENDED) == {("completed",): 1}
    # One phase, one retry, six results.
    handled = listening.readings(metrics.HANDLED)
    assert handled == {("orchestrator", "orchestrator-events"): 2, ("orchestrator", "worker-results"): 6}
    assert set(listening.readings(metrics.SET)) >= {("handle events",), ("handle results",)}


def test_a_batch_that_fails_in_init_is_counted(told: ToldWave, listening: Listening) -> None:
    told.publish(runbook({"go T-0": ["one"]}, init=["open"]))
    told.batch("anna", minutes=1)
    told.fail("open")
    assert listening.readings(metrics.BATCHES_ENDED) == {("failed",): 1}
    assert listening.readings(metrics.STEPS_ENDED) == {("init", "failed"): 1}


def test_a_step_that_cannot_be_sent_has_failed(told: ToldWave, listening: Listening) -> None:
    told.publish(runbook({"go T-0": [step("one", params={"Mail": "{{Mail}}"})]}))
    told.batch("anna", minutes=1)
    told.tick(minutes=1)
    assert listening.readings(metrics.STEPS_ENDED) == {("step", "failed"): 1}
    assert listening.readings(metrics.JOBS_SENT) == {}


def test_what_is_put_aside_is_counted_by_its_reason(told: ToldWave, listening: Listening) -> None:
    told.send_event("{", "phase-due")
    told.send_result("nothing")
    told.pump()
    assert listening.readings(metrics.PUT_ASIDE) == {
        ("Unreadable", "orchestrator-events"): 1,
        ("Unreadable", "worker-results"): 1,
    }


def test_jobs_are_measured_and_told_on_the_worker(emptied_sqlite: Database, listening: Listening) -> None:
    async def fails() -> None:
        raise PermissionError("not for anna@contoso.example")

    place, registry = Workplace(emptied_sqlite), Registry()
    registry.add([doing(lambda: True, "Do-It"), doing(fails, "Do-Fail")], "test")
    manner = Manner("worker-01", parallelism=3)
    host = WorkerHost(place.bus, place.rule, registry, place.clock, manner=manner, telemetry=listening.telemetry)
    cause = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    place.send(
        place.job(traceparent=cause), place.job("Do-Fail", traceparent=cause), place.job("Made-Up", traceparent=cause)
    )
    thread = Thread(target=host.run, daemon=True)
    thread.start()
    results = {each.function_name: each for each in place.results(3)}
    watch_worker(listening.telemetry, host)
    assert listening.readings(metrics.WORKER_HEALTH) == {("worker-01",): 0}
    assert listening.readings(metrics.JOBS_RUNNING) == {("worker-01",): 0}
    host.stop()
    thread.join(SECONDS)
    assert listening.readings(metrics.JOB) == {
        ("Do-It", "success", "worker-01"): 1,
        ("Do-Fail", "failure", "worker-01"): 1,
        ("unknown", "failure", "worker-01"): 1,
    }
    assert listening.readings(metrics.JOBS_FAILED) == {
        ("PermissionError", "Do-Fail", "worker-01"): 1,
        ("FunctionNotAllowed", "unknown", "worker-01"): 1,
    }
    # Each result comes from the span of its own job, in the trace of the job.
    for name, shown in (("Do-It", "run Do-It"), ("Do-Fail", "run Do-Fail"), ("Made-Up", "run unknown")):
        (span,) = listening.spans(shown)
        assert span.parent is not None
        assert (trace_of(span), span.parent.span_id) == (int(cause[3:35], 16), int(cause[36:52], 16))
        assert results[name].traceparent == traceparent_of(span)
        labels = dict(span.attributes or {})
        assert (labels["BatchId"], labels["WorkerId"], labels["RunbookName"]) == (7, "worker-01", "wave")
        assert labels["StepExecutionId"] == int(results[name].job_id.removeprefix("step-"))
        # What an error says may be about people; its type is not.
        assert "anna" not in f"{labels} {span.status.description} {[each.attributes for each in span.events]}"
    place.bus.close()


def test_waiting_for_the_tenant_is_measured(listening: Listening) -> None:
    now = [100.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    async def ask() -> None:
        throttle = Throttle(lambda: now[0], sleep, listening.telemetry, "graph.microsoft.com")
        sent = await throttle.enter()
        throttle.complained(sent, 7.0, told=True)
        await throttle.enter()
        throttle.passed()

    asyncio.run(ask())
    assert listening.readings(metrics.THROTTLED) == {("graph.microsoft.com",): 1}
    assert listening.readings(metrics.THROTTLE_WAIT) == {("graph.microsoft.com",): 2}
    assert now[0] >= 107


def test_a_loop_that_fails_is_counted(listening: Listening) -> None:
    again, loops = Event(), Loops(telemetry=listening.telemetry)
    turns: list[int] = []

    def work() -> None:
        turns.append(1)
        if len(turns) > 2:
            again.set()
            return
        raise RuntimeError("no")

    loops.every("relay", 0.01, work)
    assert again.wait(SECONDS)
    assert loops.stop()
    assert listening.readings(metrics.LOOP_FAILURES) == {("relay",): 2}


def test_a_tick_and_a_beat_are_timed(listening: Listening) -> None:
    class Quiet:
        def beat(self) -> bool:
            return True

        def begin(self, _busy: Any) -> tuple[()]:
            return ()

    ticking = Ticking(Quiet(), 0.01, telemetry=listening.telemetry)  # type: ignore[arg-type]
    ticking.beat()
    ticking.work()
    ticking.work()
    assert listening.readings(metrics.BEAT) == {(): 1}
    assert listening.readings(metrics.TICK) == {(): 1}


# How it is ------------------------------------------------------------------------------------------------------------


def test_levels_of_the_database_and_the_bus(told: ToldWave, listening: Listening) -> None:
    watch_state(listening.telemetry, told.database, told.clock)
    watch_queues(listening.telemetry, told.bus, NAMES, told.clock)
    told.publish(runbook({"go T-0": ["one"]}))
    told.batch("anna", "bert", minutes=1)
    told.tick(minutes=1)
    with told.database.transaction() as tx:
        leases.take(tx, leases.SCHEDULER, "house", told.now, timedelta(seconds=15))
    told.clock.advance(hours=2)
    told.send_event("{}", "phase-due")
    told.clock.advance(seconds=90)
    worker = ("worker-worker-1", "worker-jobs")
    depth = listening.readings(metrics.QUEUE_DEPTH)
    assert {key: count for key, count in depth.items() if (key[1], key[2]) == worker} == {
        ("ready", *worker): 2,
        ("scheduled", *worker): 0,
        ("locked", *worker): 0,
        ("dead", *worker): 0,
    }
    oldest = listening.readings(metrics.QUEUE_OLDEST)
    assert oldest[worker] == 7290
    assert oldest["orchestrator", "orchestrator-events"] == 90
    assert oldest["orchestrator", "worker-results"] == 0
    assert listening.readings(metrics.MEMBERS_ACTIVE) == {(): 2}
    assert listening.readings(metrics.MEMBERS_STUCK) == {("idle",): 0, ("silent",): 2, ("held",): 0}
    assert listening.readings(metrics.LEAD) == {(): 15 - 7290}
    for metric in (metrics.PHASES_OVERDUE, metrics.RUNBOOKS_FAULTY, metrics.DEAD_MESSAGES):
        assert listening.readings(metric) == {(): 0}


def test_how_far_the_relay_is_behind(emptied_sqlite: Database, listening: Listening) -> None:
    clock = ManualClock(datetime(2026, 3, 1, 8, tzinfo=UTC))
    outbox = Outbox(clock)
    relay = Relay(emptied_sqlite, outbox, None, clock)  # type: ignore[arg-type]  # nothing is sent here
    watch_outbox(listening.telemetry, relay, clock)
    assert listening.readings(metrics.OUTBOX_AGE) == {(): 0}
    with emptied_sqlite.transaction() as tx:
        outbox.publish(tx, "worker-jobs", [Outgoing("{}"), Outgoing("{}")])
    clock.advance(seconds=42)
    assert listening.readings(metrics.OUTBOX_WAITING) == {(): 2}
    assert listening.readings(metrics.OUTBOX_AGE) == {(): 42}


def test_metrics_of_one_look_are_looked_at_once_and_anew_each_time(listening: Listening) -> None:
    looks: list[int] = []

    def look() -> Iterator[Any]:
        looks.append(1)
        yield metrics.OUTBOX_WAITING, Reading(len(looks))
        yield metrics.OUTBOX_AGE, Reading(10 * len(looks))

    listening.telemetry.watch(look, metrics.OUTBOX_WAITING, metrics.OUTBOX_AGE, metrics.LEAD)
    assert listening.readings(metrics.OUTBOX_WAITING) == {(): 1}
    assert listening.readings(metrics.OUTBOX_AGE) == {(): 20}
    assert listening.readings(metrics.LEAD) == {}
    assert len(looks) == 3


def test_a_look_that_fails_is_told_and_looked_at_again(listening: Listening, caplog: pytest.LogCaptureFixture) -> None:
    away = [True]

    def look() -> Iterator[Any]:
        if away[0]:
            raise ConnectionError("the database is away")
        yield metrics.DEAD_MESSAGES, Reading(3)

    listening.telemetry.watch(look, metrics.DEAD_MESSAGES)
    assert listening.readings(metrics.DEAD_MESSAGES) == {}
    assert "the database is away" in caplog.text
    away.clear()
    away.append(False)
    assert listening.readings(metrics.DEAD_MESSAGES) == {(): 3}
