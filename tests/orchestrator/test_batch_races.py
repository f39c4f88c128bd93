"""Batches that are cancelled, left, joined or taken over while results are being handled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.store import batches as batch_store
from matoolkit.store import creation, schema
from tests.orchestrator.rivals import Moment, events, results
from tests.orchestrator.runbooks import RETRY, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave
    from tests.orchestrator.rivals import Duel

COMMITTING, COMMITTED = Moment.BEFORE_COMMIT, Moment.AFTER_COMMIT
TWO_STEPS = runbook({"move T-0": ["move", "tell"]}, on_member_removed=["unroute"])


def started(duel: Duel, text: str = TWO_STEPS, *keys: str) -> Wave:
    wave = duel.wave
    wave.publish(text)
    wave.batch(*(keys or ("anna",)), minutes=0)
    wave.tick()
    wave.jobs()
    duel.begin()
    return wave


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_batch_is_cancelled_as_a_result_is_handled(duel: Duel, at: Any) -> None:
    wave = started(duel)
    wave.answer("move anna")
    duel.fight(results, at, lambda each: each.cancel())
    assert wave.steps("anna") == {"move": "succeeded", "tell": "cancelled"}
    wave.succeed("tell anna")
    assert wave.jobs() == []
    assert wave.ended() == "cancelled"


@pytest.mark.parametrize("at", [batch_store.END, COMMITTING, COMMITTED])
def test_a_result_is_handled_as_its_batch_is_cancelled(duel: Duel, at: Any) -> None:
    wave = started(duel)
    wave.answer("move anna")
    duel.fight(lambda each: each.cancel(), at, results)
    assert wave.steps("anna") == {"move": "cancelled", "tell": "cancelled"}
    assert wave.jobs() == []
    assert wave.ended() == "cancelled"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_batch_is_cancelled_as_it_ends(duel: Duel, at: Any) -> None:
    """It is one or the other, for the batch, its phases and its members alike."""
    wave = started(duel, runbook({"move T-0": ["move"]}))
    wave.answer("move anna")
    duel.fight(results, at, lambda each: each.cancel(), passing=1)
    assert wave.phases() == {"move": "completed"}
    assert wave.ended() == "completed"
    assert wave.members() == {"anna": "completed"}


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_member_leaves_as_its_result_is_handled(duel: Duel, at: Any) -> None:
    wave = started(duel)
    wave.answer("move anna")
    duel.fight(results, at, lambda each: each.leave("anna"))
    wave.pump()
    assert wave.steps("anna") == {"move": "succeeded", "tell": "cancelled"}
    assert wave.jobs() == ["tell anna"]
    wave.succeed("tell anna")
    assert wave.jobs() == ["unroute anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("at", [creation.REMOVE, COMMITTING, COMMITTED])
def test_a_result_is_handled_as_its_member_leaves(duel: Duel, at: Any) -> None:
    wave = started(duel)
    wave.answer("move anna")
    duel.fight(lambda each: each.leave("anna"), at, results)
    wave.pump()
    assert wave.steps("anna") == {"move": "cancelled", "tell": "cancelled"}
    assert wave.jobs() == ["unroute anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("first", [events, results], ids=["the removal first", "the result first"])
@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_member_removed_and_the_late_result_are_handled_at_once(duel: Duel, first: Any, at: Any) -> None:
    """Whoever comes second sees that the hands are still and begins the steps of leaving, once."""
    wave = started(duel, TWO_STEPS, "anna", "bert")
    wave.leave("anna")
    wave.answer("move anna")
    duel.fight(first, at, results if first is events else events)
    assert wave.jobs() == ["move bert", "unroute anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_somebody_joins_as_the_batch_ends(duel: Duel, at: Any) -> None:
    """They come too late and are not in it, instead of being in it for ever."""
    wave = started(duel, runbook({"move T-0": ["move"]}))
    wave.answer("move anna")
    duel.fight(results, at, lambda each: each.join("late"), passing=1)
    assert wave.members() == {"anna": "completed"}
    assert wave.ended() == "completed"


@pytest.mark.parametrize("at", [creation.ADD_MEMBERS, COMMITTING, COMMITTED])
def test_a_batch_is_over_as_somebody_joins(duel: Duel, at: Any) -> None:
    wave = started(duel, runbook({"move T-0": ["move"]}))
    wave.answer("move anna")
    duel.fight(lambda each: each.join("late"), at, results)
    assert wave.batch_status == "active"
    assert wave.jobs() == ["move late"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_somebody_comes_back_as_the_batch_ends(duel: Duel, at: Any) -> None:
    wave = started(duel, runbook({"move T-0": ["move"]}), "anna", "bert")
    wave.leave("bert")
    wave.succeed("move bert")
    wave.answer("move anna")
    duel.fight(results, at, lambda each: each.join("bert"), passing=1)
    assert wave.members() == {"anna": "completed", "bert": "removed"}
    assert wave.ended() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_new_version_takes_over_as_the_batch_ends(duel: Duel, at: Any) -> None:
    wave = started(duel, runbook({"move T-0": ["move"]}))
    wave.publish(runbook({"move T-0": ["move-2"]}))
    wave.answer("move anna")
    duel.fight(results, at, lambda each: each.change_version(), passing=1)
    assert wave.phases() == {"move": "completed"}
    assert wave.ended() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_batch_is_over_as_a_new_version_takes_over(duel: Duel, at: Any) -> None:
    wave = started(duel, runbook({"move T-0": ["move"]}))
    wave.publish(runbook({"move T-0": ["move-2"]}))
    wave.answer("move anna")
    duel.fight(lambda each: each.change_version(), at, results)
    assert wave.phases() == {"move": "completed", "move v2": "pending"}
    wave.tick()
    assert wave.jobs() == ["move-2 anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_retry_check_comes_as_its_batch_is_cancelled(duel: Duel, at: Any) -> None:
    wave = duel.wave
    wave.publish(runbook({"move T-0": [step("move", retry=RETRY)]}))
    wave.batch("anna", minutes=0)
    wave.tick()
    wave.fail("move anna")
    duel.begin()
    wave.clock.advance(minutes=1)
    duel.fight(lambda each: each.cancel(), at, events)
    assert wave.jobs() == []
    assert wave.steps("anna") == {"move": "cancelled"}
    assert wave.ended() == "cancelled"
    assert wave.row(schema.batches)["status"] == "cancelled"
