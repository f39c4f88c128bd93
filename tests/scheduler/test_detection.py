"""New batches: who is in them, when they are made, and when never again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.batches import making
from matoolkit.store import runbooks, schema
from matoolkit.store.database import Database
from tests.orchestrator.post import START
from tests.orchestrator.runbooks import runbook
from tests.scheduler.town import AT_NOON, AT_TEN, IMMEDIATE, LEAVING, PLAIN, Town, with_source

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matoolkit.store.database import Transaction


_COMMITS = 7
"""The lease, the beginning of a batch, four parts of it, and its end."""


class Died(BaseException):
    """The process ended here."""


def test_people_of_one_start_time_are_one_batch(town: Town) -> None:
    town.publish(PLAIN)
    town.people("Ann@x", "Bob@x")
    town.people("Cid@x", start=AT_NOON)
    town.look()
    assert town.waves == {AT_TEN: {"Ann@x": "active", "Bob@x": "active"}, AT_NOON: {"Cid@x": "active"}}
    assert town.error is None


def test_members_at_creation_get_no_member_added(town: Town) -> None:
    town.found("a", "b")
    assert town.events("member-added") == []


def test_init_is_sent_with_the_batch_and_without_init_it_is_active(town: Town) -> None:
    town.found("a", "b", text=runbook({"move T-0": ["copy"]}, init=["group"]))
    assert town.batch_status == "init_dispatched"
    (event,) = town.events("batch-init")
    assert '"memberCount":2' in event.body
    town.succeed("group")
    assert town.finish() == "completed"


def test_a_batch_that_is_found_goes_its_way(town: Town) -> None:
    town.found("a")
    assert town.finish() == "completed"
    town.look()
    assert town.members() == {"a": "completed"}


def test_a_group_whose_batch_ended_is_never_run_again_under_whatever_version(town: Town) -> None:
    town.found("a")
    town.finish()
    town.publish(PLAIN.replace("copy", "copy-again"))
    town.look()
    town.look()
    assert [row["status"] for row in town.rows(schema.batches)] == ["completed"]
    assert town.error is None


def test_who_is_dated_to_a_batch_that_ended_is_reported(town: Town) -> None:
    town.found("a")
    town.finish()
    town.people("late")
    town.look()
    assert len(town.rows(schema.batches)) == 1
    assert town.error is not None
    assert "has ended, and never runs again for late: give them another date" in town.error


def test_a_group_first_seen_longer_after_its_start_than_max_batch_age_is_reported_not_created(town: Town) -> None:
    town.publish(with_source(PLAIN, max_batch_age="1h"))
    town.people("old", start=START - timedelta(hours=2))
    town.people("recent", start=START - timedelta(minutes=30))
    town.look()
    assert list(town.waves.values()) == [{"recent": "active"}]
    assert town.error is not None
    assert "longer past than max_batch_age" in town.error


def test_a_batch_is_not_too_old_once_it_was_made(town: Town) -> None:
    town.found("a", text=with_source(PLAIN, max_batch_age="1h"), start=START)
    town.people("b", start=START)
    town.look(hours=3)
    assert town.members() == {"a": "active", "b": "active"}
    assert town.error is None


def test_automation_off_stops_new_batches_and_nothing_else(town: Town) -> None:
    batch = town.found("a", "b", text=LEAVING)
    town.automation(on=False)
    town.only("b", "c", name="y")
    town.people("d", start=AT_NOON)
    town.look()
    assert town.waves == {AT_TEN: {"a": "removed", "b": "active", "c": "active"}}
    assert '"Name":"y"' in town.row(schema.batch_members, member_key="b")["data_json"]
    town.publish(PLAIN)
    town.look(hours=2)
    town.look(minutes=1)
    assert town.row(schema.phase_executions, batch_id=batch, runbook_version=2)["status"] == "dispatched"
    town.automation(on=True)
    town.look()
    assert AT_NOON in town.waves


def test_automation_off_without_open_batches_asks_nobody(small_town: Town) -> None:
    small_town.publish(PLAIN)
    small_town.automation(on=False)
    small_town.look()
    assert small_town.source.asked == []


def test_no_automated_batch_of_an_inactive_version(small_town: Town) -> None:
    small_town.publish(PLAIN)
    with small_town.database.transaction() as tx:
        tx.connection.execute(schema.runbooks.update().values(is_active=False))
    small_town.people("a")
    small_town.look()
    assert small_town.source.asked == []


# Batches that start as soon as people appear


def test_immediate_buckets_are_floored_to_five_minutes(town: Town) -> None:
    town.publish(IMMEDIATE)
    town.people("a")
    town.look(minutes=4, seconds=59)
    assert list(town.waves) == [START]


def test_a_second_tick_in_the_same_bucket_removes_no_one_and_late_rows_join(town: Town) -> None:
    town.found("a", "b", text=IMMEDIATE)
    town.people("c")
    town.look(minutes=1)
    assert town.waves == {START + timedelta(minutes=5): {"a": "active", "b": "active", "c": "active"}}
    town.only("d")
    town.look(minutes=1)
    assert town.members() == {"a": "active", "b": "active", "c": "active", "d": "active"}


def test_who_is_in_an_open_batch_is_filtered_out_across_versions(town: Town) -> None:
    town.found("a", "b", text=IMMEDIATE)
    town.publish(IMMEDIATE.replace("copy", "copy-better"))
    town.people("c")
    town.look()
    assert [sorted(each) for each in town.waves.values()] == [["a", "b"], ["c"]]


def test_without_anybody_new_there_is_no_batch(town: Town) -> None:
    town.found("a", text=IMMEDIATE)
    town.look()
    town.only("A ")
    town.look()
    assert len(town.waves) == 1


def test_who_failed_in_an_open_batch_is_not_tried_again_in_the_next_one(town: Town) -> None:
    town.found("a", "b", text=IMMEDIATE)
    town.tick()
    town.fail("copy a")
    town.look()
    town.look()
    assert list(town.waves.values()) == [{"a": "failed", "b": "active"}]


def test_who_left_an_immediate_batch_comes_back_to_it(town: Town) -> None:
    town.found("a", "b", text=IMMEDIATE)
    town.only("b")
    town.look()
    assert town.members() == {"a": "removed", "b": "active"}
    town.only("a", "b")
    town.look()
    assert list(town.waves.values()) == [{"a": "active", "b": "active"}]
    assert town.member("a")["generation"] == 2


def test_a_bucket_whose_batch_ended_is_not_run_again(town: Town) -> None:
    town.found("a", text=IMMEDIATE)
    town.tick()
    town.succeed("copy a")
    assert town.batch_status == "completed"
    town.look(minutes=1)
    assert len(town.waves) == 1


# Large batches, in chunks


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_large_batch_is_hidden_until_it_is_written(town: Town, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    town.scheduler = town.another("small steps", chunk_size=size)
    seen = []
    finish = making.finish_batch

    def look(tx: Transaction, *args: Any, **kwargs: Any) -> None:
        seen.append([(row["loaded_at"], row["status"]) for row in town.rows(schema.batches)])
        finish(tx, *args, **kwargs)

    monkeypatch.setattr(making, "finish_batch", look)
    town.found("a", "b", "c", "d")
    assert seen == [[(None, "detected")]]
    assert town.members() == dict.fromkeys("abcd", "active")
    assert town.finish() == "completed"


def dying(database: Database, commits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process die once so many transactions have been committed."""
    begin, left = Database.transaction, iter(range(commits))

    def transaction(self: Database) -> AbstractContextManager[Transaction]:
        if self is database and next(left, None) is None:
            raise Died
        return begin(self)

    monkeypatch.setattr(Database, "transaction", transaction)


