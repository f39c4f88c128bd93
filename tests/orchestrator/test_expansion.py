"""The start of a phase, cut into chunks: everybody is started exactly once, and nothing closes before the last."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

ONE_PHASE = runbook({"move T-0": ["move"]})


def announced(wave: Wave, number: int, *, chunk: int, text: str = ONE_PHASE) -> None:
    wave.boot(chunk_size=chunk)
    wave.publish(text)
    wave.batch(*(f"user{place:04}" for place in range(number)), minutes=0)
    wave.announce()


def handled(wave: Wave) -> None:
    """One event is handled, and no more."""
    assert wave.orchestrators[0].handle_events() == 1


def test_a_large_phase_starts_everybody_exactly_once(wave: Wave) -> None:
    announced(wave, 1203, chunk=100)
    assert len(wave.jobs()) == 1203
    assert len(wave.events("phase-due")) == 13
    started = Counter(job.body.parameters["Key"] for job in wave.every_job)
    assert set(started.values()) == {1}
    wave.succeed(*wave.jobs())
    assert wave.ended() == "completed"
    assert Counter(wave.members().values()) == {"completed": 1203}


def test_a_phase_whose_size_is_a_multiple_of_the_chunk_ends_with_an_empty_one(wave: Wave) -> None:
    announced(wave, 4, chunk=2)
    assert len(wave.jobs()) == 4
    assert len(wave.events("phase-due")) == 3
    assert wave.finish() == "completed"


def test_a_phase_cannot_close_before_it_is_written_for_everybody(wave: Wave) -> None:
    announced(wave, 3, chunk=2)
    handled(wave)
    following = wave.events("phase-due")[1:]
    wave.lose_events()
    wave.succeed("move user0000", "move user0001")
    wave.orchestrators[0].reconcile()
    assert wave.phases() == {"move": "dispatched"}
    assert wave.members()["user0000"] == "active", "nobody is through while phases are being written"
    wave.redeliver(following)
    assert wave.jobs() == ["move user0002"]
    assert wave.finish() == "completed"


def test_duplicate_phase_due_messages_start_everybody_once(wave: Wave) -> None:
    """The reference's race."""
    announced(wave, 3, chunk=100)
    due = wave.events("phase-due")
    wave.redeliver(due * 3)
    assert len(wave.jobs()) == 3
    wave.succeed("move user0000")
    wave.redeliver(due)
    assert wave.jobs() == ["move user0001", "move user0002"]
    assert len(wave.rows(schema.step_executions)) == 3
    assert wave.finish() == "completed"
    wave.redeliver(due)
    assert wave.ended() == "completed"


def test_a_chunk_whose_message_comes_again_is_not_started_again(wave: Wave) -> None:
    announced(wave, 5, chunk=2)
    handled(wave)
    first, second = wave.events("phase-due")
    wave.redeliver([first, second, second, first])
    assert len(wave.jobs()) == 5
    chunks = [row["expanded_to_member_id"] for row in wave.rows(schema.phase_executions)]
    assert chunks == [wave.member("user0004")["id"]]
    assert wave.finish() == "completed"


def test_who_joins_while_a_phase_is_written_starts_once(wave: Wave) -> None:
    announced(wave, 3, chunk=2)
    handled(wave)
    wave.join("late")
    assert wave.jobs() == ["move late", "move user0000", "move user0001", "move user0002"]
    assert wave.finish() == "completed"


def test_who_joined_and_was_started_before_its_chunk_came_starts_once(wave: Wave) -> None:
    announced(wave, 3, chunk=2)
    handled(wave)
    following = wave.events("phase-due")[1:]
    wave.lose_events()
    wave.join("late")
    wave.pump()
    assert wave.steps("late") == {"move": "dispatched"}
    wave.redeliver(following)
    assert wave.jobs() == ["move late", "move user0000", "move user0001", "move user0002"]
    assert wave.finish() == "completed"


def test_who_left_before_its_chunk_came_is_not_started(wave: Wave) -> None:
    announced(wave, 4, chunk=2)
    handled(wave)
    wave.leave("user0003")
    assert wave.jobs() == ["move user0000", "move user0001", "move user0002"]
    assert wave.finish() == "completed"


def test_a_later_phase_waits_until_the_earlier_is_written(wave: Wave) -> None:
    announced(wave, 5, chunk=2, text=runbook({"prepare T-0": ["check"], "move T-0": ["move"]}))
    assert wave.jobs() == [f"check user000{number}" for number in range(5)]
    assert {row["expanded_at"] for row in wave.rows(schema.phase_executions)} == {wave.now}
    assert wave.finish() == "completed"


def test_a_member_that_cannot_start_does_not_hold_up_its_chunk(wave: Wave) -> None:
    needy = step("move", params={"Key": "{{Key}}", "Mail": "{{Mail}}"})
    wave.boot(chunk_size=2)
    wave.publish(runbook({"move T-0": [needy]}))
    wave.batch("anna", "poor", "bert", minutes=0, data={key: {"Mail": "x"} for key in ("anna", "bert")})
    wave.tick()
    assert wave.jobs() == ["move anna", "move bert"]
    assert wave.finish() == "completed"
