"""Reconciliation: each kind of stuck state, forged or made by losing a message, is found and moved on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.store import schema, stuck
from matoolkit.store.errors import RuleBroken
from matoolkit.store.states import BatchStatus, MemberStatus, PhaseStatus
from tests.orchestrator.runbooks import POLL, RETRY, init_step, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

STEPS = runbook({"move T-0": ["move", "check"]})
STALLED: dict[str, Any] = {"minutes": 3}
"""Longer than what may have been under way is left alone."""


def started(wave: Wave, text: str = STEPS, *keys: str) -> None:
    wave.publish(text)
    wave.batch(*(keys or ("anna",)), minutes=0)
    wave.tick()


def test_a_healthy_wave_gives_it_nothing_to_do(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [step("move", retry=RETRY, poll=POLL)]}), "anna", "bert", "carl")
    wave.fail("move anna")
    wave.poll("move bert")
    wave.jobs()
    wave.events()
    before = wave.rows(schema.step_executions)
    for _ in range(3):
        wave.reconcile()
    assert wave.rows(schema.step_executions) == before
    assert wave.events() == []
    assert wave.finish() == "completed"


def test_a_phase_nobody_closed(wave: Wave) -> None:
    started(wave, STEPS, "anna")
    wave.succeed("move anna")
    wave.succeed("check anna")
    phase = wave.row(schema.phase_executions)["id"]
    wave.forge(schema.batches, wave.batch_id, status=BatchStatus.ACTIVE, completed_at=None)
    wave.forge(schema.phase_executions, phase, status=PhaseStatus.DISPATCHED, completed_at=None)
    wave.reconcile()
    assert wave.phases() == {"move": "completed"}
    assert wave.ended() == "completed"


def test_a_batch_nobody_closed(wave: Wave) -> None:
    started(wave, STEPS, "anna")
    wave.succeed("move anna")
    wave.succeed("check anna")
    wave.forge(schema.batches, wave.batch_id, status=BatchStatus.ACTIVE, completed_at=None)
    wave.forge(schema.batch_members, wave.member("anna")["id"], status=MemberStatus.ACTIVE, completed_at=None)
    wave.reconcile()
    assert wave.ended() == "completed"
    assert wave.members() == {"anna": "completed"}


def test_an_idle_member(wave: Wave) -> None:
    started(wave)
    wave.jobs()
    wave.held.clear()
    done = {"status": "succeeded", "job_out": False, "completed_at": wave.now}
    wave.forge(schema.step_executions, wave.step("move anna")["id"], **done)
    wave.reconcile()
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("kind", ["step", "init", "rollback", "removal"])
def test_a_missed_retry_check(wave: Wave, kind: str) -> None:
    flaky = init_step("flaky", retry=RETRY) if kind == "init" else step("flaky", retry=RETRY)
    moving = {"step": flaky, "rollback": step("move", on_failure="undo")}.get(kind, "move")
    wave.publish(
        runbook(
            {"move T-0": [moving]},
            init=[flaky] if kind == "init" else (),
            rollbacks={"undo": [flaky]},
            on_member_removed=[flaky] if kind == "removal" else (),
        )
        if kind != "init"
        else runbook({"move T-0": ["move"]}, init=[flaky])
    )
    wave.batch("anna", minutes=0)
    wave.tick()
    if kind == "rollback":
        wave.fail("move anna")
    if kind == "removal":
        wave.succeed_and_leave("anna")
    label = "flaky" if kind == "init" else "flaky anna"
    wave.fail(label)
    assert wave.lose_events() == 1
    wave.reconcile(seconds=61)
    assert wave.jobs() == [], "its message may only be late"
    wave.reconcile(minutes=3)
    assert wave.job(label).job_id.endswith("-retry-1")
    wave.finish()


def test_a_missed_member_removed(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [step("move", retry=RETRY)]}, on_member_removed=["unroute"]))
    wave.fail("move anna")
    wave.leave("anna")
    wave.lose_events()
    wave.reconcile()
    assert wave.steps("anna") == {"move": "cancelled"}
    assert wave.jobs() == ["unroute anna"]
    assert wave.finish() == "completed"


def test_a_missed_member_added(wave: Wave) -> None:
    started(wave)
    wave.join("late")
    wave.lose_events()
    wave.reconcile()
    assert wave.jobs() == ["move anna", "move late"]
    assert wave.finish() == "completed"


def test_a_missed_batch_init(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=["open", "fill"]))
    wave.batch("anna", minutes=0)
    assert wave.lose_events() == 1
    wave.reconcile()
    assert wave.jobs() == ["open"]
    assert wave.finish() == "completed"


def test_a_missed_follow_up_of_init(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=["open", "fill"]))
    wave.batch("anna", minutes=0)
    wave.jobs()
    wave.held.clear()
    wave.forge(
        schema.init_executions, wave.step("open")["id"], status="succeeded", job_out=False, completed_at=wave.now
    )
    wave.reconcile()
    assert wave.jobs() == ["fill"]
    wave.held.clear()
    wave.forge(
        schema.init_executions, wave.step("fill")["id"], status="succeeded", job_out=False, completed_at=wave.now
    )
    wave.reconcile()
    assert wave.batch_status == "active"
    assert wave.finish() == "completed"


def test_a_missed_rerun_of_init(wave: Wave) -> None:
    started(wave)
    wave.publish(runbook({"move T-0": ["move"]}, init=["open"]), ignore=True, rerun_init=True)
    wave.change_version()
    wave.lose_events()
    wave.reconcile()
    assert wave.jobs() == ["move anna", "open"]
    assert wave.finish() == "completed"


def test_a_missed_phase_due(wave: Wave) -> None:
    wave.publish(STEPS)
    wave.batch("anna", minutes=0)
    wave.announce()
    assert wave.lose_events() == 1
    wave.reconcile(seconds=60)
    assert wave.jobs() == [], "its message may only be late"
    wave.reconcile(**STALLED)
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


def test_a_stalled_expansion(wave: Wave) -> None:
    wave.boot(chunk_size=1)
    wave.publish(STEPS)
    wave.batch("anna", "bert", minutes=0)
    wave.announce()
    assert wave.orchestrators[0].handle_events() == 1
    assert wave.lose_events() == 1
    wave.reconcile(**STALLED)
    assert wave.jobs() == ["move anna", "move bert"]
    assert wave.finish() == "completed"


def test_a_stalled_phase_behind_another(wave: Wave) -> None:
    wave.publish(runbook({"prepare T-5m": ["check"], "move T-0": ["move"]}))
    wave.batch("anna", minutes=0)
    wave.announce()
    assert wave.lose_events() == 2
    wave.reconcile(**STALLED)
    assert wave.jobs() == ["check anna"]
    assert {row["expanded_at"] for row in wave.rows(schema.phase_executions)} == {wave.now}
    assert wave.finish() == "completed"


@pytest.mark.parametrize("kind", ["rollback", "removal"])
def test_a_waiting_sequence(wave: Wave, kind: str) -> None:
    more: dict[str, Any] = {"on_member_removed": ["first", "second"]} if kind == "removal" else {}
    move = step("move", on_failure="undo")
    started(wave, runbook({"move T-0": [move]}, rollbacks={"undo": ["first", "second"]}, **more))
    if kind == "rollback":
        wave.fail("move anna")
    else:
        wave.succeed_and_leave("anna")
    wave.jobs()
    wave.held.clear()
    table = schema.rollback_executions if kind == "rollback" else schema.removal_executions
    done = {"status": "succeeded", "job_out": False, "completed_at": wave.now}
    wave.forge(table, wave.step("first anna")["id"], **done)
    wave.reconcile()
    assert wave.jobs() == ["second anna"]
    wave.finish()


def test_a_waiting_sequence_of_a_failed_init(wave: Wave) -> None:
    first = init_step("open", on_failure="close")
    rollbacks = {"close": [init_step("shut"), init_step("tell")]}
    wave.publish(runbook({"move T-0": ["move"]}, init=[first], rollbacks=rollbacks))
    wave.batch("anna")
    wave.fail("open")
    wave.jobs()
    wave.held.clear()
    row = wave.step("shut")
    wave.forge(schema.rollback_executions, row["id"], status="succeeded", job_out=False, completed_at=wave.now)
    wave.reconcile()
    assert wave.jobs() == ["tell"]
    assert wave.finish() == "failed"


def test_a_rollback_whose_end_nobody_noted(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [step("move", on_failure="undo")]}, rollbacks={"undo": ["unmove"]}))
    wave.fail("move anna")
    wave.succeed("unmove anna")
    assert wave.ended() == "failed"


def test_a_batch_that_was_cancelled_is_wound_up(wave: Wave) -> None:
    people = [f"user{number}" for number in range(4)]
    started(wave, STEPS, *people)
    wave.succeed(*(f"move {key}" for key in people))
    held = wave.jobs()
    wave.cancel(size=1)
    wave.reconcile()
    assert not wave.row(schema.batches, id=wave.batch_id)["winding_up"]
    wave.succeed(*held)
    assert wave.ended() == "cancelled"


def test_a_batch_whose_init_failed_is_wound_up(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=["open"]))
    wave.batch("anna")
    wave.fail("open")
    assert wave.members() == {"anna": "active"}
    wave.reconcile()
    assert wave.ended() == "failed"


def test_a_runbook_that_cannot_be_read_holds_up_only_its_own_batches(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=["open"]))
    broken = wave.batch("mallory", minutes=5)
    wave.lose_events()
    version = wave.publish(STEPS)
    batch = wave.batch("anna", minutes=0)
    wave.jobs()
    wave.join("late")
    wave.lose_events()
    wave.announce()
    wave.lose_events()
    text = wave.row(schema.runbooks, version=version - 1)
    wave.forge(schema.runbooks, text["id"], yaml_content="no runbook")
    wave.reconcile(**STALLED)
    assert wave.jobs() == ["move anna", "move late"]
    wave.forge(schema.runbooks, text["id"], yaml_content=text["yaml_content"])
    wave.reconcile()
    assert wave.jobs() == ["move anna", "move late", "open"]
    wave.batch_id = broken
    assert wave.finish() == "completed"
    wave.batch_id = batch
    assert wave.ended() == "completed"


def test_a_part_that_fails_keeps_none_of_the_others_from_it(wave: Wave, monkeypatch: pytest.MonkeyPatch) -> None:
    started(wave, STEPS, "anna")
    wave.succeed("move anna")
    wave.succeed("check anna")
    phase = wave.row(schema.phase_executions)["id"]
    wave.forge(schema.batches, wave.batch_id, status=BatchStatus.ACTIVE, completed_at=None)
    wave.forge(schema.phase_executions, phase, status=PhaseStatus.DISPATCHED, completed_at=None)

    def refuse(_tx: object) -> list[int]:
        raise RuleBroken("a row breaks a rule")

    monkeypatch.setattr(stuck, "waiting_for_init", refuse)
    with pytest.raises(RuleBroken):
        wave.reconcile()
    assert wave.ended() == "completed"
