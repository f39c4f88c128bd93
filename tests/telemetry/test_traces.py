"""A phase and all that follows from it is one trace, whoever has a part in it and whether or not anybody listens."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import UNSET
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from matoolkit.messages import MemberRemoved, RetryCheck, decode_event, encode
from matoolkit.scheduler.due import start_due_phases
from matoolkit.telemetry.traceparents import read
from tests.orchestrator.driver import Wave
from tests.orchestrator.runbooks import POLL, RETRY, runbook, step
from tests.telemetry.listening import Listening, trace_of, traceparent_of
from tests.telemetry.told import ToldWave

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

FROM_ELSEWHERE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ANOTHER = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"


@pytest.fixture
def wave(emptied_sqlite: Database) -> Iterator[Wave]:
    yield from _held(Wave(emptied_sqlite))


@pytest.fixture
def listening() -> Listening:
    return Listening()


@pytest.fixture
def told(emptied_sqlite: Database, listening: Listening) -> Iterator[ToldWave]:
    yield from _held(ToldWave(emptied_sqlite, listening))


def _held(wave: Any) -> Iterator[Any]:
    yield wave
    wave.check()
    wave.bus.close()


def start(wave: Wave, *keys: str, traceparent: str | None = None, phases: Any = None, **more: Any) -> None:
    """A batch whose first phase becomes due; its message comes from somewhere, or from our own scheduler."""
    wave.publish(runbook(phases or {"go T-0": ["one", "two"]}, **more))
    wave.batch(*keys, minutes=1)
    wave.announce(minutes=1)
    if traceparent is not None:
        (due,) = taken_events(wave)
        event = decode_event(due.body)
        wave.send_event(encode(msgspec.structs.replace(event, traceparent=traceparent)), "phase-due")
    wave.pump()


def taken_events(wave: Wave) -> list[Any]:
    with wave.database.transaction() as tx:
        return wave.bus.take(tx, wave.orchestrators[0].events_subscription, 100)


def trace(traceparent: Any) -> int:
    assert isinstance(traceparent, str)
    place = read(traceparent)
    assert place is not None
    return place.trace


def traces_of_jobs(wave: Wave) -> dict[str, int]:
    return {job.label: trace(job.body.traceparent) for job in wave.every_job}


def run_on(wave: Wave, label: str) -> str:
    """Where a worker would be that tells of the job: a span of its own, in the trace of the job."""
    job = wave.job(label)
    assert job.traceparent is not UNSET
    return f"{job.traceparent[:36]}{hash(label) & 0xFFFFFFFFFFFFFFFF:016x}-01"


# While nobody listens ------------------------------------------------------------------------------------------------


def test_messages_that_come_from_nowhere_lead_to_messages_that_say_nothing(wave: Wave) -> None:
    start(wave, "anna")
    wave.finish()
    assert all(job.body.traceparent is UNSET for job in wave.every_job)
    assert not [each for each in wave.events() if "traceparent" in each.body]


def test_where_a_phase_comes_from_is_passed_on_to_every_job_of_it(wave: Wave) -> None:
    start(wave, "anna", "bert", traceparent=FROM_ELSEWHERE)
    assert {wave.job(each).traceparent for each in wave.jobs()} == {FROM_ELSEWHERE}
    answer = wave.answer("one anna", traceparent=run_on(wave, "one anna"))
    wave.pump()
    # The next step follows from the answer, not from what came before it.
    assert wave.job("two anna").traceparent == answer.traceparent
    wave.succeed("one bert")
    wave.finish()
    assert set(traces_of_jobs(wave).values()) == {trace(FROM_ELSEWHERE)}


def test_chunks_of_a_phase_are_in_its_trace(wave: Wave) -> None:
    wave.boot(chunk_size=2)
    start(wave, "a", "b", "c", "d", "e", traceparent=FROM_ELSEWHERE)
    assert {wave.job(each).traceparent for each in wave.jobs()} == {FROM_ELSEWHERE}
    assert len(wave.held) == 5
    wave.finish()


def test_a_retry_and_the_undoing_of_a_step_are_in_its_trace(wave: Wave) -> None:
    undone = {"go T-0": [step("one", on_failure="undo", retry=RETRY | {"max_retries": 1})]}
    start(wave, "anna", traceparent=FROM_ELSEWHERE, phases=undone, rollbacks={"undo": ["back"]})
    wave.fail("one anna")
    wave.tick(minutes=1)
    wave.fail("one anna")
    wave.succeed("back anna")
    assert traces_of_jobs(wave) == {"one anna": trace(FROM_ELSEWHERE), "back anna": trace(FROM_ELSEWHERE)}
    assert [job.label for job in wave.every_job] == ["one anna", "one anna", "back anna"]
    retries = [decode_event(each.body) for each in wave.events("retry-check")]
    assert [isinstance(each, RetryCheck) and each.traceparent for each in retries] == [FROM_ELSEWHERE]


def test_the_steps_of_leaving_are_in_the_trace_of_what_made_them_leave(wave: Wave) -> None:
    wave.publish(runbook({"early T-10m": ["prepare"], "late T-0": ["one"]}, on_member_removed=["off", "away"]))
    wave.batch("anna", "bert", minutes=15)
    wave.tick(minutes=5)
    wave.succeed("prepare anna", "prepare bert")
    wave.leave("anna")
    (gone,) = taken_events(wave)
    event = decode_event(gone.body)
    assert isinstance(event, MemberRemoved)
    wave.send_event(encode(msgspec.structs.replace(event, traceparent=ANOTHER)), "member-removed")
    assert wave.jobs() == ["off anna"]
    wave.succeed("off anna")
    assert {wave.job("away anna").traceparent, wave.every_job[-2].body.traceparent} == {ANOTHER}
    wave.finish()


def test_what_cannot_be_understood_is_passed_on_and_stops_nobody(told: ToldWave, listening: Listening) -> None:
    start(told, "anna", traceparent="who knows")
    assert told.job("one anna").traceparent == "who knows"
    told.finish()
    assert listening.spans("handle results")


# While somebody does -------------------------------------------------------------------------------------------------


def test_a_wave_is_a_trace_for_each_phase_from_its_beginning_to_its_end(told: ToldWave, listening: Listening) -> None:
    told.publish(runbook({"early T-10m": ["prepare"], "late T-0": ["one", "two"]}))
    told.batch("anna", "bert", minutes=15)
    assert told.finish() == "completed"
    early, late = (listening.spans(f"phase {name} is due")[0] for name in ("early", "late"))
    assert trace_of(early) != trace_of(late)
    traces = traces_of_jobs(told)
    assert {traces["prepare anna"], traces["prepare bert"]} == {trace_of(early)}
    assert {traces["one anna"], traces["two anna"], traces["one bert"], traces["two bert"]} == {trace_of(late)}
    ended = {trace_of(each): dict(each.attributes or {}) for each in listening.spans("phase") if "ended" in each.name}
    assert {each: found["Status"] for each, found in ended.items()} == {
        trace_of(early): "completed",
        trace_of(late): "completed",
    }
    labels = dict(late.attributes or {})
    assert (labels["BatchId"], labels["PhaseName"], labels["RunbookName"]) == (told.batch_id, "late", "wave")


def test_a_step_is_followed_from_the_phase_through_each_set_that_was_handled(
    told: ToldWave, listening: Listening
) -> None:
    start(told, "anna", "bert")
    (due,) = listening.spans("phase go is due")
    handled = listening.spans("handle events")[-1]
    assert due.parent is None
    assert handled.parent is not None
    assert handled.parent.span_id == due.context.span_id
    for label in told.jobs():
        assert told.job(label).traceparent == traceparent_of(handled)
    runs = [run_on(told, label) for label in ("one anna", "one bert")]
    told.answer("one anna", traceparent=runs[0])
    told.answer("one bert", traceparent=runs[1])
    told.pump()
    results = listening.spans("handle results")[-1]
    assert results.parent is not None
    # Both are in it: one as what it follows, the other as a link.
    seen = [results.parent.span_id, *(link.context.span_id for link in results.links)]
    assert sorted(seen) == sorted(int(each[36:52], 16) for each in runs)
    assert told.job("two anna").traceparent == told.job("two bert").traceparent == traceparent_of(results)
    told.finish()


def test_a_set_of_two_traces_is_shown_in_both(told: ToldWave, listening: Listening) -> None:
    told.publish(runbook({"early T-10m": ["prepare"], "late T-0": ["one"]}))
    told.batch("anna", "bert", minutes=15)
    told.tick(minutes=5)
    told.succeed("prepare anna")
    told.tick(minutes=10)
    assert told.jobs() == ["one anna", "prepare bert"]
    for label in told.jobs():
        told.answer(label, traceparent=run_on(told, label))
    told.pump()
    early, late = (trace_of(listening.spans(f"phase {name} is due")[0]) for name in ("early", "late"))
    assert {trace_of(each) for each in listening.spans("handle results")[-2:]} == {early, late}
    # Bert goes on in another phase: that is another trace.
    assert trace(told.job("one bert").traceparent) == late
    told.finish()


def test_a_poll_is_in_the_trace_of_its_phase(told: ToldWave, listening: Listening) -> None:
    start(told, "anna", phases={"go T-0": [step("one", poll=POLL)]})
    told.poll("one anna")
    told.tick(minutes=2)
    (due,) = listening.spans("phase go is due")
    assert told.jobs() == ["one anna"]
    assert trace(told.job("one anna").traceparent) == trace_of(due)
    told.finish()
    assert len(told.every_job) == 2


def test_what_reconciliation_sends_is_in_the_trace_of_its_phase(told: ToldWave, listening: Listening) -> None:
    start(told, "anna", phases={"go T-0": [step("one", retry=RETRY)]})
    told.fail("one anna")
    # The message of the retry is lost.
    with told.database.transaction() as tx:
        tx.connection.exec_driver_sql("DELETE FROM bus_messages")
    told.reconcile(minutes=10)
    (due,) = listening.spans("phase go is due")
    assert trace(told.job("one anna").traceparent) == trace_of(due)
    assert len(told.every_job) == 2
    assert listening.spans("reconcile")
    told.finish()


def test_who_joins_late_is_in_the_trace_of_the_phase_that_is_caught_up_on(told: ToldWave, listening: Listening) -> None:
    start(told, "anna")
    told.join("carl")
    told.pump()
    (due,) = listening.spans("phase go is due")
    assert trace(told.job("one carl").traceparent) == trace_of(due)
    told.finish()


def test_init_has_a_trace_of_its_own(told: ToldWave) -> None:
    told.publish(runbook({"go T-0": ["one"]}, init=["open", "shut"]))
    told.batch("anna", minutes=1)
    assert told.finish() == "completed"
    traces = traces_of_jobs(told)
    assert traces["open"] == traces["shut"] != traces["one anna"]


def test_what_was_undone_did_not_begin(told: ToldWave, listening: Listening) -> None:
    told.publish(runbook({"go T-0": ["one"]}))
    told.batch("anna", minutes=1)
    told.clock.advance(minutes=1)
    with suppress(ZeroDivisionError), told.database.transaction() as tx:
        assert start_due_phases(tx, told._announcer, told.now) == 1
        raise ZeroDivisionError
    assert listening.spans("phase") == []
    told.tick()
    assert len(listening.spans("phase go is due")) == 1
    told.finish()


def test_a_trace_that_is_not_kept_is_kept_nowhere(emptied_sqlite: Database) -> None:
    listening = Listening(ParentBased(ALWAYS_OFF))
    wave = ToldWave(emptied_sqlite, listening)
    start(wave, "anna")
    assert str(wave.job("one anna").traceparent).endswith("-00")
    wave.finish()
    wave.bus.close()
    assert listening.spans() == []