@pytest.mark.parametrize("commits", range(9))
def test_a_crash_at_any_commit_loses_nothing_and_is_completed_by_the_next_tick(
    town: Town, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    town.publish(runbook({"move T-0": ["copy"]}, init=["group"]))
    town.people(*"abcdefg")
    town.scheduler = town.another("dies", chunk_size=2)
    with monkeypatch.context() as patch:
        dying(town.database, commits, patch)
        try:
            town.scheduler.beat()
            town.scheduler.tick()
        except Died:
            assert commits < _COMMITS
            assert all(row["loaded_at"] is None for row in town.rows(schema.batches))
        else:
            assert commits >= _COMMITS
    town.scheduler = town.another("lives", chunk_size=3)
    town.look()
    assert town.members() == dict.fromkeys("abcdefg", "active")
    assert len(town.events("batch-init")) == 1
    assert town.finish() == "completed"


def half_made(town: Town, *keys: str) -> None:
    """A scheduler died after it had begun a batch of these."""
    with town.database.transaction() as tx:
        (published,) = runbooks.active(tx)
        batch = making.begin_batch(tx, published, start_time=AT_TEN, now=town.now)
        making.fill_batch(tx, batch, [(key, "{}") for key in keys], town.now)


def test_who_left_before_a_batch_was_shown_leaves_no_trace(town: Town) -> None:
    town.publish(LEAVING)
    half_made(town, "a", "b")
    town.people("b", "c")
    town.look()
    assert town.members() == {"b": "active", "c": "active"}
    assert town.events("member-removed") == []


def test_a_half_made_batch_of_nobody_is_taken_back(town: Town) -> None:
    town.publish(LEAVING)
    half_made(town, "a")
    town.look()
    assert town.rows(schema.batches) == []
    assert town.rows(schema.batch_members) == []


def test_a_half_made_batch_runs_the_version_that_is_active_when_it_is_finished(town: Town) -> None:
    town.publish(PLAIN)
    half_made(town, "a")
    town.publish(PLAIN.replace("copy", "copy-better"))
    town.people("a")
    town.look()
    assert town.phases() == {"move v2": "pending"}
    town.tick(hours=3)
    assert town.jobs() == ["copy-better a"]


def test_a_half_made_batch_is_finished_when_automation_is_off_meanwhile(town: Town) -> None:
    town.publish(PLAIN)
    half_made(town, "a")
    town.automation(on=False)
    town.people("a")
    town.look()
    assert town.batch_status == "active"


def test_a_failing_source_leaves_a_half_made_batch_as_it_is(town: Town) -> None:
    town.publish(PLAIN)
    half_made(town, "a")
    town.source.error = RuntimeError("no")
    town.look()
    assert town.rows(schema.batches)[0]["loaded_at"] is None
    assert town.members() == {"a": "active"}


def test_who_is_taken_back_from_a_half_made_batch_joins_another_in_the_same_tick(town: Town) -> None:
    town.publish(LEAVING)
    town.people("b", start=AT_NOON)
    town.look()
    half_made(town, "a", "c")
    town.only("a", "b", start=AT_NOON)
    town.people("c")
    town.look()
    assert town.waves == {AT_NOON: {"a": "active", "b": "active"}, AT_TEN: {"c": "active"}}
