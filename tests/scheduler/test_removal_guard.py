"""The guard: a source that loses most of its people at once is not believed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from matoolkit.batches.announcing import Announcer
from matoolkit.scheduler import held_removals, release_held_removals
from matoolkit.store import holding
from tests.scheduler.town import AT_NOON, AT_TEN, LEAVING

if TYPE_CHECKING:
    from tests.scheduler.town import Town

TEN = tuple("abcdefghij")


def release(town: Town, by: str = "anna") -> int:
    return release_held_removals(town.database, Announcer(town.bus), town.batch_id, by=by, now=town.now)


def counts(town: Town) -> dict[int, int]:
    with town.database.reading() as tx:
        return holding.counts(tx, [town.batch_id])


def test_an_empty_result_removes_nobody_and_is_reported(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.only()
    town.look()
    assert town.members() == dict.fromkeys(TEN, "active")
    assert town.kept_back == list(TEN)
    assert counts(town) == {town.batch_id: 10}
    assert town.error is not None
    assert "10 of 10 active members are missing from the source, and their removal is held" in town.error
    assert town.events("member-removed") == []


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [(10, 4, True), (10, 5, False), (9, 4, True), (5, 0, True), (4, 0, False), (20, 16, False), (11, 6, False)],
)
def test_more_than_half_and_at_least_five(small_town: Town, before: int, after: int, *, held: bool) -> None:
    keys = [f"user{number}" for number in range(before)]
    small_town.found(*keys, text=LEAVING)
    small_town.only(*keys[:after])
    small_town.look()
    gone = "active" if held else "removed"
    assert small_town.members() == dict.fromkeys(keys[:after], "active") | dict.fromkeys(keys[after:], gone)
    assert bool(small_town.error) == held
    assert len(small_town.kept_back) == (before - after) * held


def test_only_active_members_count(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.look(hours=3)
    town.fail(*(f"copy {key}" for key in "abcd"))
    town.only("e", "f")
    town.look()
    assert town.kept_back == []  # four of six, and four are too few to doubt
    assert town.members() == {
        **dict.fromkeys("abcd", "failed"),
        **dict.fromkeys("ef", "active"),
        **dict.fromkeys("ghij", "removed"),
    }


def test_each_batch_is_looked_at_alone(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.people("k", "l", start=AT_NOON)
    town.look()
    town.only("l", start=AT_NOON)
    town.look()
    assert town.waves == {AT_TEN: dict.fromkeys(TEN, "active"), AT_NOON: {"k": "removed", "l": "active"}}


def test_who_reappears_is_un_held_and_the_others_stay_held_however_few(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.only("a")
    town.look()
    town.only(*"abcdefgh")
    town.look()
    assert town.kept_back == ["i", "j"]
    assert town.members() == dict.fromkeys(TEN, "active")
    town.only(*TEN)
    town.look()
    assert town.kept_back == []
    assert town.error is None


def test_since_when_a_removal_is_held_is_not_moved_on(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.only()
    town.look()
    since = town.member("a")["removal_held_at"]
    town.look()
    assert town.member("a")["removal_held_at"] == since


def test_held_members_go_on_with_their_steps(town: Town) -> None:
    town.found(*TEN)
    town.only()
    town.look(hours=3)
    town.look()
    assert len(town.jobs()) == 10
    assert town.finish() == "completed"
    assert counts(town) == {}


def test_releasing_removes_them_and_says_who_and_when(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.only("a")
    town.look()
    with town.database.reading() as tx:
        shown = held_removals(tx, town.batch_id)
    assert [each.member_key for each in shown] == list("bcdefghij")
    assert release(town) == 9
    town.pump()
    assert town.members() == {"a": "active"} | dict.fromkeys("bcdefghij", "removed")
    assert town.member("b")["removed_by"] == "anna"
    assert town.audited() == [("anna", "held-removals-released", town.batch_id)]
    assert town.kept_back == []
    town.look()
    assert town.error is None
    town.succeed(*town.jobs())
    assert town.finish() == "completed"


def test_releasing_twice_does_no_more_than_once(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.only()
    town.look()
    assert (release(town), release(town)) == (10, 0)
    assert len(town.audited()) == 1


def test_releasing_goes_by_parts(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["matoolkit.scheduler.held_removals"], "_SIZE", 4)
    town.found(*TEN, text=LEAVING)
    town.only()
    town.look()
    assert release(town) == 10
    assert len(town.audited()) == 3


def test_a_release_takes_nobody_who_is_there_again(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the operator's look and the removal, the scheduler found somebody again."""
    town.found(*TEN, text=LEAVING)
    town.only()
    town.look()
    with town.database.reading() as tx:
        shown = holding.held(tx, town.batch_id, after=0, size=100)
    town.only("a", "b")
    town.look()
    answers = iter([shown, []])
    monkeypatch.setattr(holding, "held", lambda *_args, **_kwargs: next(answers))
    assert release(town) == 8
    assert town.members() == {"a": "active", "b": "active"} | dict.fromkeys("cdefghij", "removed")


def test_nothing_is_released_of_a_batch_that_ended(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.only()
    town.look()
    town.cancel(size=2)
    assert release(town) == 0
    town.reconcile()
    assert town.batch_status == "cancelled"


def test_a_joining_elsewhere_does_not_happen_while_the_removal_is_held(town: Town) -> None:
    town.found(*TEN)
    town.only(*TEN, start=AT_NOON)
    town.look()
    town.look()
    assert town.waves == {AT_TEN: dict.fromkeys(TEN, "active")}
    release(town)
    town.pump()
    town.look()
    assert town.waves == {AT_TEN: dict.fromkeys(TEN, "removed"), AT_NOON: dict.fromkeys(TEN, "active")}


def test_who_is_removed_otherwise_is_no_longer_held(town: Town) -> None:
    town.found(*TEN, text=LEAVING)
    town.only()
    town.look()
    town.leave("a")
    assert town.member("a")["removal_held_at"] is None
    assert counts(town) == {town.batch_id: 9}
