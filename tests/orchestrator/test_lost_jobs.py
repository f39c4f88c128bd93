"""Jobs that never report: given up by the bus, out of time, or gone without a trace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.bus import Outgoing
from matoolkit.store import schema
from tests.orchestrator.post import WORKER
from tests.orchestrator.runbooks import RETRY, init_step, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave


def started(wave: Wave, **more: Any) -> None:
    text = runbook({"move T-0": [step("move", **more)]}, rollbacks={"undo": ["unmove"]})
    wave.publish(text)
    wave.batch("anna", "bert", minutes=0)
    wave.tick()


def test_a_dead_lettered_job_fails_its_step_saying_why(wave: Wave) -> None:
    started(wave)
    wave.give_up("move anna")
    assert wave.orchestrators[0].drain() == 1
    error = wave.step("move anna")["error_message"]
    assert error == ("JobLost: the job was given up by the message bus: MaxDeliveryCountExceeded (lock lost ten times)")
    assert wave.members() == {"anna": "failed", "bert": "active"}
    assert wave.finish() == "completed"


def test_a_dead_lettered_job_is_tried_again(wave: Wave) -> None:
    started(wave, retry=RETRY)
    wave.give_up("move anna")
    wave.reconcile()
    wave.tick(minutes=1)
    assert wave.job("move anna").job_id.endswith("-retry-1")
    assert wave.finish() == "completed"
    assert wave.members() == {"anna": "completed", "bert": "completed"}


def test_a_dead_lettered_job_is_rolled_back(wave: Wave) -> None:
    started(wave, on_failure="undo")
    wave.give_up("move anna")
    wave.reconcile()
    assert wave.jobs() == ["move bert", "unmove anna"]
    assert wave.finish() == "completed"


def test_a_dead_letter_nobody_waits_for_any_more_changes_nothing(wave: Wave) -> None:
    started(wave, retry=RETRY)
    wave.fail("move anna")
    wave.tick(minutes=1)
    wave.jobs()
    failed = wave.every_job[0].message
    with wave.database.transaction() as tx:
        wave.bus.publish(tx, "worker-jobs", [Outgoing(failed.body, failed.properties)])
        wave.bus.dead_letter(tx, wave.bus.receive(tx, WORKER.subscription, 10), "MaxDeliveryCountExceeded")
    wave.reconcile()
    assert wave.step("move anna")["status"] == "dispatched"
    assert wave.finish() == "completed"


def test_an_unreadable_dead_letter_is_put_aside(wave: Wave) -> None:
    started(wave)
    wave.jobs()
    wave.send("worker-jobs", "no job", {"WorkerId": "worker-1"})
    with wave.database.transaction() as tx:
        wave.bus.dead_letter(tx, wave.bus.receive(tx, WORKER.subscription, 10), "Unreadable")
    wave.reconcile()
    assert wave.row(schema.dead_messages)["body"] == "no job"
    wave.succeed("move anna", "move bert")
    assert wave.ended(put_aside=1) == "completed"


def test_a_lost_job_of_init_fails_the_batch(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=[init_step("open")]))
    wave.batch("anna")
    wave.give_up("open")
    wave.reconcile()
    wave.reconcile()
    assert wave.batch_status == "failed"
    assert wave.ended() == "failed"


def test_a_lost_job_of_a_rollback_fails_the_rollback(wave: Wave) -> None:
    started(wave, on_failure="undo")
    wave.jobs()
    wave.failure("move anna")
    wave.give_up("unmove anna")
    wave.reconcile()
    assert wave.step("move anna")["rollback_status"] == "failed"
    assert wave.finish() == "completed"


def test_a_job_nobody_took_in_its_time_is_dead_lettered_and_fails(wave: Wave) -> None:
    started(wave)
    wave.clock.advance(days=7, seconds=1)
    with wave.database.transaction() as tx:
        assert wave.bus.sweep(tx).expired >= 2
    wave.reconcile()
    assert wave.members() == {"anna": "failed", "bert": "failed"}
    assert "TTLExpired" in wave.step("move anna")["error_message"]
    assert wave.ended() == "failed"


def test_a_job_past_its_end_of_life_is_found_by_reconciliation(wave: Wave) -> None:
    started(wave, retry=RETRY)
    assert wave.lose_jobs() == 2
    wave.reconcile(days=7, minutes=59)
    assert wave.steps("anna") == {"move": "dispatched"}, "an hour past its end it is still waited for"
    wave.reconcile(minutes=2)
    assert wave.step("move anna")["status"] == "pending"
    assert "neither run nor given back" in wave.step("move anna")["error_message"]
    wave.tick(minutes=1)
    assert wave.jobs() == ["move anna", "move bert"]
    assert wave.finish() == "completed"


def test_a_result_that_comes_after_its_job_was_taken_for_lost_is_stale(wave: Wave) -> None:
    started(wave, retry=RETRY)
    wave.jobs()
    wave.reconcile(days=7, hours=2)
    wave.succeed("move anna")
    assert wave.step("move anna")["status"] == "pending"
    wave.held.clear()
    assert wave.finish() == "completed"


def test_a_healthy_job_that_waits_for_hours_is_not_given_up(wave: Wave) -> None:
    started(wave)
    wave.jobs()
    for _ in range(5):
        wave.reconcile(hours=20)
    assert wave.steps("anna") == {"move": "dispatched"}
    assert wave.job("move anna").not_after == wave.every_job[0].message.enqueued_at + timedelta(days=7)
    assert wave.finish() == "completed"
