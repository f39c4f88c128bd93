"""Joining late and coming back: what was missed is caught up on, and each stay is told from the ones before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, runbook, step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.orchestrator.driver import Wave

PHASES = {"prepare T-30m": ["check"], "move T-0": ["move"]}
LEAVE = runbook(PHASES, on_member_removed=["unroute"])


def started(wave: Wave, text: str = LEAVE, keys: Sequence[str] = ("anna", "bert")) -> None:
    wave.publish(text)
    wave.batch(*keys, minutes=30)
    wave.tick()


def left(wave: Wave, key: str = "anna") -> None:
    wave.leave(key)
    wave.pump()


def test_who_joins_late_catches_up(wave: Wave) -> None:
    started(wave)
    wave.succeed("check anna", "check bert")
    wave.join("late")
    assert wave.jobs() == ["check late"]
    wave.tick(minutes=30)
    assert wave.jobs() == ["check late", "move anna", "move bert"]
    wave.succeed("check late")
    assert wave.finish() == "completed"
    assert wave.steps("late") == {"check": "succeeded", "move": "succeeded"}


def test_who_joins_before_a_phase_is_due_gets_it_with_the_others(wave: Wave) -> None:
    wave.publish(LEAVE)
    wave.batch("anna", minutes=40)
    wave.join("late")
    assert wave.jobs() == []
    wave.tick(minutes=10)
    assert wave.jobs() == ["check anna", "check late"]
    assert wave.finish() == "completed"


def test_catch_up_covers_failed_phases(wave: Wave) -> None:
    started(wave)
    wave.fail("check anna", "check bert")
    assert wave.phases()["prepare"] == "failed"
    wave.join("late")
    assert wave.jobs() == ["check late"]
    assert wave.finish() == "completed"
    assert wave.members() == {"anna": "failed", "bert": "failed", "late": "completed"}


def test_catch_up_covers_phases_skipped_because_nobody_was_there(wave: Wave) -> None:
    started(wave, keys=())
    assert wave.phases()["prepare"] == "skipped: empty"
    wave.join("late")
    assert wave.jobs() == ["check late"]
    assert wave.finish() == "completed"
    assert wave.steps("late") == {"check": "succeeded", "move": "succeeded"}


def test_a_batch_stays_open_for_who_is_catching_up(wave: Wave) -> None:
    started(wave)
    wave.succeed("check anna", "check bert")
    wave.tick(minutes=30)
    wave.jobs()
    wave.join("late")
    wave.succeed("move anna", "move bert")
    assert wave.phases() == {"prepare": "completed", "move": "dispatched"}
    assert wave.batch_status == "active"
    wave.succeed("check late")
    assert wave.finish() == "completed"


def test_a_batch_stays_open_for_who_has_joined_and_not_been_seen(wave: Wave) -> None:
    started(wave, runbook({"move T-30m": ["move"]}), ("anna",))
    wave.jobs()
    wave.join("late")
    assert wave.lose_events() == 1
    wave.succeed("move anna")
    assert wave.batch_status == "active"
    wave.reconcile(minutes=5)
    assert wave.jobs() == ["move late"]
    assert wave.finish() == "completed"


def test_a_member_added_that_comes_twice_starts_once(wave: Wave) -> None:
    started(wave)
    wave.join("late")
    wave.pump()
    wave.redeliver(wave.events("member-added") * 2)
    assert wave.jobs() == ["check anna", "check bert", "check late"]
    assert wave.finish() == "completed"


def test_who_comes_back_starts_afresh(wave: Wave) -> None:
    started(wave)
    wave.succeed("check anna")
    left(wave)
    wave.succeed("unroute anna")
    wave.join("anna", data={"anna": {"Mail": "new@x"}})
    assert wave.member("anna")["generation"] == 2
    assert wave.jobs() == ["check anna", "check bert"]
    assert wave.finish() == "completed"
    assert wave.members() == {"anna": "completed", "bert": "completed"}
    assert wave.steps("anna", generation=1) == {"check": "succeeded"}
    assert wave.steps("anna", generation=2) == {"check": "succeeded", "move": "succeeded"}


def test_who_comes_back_waits_until_the_steps_of_leaving_have_ended(wave: Wave) -> None:
    started(wave)
    wave.jobs()
    left(wave)
    wave.join("anna")
    assert wave.jobs() == ["check anna", "check bert"], "the job of the first stay still runs"
    wave.succeed("check anna")
    assert wave.jobs() == ["check bert", "unroute anna"]
    wave.succeed("unroute anna")
    assert wave.jobs() == ["check anna", "check bert"]
    assert wave.job("check anna").correlation_data.step_execution_id == wave.step("check anna")["id"]
    assert wave.finish() == "completed"


def test_who_comes_back_waits_for_the_job_of_the_first_stay_also_without_steps_of_leaving(wave: Wave) -> None:
    started(wave, runbook(PHASES))
    first = wave.job("check anna").job_id
    left(wave)
    wave.join("anna")
    assert wave.job("check anna").job_id == first
    wave.succeed("check anna")
    assert wave.job("check anna").job_id != first
    assert wave.finish() == "completed"


def test_who_comes_back_after_a_failed_removal_starts_afresh(wave: Wave) -> None:
    started(wave)
    wave.succeed("check anna")
    left(wave)
    wave.join("anna")
    wave.fail("unroute anna")
    assert wave.jobs() == ["check anna", "check bert"]
    assert wave.finish() == "completed"


def test_messages_of_another_generation_are_ignored(wave: Wave) -> None:
    started(wave)
    wave.succeed("check anna")
    wave.join("late")
    left(wave)
    gone = wave.events("member-removed")
    wave.succeed("unroute anna")
    wave.join("anna")
    wave.redeliver(gone)
    assert wave.members()["anna"] == "active"
    assert wave.jobs() == ["check anna", "check bert", "check late"]
    back = [each for each in wave.events("member-added") if '"generation":2' in each.body]
    wave.succeed("check anna")
    left(wave)
    wave.succeed("unroute anna")
    wave.redeliver(back)
    assert wave.members()["anna"] == "removed"
    assert wave.finish() == "completed"


def test_a_late_result_of_an_earlier_stay_changes_nothing_of_the_new_one(wave: Wave) -> None:
    started(wave, runbook({"move T-30m": [step("check", output_params={"Out": "Id"}), "move"]}))
    wave.jobs()
    left(wave)
    wave.join("anna")
    wave.succeed("check anna", result={"Id": "of the first stay"})
    assert wave.member("anna")["worker_data_json"] is None
    assert wave.steps("anna") == {"check": "dispatched", "move": "pending"}
    assert wave.finish() == "completed"


def test_what_a_removal_step_reports_is_not_remembered_for_the_next_stay(wave: Wave) -> None:
    unroute = step("unroute", output_params={"Unrouted": "Id"})
    started(wave, runbook(PHASES, on_member_removed=[unroute]))
    wave.succeed("check anna")
    left(wave)
    wave.join("anna")
    wave.succeed("unroute anna", result={"Id": "of the first stay"})
    assert wave.member("anna")["worker_data_json"] is None
    assert wave.finish() == "completed"


def test_who_is_back_before_the_removal_was_handled_leaves_first(wave: Wave) -> None:
    started(wave, runbook({"prepare T-30m": [step("check", poll=POLL)], "move T-0": ["move"]}))
    wave.poll("check anna", "check bert")
    wave.leave("anna")
    wave.join("anna")
    wave.pump()
    wave.join("anna")
    assert wave.jobs() == ["check anna"]
    assert wave.steps("anna", generation=1) == {"check": "cancelled"}
    assert wave.finish() == "completed"
    assert wave.members() == {"anna": "completed", "bert": "completed"}


def test_who_failed_and_is_still_in_the_source_stays_failed(wave: Wave) -> None:
    started(wave)
    wave.fail("check anna")
    wave.join("anna")
    assert wave.members()["anna"] == "failed"
    assert wave.events("member-added") == []
    assert wave.jobs() == ["check bert"]
    assert wave.finish() == "completed"


def test_who_is_there_already_is_not_added_again(wave: Wave) -> None:
    started(wave)
    wave.join("ANNA")
    assert sorted(wave.members()) == ["anna", "bert"]
    assert wave.events("member-added") == []
    assert wave.finish() == "completed"


def test_nobody_joins_a_batch_that_has_ended(wave: Wave) -> None:
    started(wave, runbook({"move T-30m": ["move"]}), ("anna", "bert"))
    left(wave, "bert")
    wave.succeed("move anna", "move bert")
    assert wave.batch_status == "completed"
    wave.join("late")
    wave.join("bert")
    assert wave.members() == {"anna": "completed", "bert": "removed"}
    assert wave.rows(schema.batch_members, catch_up_due=True) == []
    assert wave.ended() == "completed"
