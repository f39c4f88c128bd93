"""Who joins, leaves, comes back and changes in a batch that is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.store import runbooks, schema
from tests.orchestrator.runbooks import runbook
from tests.scheduler.town import AT_NOON, AT_TEN, LEAVING, PLAIN

if TYPE_CHECKING:
    from tests.scheduler.town import Town


def test_who_appears_joins_with_member_added(town: Town) -> None:
    town.found("a")
    town.people("b")
    town.look()
    assert town.members() == {"a": "active", "b": "active"}
    assert len(town.events("member-added")) == 1
    assert town.finish() == "completed"


def test_who_disappears_is_removed_with_member_removed(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.only("b")
    town.look()
    assert town.members() == {"a": "removed", "b": "active"}
    assert town.member("a")["removed_by"] == "source"
    assert len(town.events("member-removed")) == 1
    assert ("source", "members-removed", town.batch_id) in town.audited()
    town.succeed("bye a")
    assert town.finish() == "completed"


def test_a_removed_member_that_comes_back_is_re_activated_in_another_generation(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.only("b")
    town.look()
    town.succeed("bye a")
    town.only("a", "b", name="new")
    town.look()
    assert town.members() == {"a": "active", "b": "active"}
    member = town.member("a")
    assert (member["generation"], member["removed_at"]) == (2, None)
    assert '"Name":"new"' in member["data_json"]
    assert len(town.events("member-added")) == 1
    assert town.finish() == "completed"


def test_who_comes_back_before_the_leaving_is_handled_waits_for_it(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.only("b")
    town.clock.advance(minutes=5)
    town.scheduler.beat()
    town.scheduler.tick()
    town.only("a", "b")
    town.clock.advance(minutes=5)
    town.scheduler.beat()
    town.scheduler.tick()
    assert town.members()["a"] == "removed"
    town.pump()
    town.look()
    assert town.member("a")["generation"] == 2


def test_a_failed_member_that_is_still_in_the_query_stays_failed_quietly(town: Town) -> None:
    town.found("a", "b")
    town.look(hours=3)
    town.fail("copy a")
    events = town.events()
    town.look()
    town.look()
    assert town.members() == {"a": "failed", "b": "active"}
    assert town.error is None
    assert town.events() == []
    assert events
    town.only("b")
    town.look()
    assert town.members()["a"] == "failed"


def test_a_completed_member_is_never_removed(town: Town) -> None:
    town.found("a", "b")
    town.look(hours=3)
    town.succeed("copy a")
    town.reconcile()
    assert town.members() == {"a": "completed", "b": "active"}
    town.only("b")
    town.look()
    assert town.members() == {"a": "completed", "b": "active"}
    assert town.events("member-removed") == []


def test_data_is_refreshed_for_active_members_alone(town: Town) -> None:
    town.found("a", "b", "c", text=LEAVING)
    town.look(hours=3)
    town.fail("copy a")
    town.only("a", "b", "c", name="new")
    town.look()
    data = {row["member_key"]: row["data_json"] for row in town.rows(schema.batch_members)}
    assert ['"Name":"new"' in data[key] for key in "abc"] == [False, True, True]


def test_fresh_data_is_used_by_what_follows(town: Town) -> None:
    text = runbook(
        {
            "first T-1h": ["one"],
            "second T-0": [
                {
                    "name": "two",
                    "worker_id": "worker-1",
                    "function": "Do-two",
                    "params": {"Name": "{{Name}}", "Key": "{{Key}}"},
                }
            ],
        }
    )
    town.found("a", text=text)
    town.look(minutes=61)
    town.succeed("one a")
    town.only("a", name="Ann")
    town.look(minutes=61)
    assert town.job("two a").parameters["Name"] == "Ann"


def test_keys_compare_case_folded_and_keep_their_first_spelling(town: Town) -> None:
    town.found("Ann@X", "STRASSE")
    town.only(" aNN@x", "straße", name="y")
    town.look()
    assert town.members() == {"Ann@X": "active", "STRASSE": "active"}
    assert town.events("member-added") == []


def test_unchanged_people_cause_no_write(town: Town) -> None:
    town.found("a", "b")
    with town.database.reading() as tx:
        before = tx.execute(schema.batch_members.select()).all()
    town.look(minutes=5)
    with town.database.reading() as tx:
        assert tx.execute(schema.batch_members.select()).all() == before
    assert town.events() == []


def test_members_of_a_manual_batch_are_no_business_of_the_source(town: Town) -> None:
    town.found("a")
    town.forge(schema.batches, town.batch_id, is_manual=True, batch_start_time=None)
    town.only("b", start=AT_NOON)
    town.look()
    assert town.rows(schema.batch_members)[0]["status"] == "active"


# One place at a time


def moved(town: Town) -> None:
    """`a`, who was to go at ten, is to go at noon."""
    town.found("a", "b", "c", text=LEAVING)
    town.only("b", "c")
    town.people("a", start=AT_NOON)
    town.look()


def test_moving_to_another_date_is_a_removal_and_then_a_joining(town: Town) -> None:
    moved(town)
    assert town.waves == {AT_TEN: {"a": "removed", "b": "active", "c": "active"}}
    town.look()
    assert list(town.waves) == [AT_TEN]
    town.succeed("bye a")
    town.look()
    assert town.waves[AT_NOON] == {"a": "active"}


def test_who_is_through_and_was_given_another_date_takes_no_part_in_what_a_new_version_adds(town: Town) -> None:
    town.found("a", "b")
    town.look(hours=3)
    town.succeed("copy a")
    assert town.waves == {AT_TEN: {"a": "completed", "b": "active"}}
    town.only("b")
    town.people("a", start=AT_NOON)
    town.look()
    assert town.waves == {AT_TEN: {"a": "completed", "b": "active"}, AT_NOON: {"a": "active"}}
    town.publish(PLAIN.replace("copy", "copy-better"))
    town.look()
    assert town.waves == {AT_TEN: {"a": "completed", "b": "active"}, AT_NOON: {"a": "active"}}


def test_joining_an_existing_batch_waits_until_the_removal_has_ended(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.people("c", start=AT_NOON)
    town.look()
    town.only("b")
    town.people("a", "c", start=AT_NOON)
    town.look()
    town.look()
    assert town.waves[AT_NOON] == {"c": "active"}
    town.succeed("bye a")
    town.look()
    assert town.waves[AT_NOON] == {"c": "active", "a": "active"}


def test_joining_waits_for_a_job_that_is_out_though_the_batch_it_belongs_to_was_cancelled(town: Town) -> None:
    town.found("a")
    town.look(hours=2)
    assert town.jobs() == ["copy a"]
    town.cancel()
    town.only("a", start=AT_NOON)
    town.look()
    assert list(town.waves) == [AT_TEN]
    town.succeed("copy a")
    town.look()
    assert town.waves == {AT_TEN: {"a": "removed"}, AT_NOON: {"a": "active"}}


def test_joining_waits_for_the_rollback_of_who_failed_elsewhere(town: Town) -> None:
    step = {"name": "copy", "worker_id": "worker-1", "function": "Do-copy", "params": {"Key": "{{Key}}"}}
    text = runbook({"move T-0": [{**step, "on_failure": "undo"}]}, rollbacks={"undo": ["undo"]})
    town.found("a", "b", text=text)
    town.look(hours=2)
    town.fail("copy a")
    town.only("b")
    town.people("a", start=AT_NOON)
    town.look()
    assert list(town.waves) == [AT_TEN]
    town.succeed("undo a")
    town.look()
    assert town.waves[AT_NOON] == {"a": "active"}


def test_moving_back_before_the_other_batch_was_joined_is_coming_back(town: Town) -> None:
    moved(town)
    town.only("a", "b", "c")
    town.look()
    assert town.waves == {AT_TEN: {"a": "active", "b": "active", "c": "active"}}
    assert town.member("a")["generation"] == 2


def test_who_is_in_a_manual_batch_of_the_runbook_does_not_join_another(town: Town) -> None:
    town.found("a")
    town.forge(schema.batches, town.batch_id, is_manual=True, batch_start_time=None)
    town.look()
    assert len(town.rows(schema.batches)) == 1
    town.people("b")
    town.look()
    assert town.members() == {"b": "active"}


@pytest.mark.parametrize("key", ["a", "A"])
def test_the_same_key_under_another_runbook_name_is_somebody_else(town: Town, key: str) -> None:
    town.found("a")
    with town.database.transaction() as tx:
        text = PLAIN.replace("name: wave", "name: other")
        runbooks.publish(tx, name="other", yaml_content=text, now=town.now, by="anna")
    town.only(key)
    town.look()
    assert len(town.rows(schema.batches)) == 2
