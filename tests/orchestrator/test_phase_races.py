"""Phases that start while something else happens: results of the phase before, the same start, members who join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store import schema
from tests.orchestrator.rivals import Moment, events, results
from tests.orchestrator.runbooks import runbook

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave
    from tests.orchestrator.rivals import Duel

COMMITTING, COMMITTED = Moment.BEFORE_COMMIT, Moment.AFTER_COMMIT
TWO_PHASES = runbook({"prepare T-30m": ["check"], "move T-0": ["move"]})


def prepared(duel: Duel, *keys: str) -> Wave:
    """The earlier phase runs, and its jobs are out."""
    wave = duel.wave
    wave.publish(TWO_PHASES)
    wave.batch(*(keys or ("anna",)), minutes=30)
    wave.tick()
    wave.jobs()
    return wave


def tick(wave: Wave) -> None:
    """The scheduler ticks, and its event is handled."""
    wave.announce()
    events(wave)


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED, batch_store.WITH_PHASES_TO_COME])
def test_a_later_phase_starts_as_the_last_result_of_the_earlier_is_handled(duel: Duel, at: Any) -> None:
    """Nobody is stuck between the two, and nobody has two jobs out."""
    wave = prepared(duel)
    duel.begin()
    wave.announce(minutes=30)
    wave.answer("check anna")
    duel.fight(results, at, events)
    assert wave.jobs() == ["move anna"]
    assert wave.phases() == {"prepare": "completed", "move": "dispatched"}
    wave.succeed("move anna")
    assert wave.ended() == "completed"
    assert wave.members() == {"anna": "completed"}


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED, member_store.READ_CHUNK, phase_store.WRITE_CHUNK])
def test_the_last_result_of_a_phase_is_handled_as_the_later_one_starts(duel: Duel, at: Any) -> None:
    wave = prepared(duel, "anna", "bert")
    wave.succeed("check bert")
    duel.begin()
    wave.announce(minutes=30)
    wave.answer("check anna")
    duel.fight(events, at, results)
    assert wave.jobs() == ["move anna", "move bert"]
    wave.succeed("move anna", "move bert")
    assert wave.ended() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, batch_store.WITH_PHASES_TO_COME, COMMITTED])
def test_the_scheduler_starts_a_later_phase_as_the_last_result_of_the_earlier_is_handled(duel: Duel, at: Any) -> None:
    wave = prepared(duel)
    duel.begin()
    wave.clock.advance(minutes=30)
    wave.answer("check anna")
    duel.fight(results, at, tick)
    wave.pump()
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, member_store.READ_CHUNK, phase_store.WRITE_CHUNK, phase_store.EXPANDED_TO])
@pytest.mark.parametrize("keys", [(), ("anna", "bert")], ids=["nobody", "two members"])
def test_two_who_start_the_same_chunk_start_everybody_once(duel: Duel, keys: tuple[str, ...], at: Any) -> None:
    """Duplicate phase-due messages."""
    wave = duel.wave
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch(*keys, minutes=0)
    duel.begin()
    wave.announce()
    for due in wave.events("phase-due"):
        wave.send_event(due.body, "phase-due")
    if keys or at is not phase_store.WRITE_CHUNK:
        duel.fight(events, at, events)
    assert wave.jobs() == [f"move {key}" for key in keys]
    assert len(wave.rows(schema.step_executions)) == len(keys)
    assert wave.finish() == "completed"


@pytest.mark.parametrize("at", [phase_store.OF_BATCHES, phase_store.WRITE_CATCH_UP, COMMITTING])
def test_a_phase_starts_as_a_late_member_catches_up(duel: Duel, at: Any) -> None:
    """The one does not see the phase run yet, the other not that the member has caught up: it must get its steps."""
    wave = prepared(duel)
    duel.begin()
    wave.join("late")
    wave.events()
    wave.clock.advance(minutes=30)

    def phase_starts(each: Wave) -> None:
        each.announce()
        (due,) = each.events("phase-due")
        while events(each):
            pass
        assert due.body

    duel.fight(events, at, phase_starts)
    assert wave.jobs() == ["check anna", "check late"]
    wave.succeed("check anna", "check late")
    assert wave.jobs() == ["move anna", "move late"]
    assert wave.finish() == "completed"
    assert wave.steps("late") == {"check": "succeeded", "move": "succeeded"}


@pytest.mark.parametrize("at", [member_store.READ_CHUNK, phase_store.WRITE_CHUNK, COMMITTING])
def test_a_late_member_catches_up_as_a_phase_starts(duel: Duel, at: Any) -> None:
    wave = prepared(duel)
    duel.begin()
    wave.announce(minutes=30)
    wave.join("late")
    duel.fight(events, at, events)
    assert wave.jobs() == ["check anna", "check late"]
    wave.succeed("check anna", "check late")
    assert wave.jobs() == ["move anna", "move late"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_chunk_starts_as_the_batch_is_cancelled(duel: Duel, at: Any) -> None:
    wave = duel.wave
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch("anna", minutes=0)
    duel.begin()
    wave.announce()
    duel.fight(events, at, lambda each: each.cancel())
    held = wave.jobs()
    assert wave.phases() == {"move": "cancelled"}
    wave.succeed(*held)
    assert wave.jobs() == []
    assert wave.ended() == "cancelled"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_batch_is_cancelled_as_a_chunk_starts(duel: Duel, at: Any) -> None:
    wave = duel.wave
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch("anna", minutes=0)
    duel.begin()
    wave.announce()
    duel.fight(lambda each: each.cancel(), at, events)
    assert wave.jobs() == []
    assert wave.ended() == "cancelled"
