"""Phases: on time, each member at its own pace, one thing at a time; and how phases, members and batches end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

TWO_PHASES = runbook({"prepare T-30m": ["check", "copy"], "move T-0": ["move"]})


def test_members_progress_independently(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", "bert", minutes=30)
    wave.tick()
    assert wave.jobs() == ["check anna", "check bert"]
    wave.succeed("check anna")
    assert wave.jobs() == ["check bert", "copy anna"]
    wave.succeed("copy anna")
    assert wave.steps("anna") == {"check": "succeeded", "copy": "succeeded"}
    assert wave.steps("bert") == {"check": "dispatched", "copy": "pending"}
    assert wave.phases() == {"prepare": "dispatched", "move": "pending"}
    assert wave.finish() == "completed"


def test_members_at_creation_get_no_member_added(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", "bert", minutes=30)
    wave.tick()
    assert wave.events("member-added") == []
    assert wave.finish() == "completed"


def test_a_phase_waits_for_its_time(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", minutes=31)
    wave.tick()
    assert wave.jobs() == []
    wave.tick(minutes=1)
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


def test_when_two_phases_are_due_together_the_earlier_goes_first(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", minutes=0)
    wave.tick()
    assert wave.phases() == {"prepare": "dispatched", "move": "dispatched"}
    done = []
    while wave.jobs():
        assert len(wave.jobs()) == 1, "one member never runs two steps at once"
        done += wave.jobs()
        wave.succeed(*wave.jobs())
    assert done == ["check anna", "copy anna", "move anna"]
    assert wave.ended() == "completed"


def test_a_later_phase_whose_message_comes_first_waits_for_the_earlier(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", "bert", minutes=0)
    wave.announce()
    earlier, later = wave.events("phase-due")
    wave.lose_events()
    wave.redeliver([later])
    assert wave.jobs() == []
    wave.redeliver([earlier])
    assert wave.jobs() == ["check anna", "check bert"]
    assert wave.finish() == "completed"


def test_a_later_phase_waits_for_polls_of_the_earlier(wave: Wave) -> None:
    wave.publish(runbook({"prepare T-30m": [step("copy", poll=POLL)], "move T-0": ["move"]}))
    wave.batch("anna", minutes=30)
    wave.tick()
    wave.tick(minutes=29)
    wave.poll("copy anna")
    wave.tick(minutes=1)
    assert wave.phases() == {"prepare": "dispatched", "move": "dispatched"}
    assert wave.jobs() == []
    wave.tick(minutes=1)
    wave.succeed("copy anna", result={"complete": True})
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


def test_a_later_phase_waits_for_a_retry_of_the_earlier(wave: Wave) -> None:
    retry = {"max_retries": 1, "interval": "10m"}
    wave.publish(runbook({"prepare T-5m": [step("copy", retry=retry)], "move T-0": ["move"]}))
    wave.batch("anna", minutes=5)
    wave.tick()
    wave.fail("copy anna")
    wave.tick(minutes=5)
    wave.reconcile()
    assert wave.jobs() == []
    wave.tick(minutes=5)
    assert wave.jobs() == ["copy anna"]
    wave.succeed("copy anna")
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


def test_one_member_fails_and_the_others_go_on(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", "bert", minutes=0)
    wave.tick()
    wave.fail("check anna", message="no such mailbox")
    assert wave.members() == {"anna": "failed", "bert": "active"}
    assert wave.steps("anna") == {"check": "failed", "copy": "cancelled", "move": "cancelled"}
    assert wave.step("check anna")["error_message"] == "NotFound: no such mailbox"
    assert wave.finish() == "completed"
    assert wave.phases() == {"prepare": "completed", "move": "completed"}
    assert wave.members() == {"anna": "failed", "bert": "completed"}


def test_a_phase_without_active_members_is_failed_when_they_failed(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", "bert", minutes=30)
    wave.tick()
    wave.fail("check anna", "check bert")
    assert wave.phases() == {"prepare": "failed", "move": "pending"}
    wave.tick(minutes=30)
    assert wave.phases() == {"prepare": "failed", "move": "failed"}
    assert wave.ended() == "failed"


def test_a_phase_without_active_members_is_skipped_when_there_are_none(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", minutes=30)
    wave.leave("anna")
    wave.tick()
    assert wave.phases() == {"prepare": "skipped: empty", "move": "pending"}
    wave.tick(minutes=30)
    assert wave.phases() == {"prepare": "skipped: empty", "move": "skipped: empty"}
    assert wave.ended() == "completed"


def test_a_batch_nobody_is_in_ends(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch(minutes=0)
    wave.tick()
    assert wave.ended() == "completed"


def test_a_batch_in_which_all_failed_is_failed(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}))
    batch = wave.batch("anna", "bert", minutes=0)
    wave.forge(schema.batches, batch, is_manual=True)
    wave.tick()
    wave.fail("move anna", "move bert")
    assert wave.phases() == {"move": "failed"}
    assert wave.ended() == "failed"


def test_a_batch_in_which_one_phase_completed_is_completed(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", minutes=30)
    wave.tick()
    wave.succeed("check anna")
    wave.succeed("copy anna")
    wave.tick(minutes=30)
    wave.fail("move anna")
    assert wave.phases() == {"prepare": "completed", "move": "failed"}
    assert wave.ended() == "completed"


def test_who_went_through_every_phase_is_completed(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", "bert", minutes=0)
    wave.tick()
    for label in ("check anna", "copy anna", "move anna"):
        wave.succeed(label)
    assert wave.members() == {"anna": "completed", "bert": "active"}
    assert wave.batch_status == "active"
    assert wave.finish() == "completed"


def test_who_is_between_phases_stays_active(wave: Wave) -> None:
    wave.publish(TWO_PHASES)
    wave.batch("anna", minutes=30)
    wave.tick()
    wave.succeed("check anna")
    wave.succeed("copy anna")
    assert wave.members() == {"anna": "active"}
    assert wave.phases() == {"prepare": "completed", "move": "pending"}
    assert wave.batch_status == "active"
    assert wave.finish() == "completed"
