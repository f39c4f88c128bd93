"""Cancel cancels: nothing more is sent, late results are recorded, and what has begun to be undone is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, RETRY, init_step, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

TWO_PHASES = runbook({"prepare T-30m": ["check", "copy"], "move T-0": ["move"]})


def started(wave: Wave, text: str = TWO_PHASES, *keys: str) -> None:
    wave.publish(text)
    wave.batch(*(keys or ("anna",)), minutes=30)
    wave.tick()


def test_cancel_cancels_batch_phases_steps_and_members(wave: Wave) -> None:
    started(wave, TWO_PHASES, "anna", "bert")
    wave.succeed("check anna")
    wave.jobs()
    assert wave.cancel()
    assert wave.batch_status == "cancelled"
    assert wave.phases() == {"prepare": "cancelled", "move": "cancelled"}
    assert wave.steps("anna") == {"check": "succeeded", "copy": "cancelled"}
    assert wave.members() == {"anna": "removed", "bert": "removed"}
    assert wave.row(schema.batches, id=wave.batch_id)["cancelled_by"] == "anna"
    wave.succeed("copy anna", "check bert")
    assert wave.jobs() == []
    assert wave.ended() == "cancelled"


def test_nothing_can_be_cancelled_twice(wave: Wave) -> None:
    started(wave)
    assert wave.cancel()
    assert not wave.cancel()
    wave.succeed("check anna")
    assert wave.ended() == "cancelled"


def test_late_results_are_recorded_and_change_nothing(wave: Wave) -> None:
    started(wave, runbook({"move T-30m": [step("check", output_params={"Out": "Id"}), "move"]}))
    wave.jobs()
    wave.cancel()
    wave.succeed("check anna", result={"Id": 42})
    row = wave.step("check anna")
    assert (row["status"], row["result_json"], row["job_out"]) == ("cancelled", '{"Id":42}', False)
    assert wave.member("anna")["worker_data_json"] is None
    assert wave.ended() == "cancelled"


def test_a_late_failure_starts_no_retry_and_no_rollback(wave: Wave) -> None:
    move = step("move", retry=RETRY, on_failure="undo")
    started(wave, runbook({"move T-30m": [move]}, rollbacks={"undo": ["unmove"]}))
    wave.jobs()
    wave.cancel()
    wave.fail("move anna")
    wave.tick(minutes=5)
    assert wave.jobs() == []
    assert wave.step("move anna")["status"] == "cancelled"
    assert "no such mailbox" in wave.step("move anna")["error_message"]
    assert wave.ended() == "cancelled"


def test_pending_retries_and_polls_die(wave: Wave) -> None:
    started(wave, runbook({"move T-30m": [step("move", retry=RETRY, poll=POLL)]}), "anna", "bert")
    wave.fail("move anna")
    wave.poll("move bert")
    wave.announce(minutes=2)
    wave.cancel()
    wave.pump()
    wave.tick(minutes=5)
    wave.reconcile(minutes=5)
    assert wave.jobs() == []
    assert wave.steps("anna") == wave.steps("bert") == {"move": "cancelled"}
    assert wave.ended() == "cancelled"


def test_a_phase_that_was_announced_before_the_cancel_does_not_start(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", minutes=0)
    wave.announce()
    wave.cancel()
    assert wave.jobs() == []
    wave.reconcile(minutes=5)
    assert wave.jobs() == []
    assert wave.ended() == "cancelled"


def test_init_ends_with_its_batch(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=[init_step("open", retry=RETRY), "fill"]))
    wave.batch("anna", minutes=0)
    wave.jobs()
    wave.cancel()
    wave.fail("open")
    wave.tick(minutes=5)
    wave.reconcile(minutes=5)
    assert wave.jobs() == []
    assert wave.step("open")["status"] == wave.step("fill")["status"] == "cancelled"
    assert wave.ended() == "cancelled"


def test_a_large_batch_is_wound_up_in_chunks(wave: Wave) -> None:
    started(wave, TWO_PHASES, *(f"user{number}" for number in range(5)))
    held = wave.jobs()
    assert wave.cancel(size=2)
    assert list(wave.members().values()).count("removed") == 2
    wave.succeed(*held)
    assert wave.jobs() == [], "nothing follows, though some steps are not cancelled yet"
    wave.reconcile()
    assert set(wave.members().values()) == {"removed"}
    assert wave.ended() == "cancelled"


def test_who_leaves_while_a_batch_is_wound_up_is_not_sent_away_by_steps(wave: Wave) -> None:
    retried = step("move", retry=RETRY)
    started(wave, runbook({"move T-30m": [retried]}, on_member_removed=["unroute"]), "anna", "bert", "carl")
    wave.fail("move carl")
    wave.cancel(size=1)
    wave.leave("carl")
    wave.reconcile()
    wave.succeed("move anna", "move bert")
    assert wave.jobs() == []
    assert wave.members() == {"anna": "removed", "bert": "removed", "carl": "removed"}
    assert wave.ended() == "cancelled"
