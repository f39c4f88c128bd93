"""Several schedulers: one leads, another takes over, and who has lost the lease changes nothing more."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.batches import membership
from matoolkit.batches.announcing import Announcer
from matoolkit.clock import ManualClock
from matoolkit.scheduler import Scheduler, Settings
from matoolkit.scheduler.errors import LeaseLost
from matoolkit.scheduler.lease import NAME, Lease
from matoolkit.store import leases, schema
from tests.orchestrator.post import START
from tests.scheduler.town import LEAVING, PLAIN

if TYPE_CHECKING:
    from matoolkit.store.database import Database
    from tests.scheduler.town import Town

_DURATION = timedelta(seconds=30)


def test_one_leads_and_the_other_waits(town: Town) -> None:
    other = town.another("second")
    assert town.scheduler.beat()
    assert not other.beat()
    assert (town.scheduler.leads, other.leads) == (True, False)
    assert list(other.begin()) == []


def test_another_takes_over_within_one_interval_of_the_death(town: Town) -> None:
    other = town.another("second")
    town.found("a", "b")
    assert not other.beat()
    waited = timedelta(0)
    while not other.leads:
        town.clock.advance(seconds=5)
        waited += timedelta(seconds=5)
        due = other.beat()
    assert waited <= Settings().lease + timedelta(seconds=5)
    assert waited < Settings().tick
    assert due, "whoever takes over ticks at once"
    town.only("b")
    other.tick()
    assert town.members() == {"a": "removed", "b": "active"}


def test_a_leader_that_beats_stays_the_leader(town: Town) -> None:
    other = town.another("second")
    for _ in range(30):
        town.clock.advance(seconds=20)
        town.scheduler.beat()
        assert town.scheduler.leads
        assert not other.beat()


def test_a_quiet_beat_writes_nothing(town: Town) -> None:
    town.scheduler.beat()
    with town.database.reading() as tx:
        before = leases.read(tx, NAME)
    town.clock.advance(seconds=5)
    town.scheduler.beat()
    with town.database.reading() as tx:
        assert leases.read(tx, NAME) == before


def test_who_steps_down_is_followed_at_once(town: Town) -> None:
    other = town.another("second")
    town.scheduler.beat()
    town.scheduler.step_down()
    assert not town.scheduler.leads
    assert other.beat()


def test_due_phases_and_polls_are_the_leaders_alone(town: Town) -> None:
    town.found("a")
    other = town.another("second")
    town.clock.advance(hours=2)
    town.scheduler.beat()
    other.beat()
    assert len(town.events("phase-due")) == 1


def test_a_holder_that_lost_its_lease_in_mid_tick_changes_nothing_more(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.scheduler.beat()
    town.only("b")
    town.clock.advance(minutes=5)
    town.scheduler.beat()
    (question,) = town.scheduler.begin()
    stale = town.scheduler.gather(question)
    town.only("a", "b")
    town.clock.advance(minutes=1)
    assert town.another("second").beat()
    town.scheduler.compare(question, stale)
    assert town.members() == {"a": "active", "b": "active"}
    assert town.error is None
    assert not town.scheduler.leads


def test_a_holder_that_lost_it_between_two_chunks_leaves_the_rest(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"user{number}" for number in range(8)]
    town.found(*keys, text=LEAVING)
    town.scheduler = town.another("slow", chunk_size=2)
    town.clock.advance(minutes=1)
    town.only(*keys[:4])
    town.clock.advance(minutes=5)
    town.scheduler.beat()
    (question,) = town.scheduler.begin()
    answer = town.scheduler.gather(question)
    remove = membership.remove_members

    def overtaken(*args: Any, **kwargs: Any) -> list[int]:
        removed = remove(*args, **kwargs)
        town.clock.advance(minutes=1)
        args[0].after_commit(town.another("second").beat)
        return removed

    monkeypatch.setattr(membership, "remove_members", overtaken)
    town.scheduler.compare(question, answer)
    assert sorted(town.members().values()) == ["active"] * 6 + ["removed"] * 2


def test_what_was_asked_under_an_earlier_lead_is_not_applied_under_a_later_one(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.only("b")
    town.clock.advance(minutes=5)
    town.scheduler.beat()
    (question,) = town.scheduler.begin()
    answer = town.scheduler.gather(question)
    town.clock.advance(minutes=1)
    other = town.another("second")
    other.beat()
    town.clock.advance(minutes=1)
    town.scheduler.beat()
    assert town.scheduler.leads
    town.scheduler.compare(question, answer)
    assert town.members() == {"a": "active", "b": "active"}


def test_a_leader_that_was_slow_goes_on_as_long_as_nobody_took_over(town: Town) -> None:
    town.publish(PLAIN)
    town.people("a")
    town.scheduler.beat()
    town.clock.advance(hours=3)
    town.scheduler.tick()
    assert len(town.waves) == 1


def test_an_empty_table_and_a_race_for_it_have_one_winner(database: Database) -> None:
    clock = ManualClock(START)
    first, second = (Lease(database, name, _DURATION, clock) for name in ("first", "second"))
    assert first.hold(clock.now()) is not None
    assert second.hold(clock.now()) is None
    clock.advance(seconds=31)
    assert second.hold(clock.now()) is not None
    assert first.hold(clock.now()) is None


def test_nobody_can_take_it_while_a_transaction_relies_on_it(postgres_database: Database) -> None:
    """On SQLite there is one writer anyway."""
    clock = ManualClock(START)
    first = Lease(postgres_database, "first", _DURATION, clock)
    lead = first.hold(clock.now())
    assert lead is not None
    with postgres_database.transaction() as tx:
        lead.insist(tx)
        with pytest.raises(Exception, match="lock"), postgres_database.transaction() as rival:  # noqa: PT012
            rival.connection.exec_driver_sql("SET LOCAL lock_timeout = '50ms'")
            leases.take(rival, "scheduler", "second", clock.now() + timedelta(hours=1), _DURATION)


def test_a_lost_lease_says_who_lost_it(database: Database) -> None:
    clock = ManualClock(START)
    lead = Lease(database, "host-a:17", _DURATION, clock).hold(clock.now())
    assert lead is not None
    clock.advance(minutes=1)
    Lease(database, "host-b:4", _DURATION, clock).hold(clock.now())
    with database.transaction() as tx, pytest.raises(LeaseLost, match="taken over from host-a:17 since 2026"):
        lead.insist(tx)


def test_on_a_shared_database_its_own_clock_counts_and_not_the_hosts(postgres_database: Database) -> None:
    lease = Lease(postgres_database, "right", _DURATION, None)
    wrong = Lease(postgres_database, "wrong", _DURATION, None)
    assert lease.hold(START) is not None
    assert wrong.hold(START + timedelta(days=400)) is None


def test_on_sqlite_the_clock_that_is_handed_in_counts(sqlite_database: Database) -> None:
    first, second = (Lease(sqlite_database, name, _DURATION, None) for name in ("first", "second"))
    assert first.hold(START) is not None
    assert second.hold(START) is None
    assert second.hold(START + timedelta(minutes=1)) is not None


def test_two_schedulers_that_really_run_at_once_find_everybody_once(town: Town) -> None:
    """Both believe for a while that they lead; the rows they write say that one did."""
    town.publish(PLAIN)
    town.people(*(f"user{number}" for number in range(20)))
    town.scheduler.beat()
    (question,) = town.scheduler.begin()
    answer = town.scheduler.gather(question)
    town.clock.advance(minutes=1)
    other = town.another("second", chunk_size=3)
    other.beat()
    other.tick()
    town.scheduler.compare(question, answer)
    assert len(town.rows(schema.batches)) == 1
    assert len(town.rows(schema.batch_members)) == 20


# Clocks


def test_a_clock_set_back_does_not_keep_the_scheduler_from_ticking(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.only("b")
    town.clock.advance(days=-2)
    assert town.scheduler.beat()
    town.scheduler.tick()
    assert town.members()["a"] == "removed"


def test_a_clock_that_jumps_ahead_fires_what_is_due_then(town: Town) -> None:
    town.found("a")
    town.clock.advance(days=3)
    assert town.scheduler.beat()
    assert town.phases() == {"move": "dispatched"}


def test_ticks_are_an_interval_apart_and_do_not_pile_up(small_town: Town) -> None:
    small_town.publish(PLAIN)
    small_town.look()
    small_town.clock.advance(minutes=4, seconds=59)
    assert not small_town.scheduler.beat()
    small_town.clock.advance(seconds=1)
    assert small_town.scheduler.beat()
    small_town.clock.advance(minutes=40)
    assert small_town.scheduler.beat()
    small_town.scheduler.tick()
    assert not small_town.scheduler.beat()


def test_a_scheduler_of_its_own_has_settings_that_hold(town: Town) -> None:
    plain = Scheduler(town.database, Announcer(town.bus), town.clock, town.source, me="plain")
    assert plain.beat() is True
    assert list(plain.begin()) == []
