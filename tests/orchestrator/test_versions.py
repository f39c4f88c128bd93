"""A new runbook version under a batch: what is replaced, what is run again, and what goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, RETRY, init_step, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

PHASES = {"prepare T-30m": ["check"], "move T-0": ["move"]}
LATER = {"prepare T-30m": ["check-2"], "move T-0": ["move-2"]}


def prepared(wave: Wave, text: str | None = None) -> None:
    """The first phase is done, the second is to come."""
    wave.publish(text or runbook(PHASES))
    wave.batch("anna", minutes=30)
    wave.tick()
    wave.succeed("check anna")


def test_pending_phases_are_superseded(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook(LATER), ignore=True)
    assert wave.change_version()
    assert wave.phases() == {
        "prepare": "completed",
        "move": "superseded",
        "prepare v2": "skipped: repeated",
        "move v2": "pending",
    }
    assert wave.finish() == "completed"
    assert wave.steps("anna") == {"check": "succeeded", "move-2": "succeeded"}


def test_under_rerun_phases_that_are_past_due_run_again(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook(LATER))
    wave.change_version()
    assert wave.phases()["prepare v2"] == "pending"
    wave.tick()
    assert wave.jobs() == ["check-2 anna"]
    assert wave.finish() == "completed"
    assert list(wave.steps("anna")) == ["check", "check-2", "move-2"]


def test_under_ignore_phases_that_are_past_due_are_skipped(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook({"announce T-1h": ["tell"], **LATER}), ignore=True)
    wave.change_version()
    assert wave.phases()["announce v2"] == "skipped: overdue"
    assert wave.finish() == "completed"


def test_under_ignore_a_phase_that_ran_under_the_same_name_is_not_repeated_though_it_moved(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook({"Prepare T-10m": ["check-2"], "move T-0": ["move"]}), ignore=True)
    wave.change_version()
    assert wave.phases()["Prepare v2"] == "skipped: repeated"
    assert wave.finish() == "completed"
    assert wave.steps("anna") == {"check": "succeeded", "move": "succeeded"}


def test_a_superseded_phase_under_the_same_name_does_run(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook(LATER), ignore=True)
    wave.change_version()
    wave.publish(runbook(PHASES), ignore=True)
    wave.change_version()
    assert wave.phases()["move v3"] == "pending"
    assert wave.finish() == "completed"
    assert wave.steps("anna") == {"check": "succeeded", "move": "succeeded"}


def test_who_was_through_takes_part_in_what_the_new_version_adds(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch("anna", "bert", minutes=0)
    wave.tick()
    wave.succeed("move anna")
    assert wave.members() == {"anna": "completed", "bert": "active"}
    wave.publish(runbook({"move T-0": ["move"], "tell T-0": ["tell"]}), ignore=False)
    wave.change_version()
    assert wave.members() == {"anna": "active", "bert": "active"}
    assert wave.finish() == "completed"
    assert [row["step_name"] for row in wave.rows(schema.step_executions, batch_member_id=wave.member("anna")["id"])]


def test_a_version_that_adds_nothing_leaves_who_is_through_alone(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch("anna", "bert", minutes=0)
    wave.tick()
    wave.succeed("move anna")
    wave.publish(runbook({"move T-0": ["move-2"]}), ignore=True)
    wave.change_version()
    assert wave.members() == {"anna": "completed", "bert": "active"}
    assert wave.finish() == "completed"


def test_polls_and_retries_of_the_old_version_go_on(wave: Wave) -> None:
    wave.publish(runbook({"prepare T-30m": [step("check", poll=POLL, retry=RETRY)], "move T-0": ["move"]}))
    wave.batch("anna", "bert", minutes=30)
    wave.tick()
    wave.poll("check anna")
    wave.fail("check bert")
    wave.publish(runbook(LATER), ignore=True)
    wave.change_version()
    wave.tick(minutes=2)
    assert wave.jobs() == ["check anna", "check bert"]
    assert {wave.job(label).correlation_data.runbook_version for label in wave.jobs()} == {1}
    wave.succeed("check anna", "check bert", result={"complete": True})
    assert wave.phases()["prepare"] == "completed"
    assert wave.finish() == "completed"


def test_steps_of_the_old_version_are_done_before_phases_of_the_new_one(wave: Wave) -> None:
    wave.publish(runbook({"prepare T-30m": ["check", "copy"], "move T-0": ["move"]}))
    wave.batch("anna", minutes=30)
    wave.tick()
    wave.publish(runbook(LATER))
    wave.change_version()
    wave.tick()
    done = []
    for _ in range(3):
        done += wave.jobs()
        wave.succeed(*wave.jobs())
    assert done == ["check anna", "copy anna", "check-2 anna"]
    assert wave.finish() == "completed"


def test_rerun_init_holds_the_new_phases_until_it_is_done(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook(LATER, init=["open"]), rerun_init=True)
    wave.change_version()
    wave.tick(minutes=30)
    assert wave.phases()["prepare v2"] == "pending"
    assert wave.jobs() == ["open"]
    assert wave.batch_status == "active"
    wave.succeed("open")
    wave.tick()
    assert wave.jobs() == ["check-2 anna"]
    assert wave.finish() == "completed"


def test_a_failed_rerun_of_init_is_last_error_and_not_the_end(wave: Wave) -> None:
    prepared(wave)
    again = init_step("open", on_failure="close")
    wave.publish(runbook(LATER, init=[again, "fill"], rollbacks={"close": [init_step("shut")]}), rerun_init=True)
    wave.change_version()
    wave.fail("open", message="no rights")
    error = wave.row(schema.runbooks, version=2)["last_error"]
    assert "init step 'open' failed" in error
    assert "no rights" in error
    assert wave.batch_status == "active"
    wave.tick()
    assert wave.jobs() == ["check-2 anna", "shut"]
    assert wave.step("fill")["status"] == "cancelled"
    assert wave.finish() == "completed"


def test_a_rerun_of_init_is_dropped_when_the_next_version_comes(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook(LATER, init=["open"]), rerun_init=True)
    wave.change_version()
    wave.jobs()
    wave.publish(runbook(LATER, init=["open-3"]), rerun_init=True)
    wave.change_version()
    assert wave.jobs() == ["open", "open-3"]
    wave.succeed("open")
    wave.tick()
    assert wave.jobs() == ["open-3"]
    assert wave.finish() == "completed"
    assert wave.step("open")["status"] == "cancelled"


def test_without_rerun_init_the_new_version_does_not_repeat_it(wave: Wave) -> None:
    wave.publish(runbook(PHASES, init=["open"]))
    wave.batch("anna", minutes=30)
    wave.succeed("open")
    wave.publish(runbook(LATER, init=["open-2"]))
    wave.change_version()
    wave.tick()
    assert wave.jobs() == ["check-2 anna"]
    assert wave.finish() == "completed"


def test_a_batch_stays_open_until_the_rerun_of_init_is_over(wave: Wave) -> None:
    prepared(wave)
    wave.publish(runbook(PHASES, init=["open"]), ignore=True, rerun_init=True)
    wave.tick(minutes=30)
    wave.change_version()
    wave.succeed("move anna")
    assert wave.batch_status == "active"
    wave.succeed("open")
    assert wave.ended() == "completed"


def test_a_removal_follows_the_version_under_which_it_was_announced(wave: Wave) -> None:
    prepared(wave, runbook(PHASES, on_member_removed=["unroute"]))
    wave.leave("anna")
    wave.publish(runbook(LATER, on_member_removed=["unroute-2"]))
    wave.change_version()
    assert wave.jobs() == ["unroute anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("is_manual", [False, True])
def test_manual_batches_are_left_alone(wave: Wave, is_manual: bool) -> None:
    prepared(wave)
    wave.forge(schema.batches, wave.batch_id, is_manual=is_manual)
    wave.publish(runbook(LATER), ignore=True)
    assert wave.change_version() is not is_manual
    assert wave.finish() == "completed"


def test_a_batch_goes_over_once_and_only_while_it_is_active(wave: Wave) -> None:
    wave.publish(runbook(PHASES, init=["open"]))
    wave.batch("anna", minutes=30)
    wave.publish(runbook(LATER), ignore=True)
    assert not wave.change_version(), "not during init"
    wave.succeed("open")
    assert wave.change_version()
    assert not wave.change_version()
    assert wave.finish() == "completed"
    wave.publish(runbook(PHASES))
    assert not wave.change_version()
