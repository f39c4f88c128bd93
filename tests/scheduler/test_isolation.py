"""One runbook, one source, one fault: nobody else is disturbed, and what went wrong is said."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from matoolkit.scheduler import comparing
from matoolkit.scheduler.sources import SourceUnavailable
from matoolkit.store import runbooks, schema
from matoolkit.store.errors import DatabaseUnavailable, TransactionConflict
from tests.orchestrator.runbooks import POLL, runbook, step
from tests.scheduler.town import AT_TEN, LEAVING, PLAIN, Town, TownSource

if TYPE_CHECKING:
    from typing import Any


def publish(town: Town, name: str, text: str) -> None:
    with town.database.transaction() as tx:
        runbooks.publish(tx, name=name, yaml_content=text, now=town.now, by="anna")


def errors(town: Town) -> dict[str, str | None]:
    return {row["name"]: row["last_error"] for row in town.rows(schema.runbooks)}


def test_a_failing_query_changes_nothing_about_members_and_sets_last_error(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.only("b", "c", name="new")
    town.source.error = SourceUnavailable("the warehouse is away")
    before = town.rows(schema.batch_members)
    town.look()
    assert town.rows(schema.batch_members) == before
    assert town.error == "the data source was not read: the warehouse is away"
    assert town.rows(schema.runbooks)[0]["last_error_at"] == town.now


def test_due_phases_are_evaluated_though_the_query_fails(town: Town) -> None:
    town.found("a")
    town.source.error = SourceUnavailable("away")
    town.look(hours=3)
    assert town.jobs() == ["copy a"]


@pytest.mark.parametrize("text", ["name: [", "name: wave\n", "name: wave\nphases: []\n"])
def test_a_broken_runbook_never_disturbs_another(town: Town, text: str) -> None:
    publish(town, "a-broken", text)
    publish(town, "z-broken", text)
    town.found("a")
    assert town.members() == {"a": "active"}
    found = errors(town)
    assert found.pop("wave") is None
    assert all("the runbook cannot be read" in (each or "") for each in found.values())


def test_an_unforeseen_failure_is_told_without_its_details(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.only("b")
    town.source.error = ValueError("secret-password")
    town.look()
    assert town.error == "the data source was not read: the data source failed: ValueError"
    assert town.members() == {"a": "active", "b": "active"}


def test_a_fault_while_comparing_is_told_and_the_others_go_on(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(town, "other", PLAIN.replace("name: wave", "name: other"))
    apply = comparing.Comparison.apply

    def fails(self: comparing.Comparison) -> list[str]:
        if self.published.name == "other":
            raise ZeroDivisionError("a detail")
        return apply(self)

    monkeypatch.setattr(comparing.Comparison, "apply", fails)
    town.found("a")
    assert town.members() == {"a": "active"}
    assert errors(town) == {"other": "it failed unexpectedly: ZeroDivisionError", "wave": None}


def test_what_the_database_refused_is_no_fault_of_the_runbook_and_is_done_later(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_self: comparing.Comparison) -> list[str]:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(comparing.Comparison, "apply", away)
        town.found("a")
    assert town.rows(schema.batches) == []
    assert town.error is None
    town.look()
    assert town.members() == {"a": "active"}


def test_a_transaction_that_collides_is_tried_again(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    from matoolkit.batches import making

    create, collisions = making.create_batch, iter(range(2))

    def collides(*args: Any, **kwargs: Any) -> int:
        batch = create(*args, **kwargs)
        if next(collisions, None) is not None:
            raise TransactionConflict("somebody was first")
        return batch

    monkeypatch.setattr(making, "create_batch", collides)
    town.found("a")
    assert town.members() == {"a": "active"}
    assert len(town.rows(schema.batches)) == 1


def test_a_version_published_while_a_source_was_asked_makes_its_answer_worthless(town: Town) -> None:
    town.publish(PLAIN)
    town.people("a")
    town.scheduler.beat()
    (question,) = town.scheduler.begin()
    answer = town.scheduler.gather(question)
    town.publish(PLAIN.replace("copy", "copy-better"))
    assert not town.scheduler.compare(question, answer)
    assert town.rows(schema.batches) == []
    town.look()
    assert town.phases() == {"move v2": "pending"}


def test_automation_switched_off_while_a_source_was_asked_counts(town: Town) -> None:
    town.publish(PLAIN)
    town.people("a")
    town.scheduler.beat()
    (question,) = town.scheduler.begin()
    answer = town.scheduler.gather(question)
    town.automation(on=False)
    assert town.scheduler.compare(question, answer)
    assert town.rows(schema.batches) == []


def test_a_very_long_report_is_cut(small_town: Town) -> None:
    small_town.publish(PLAIN)
    small_town.source.error = SourceUnavailable("x" * 100_000)
    small_town.look()
    assert small_town.error is not None
    assert len(small_town.error) == 8_000


# Polls and phases keep their own time


def test_a_poll_of_thirty_seconds_means_thirty_seconds(town: Town) -> None:
    polling = step("copy", poll={"interval": "30s", "timeout": "1h"})
    town.found("a", text=runbook({"move T-0": [polling]}))
    town.look(hours=2)
    town.poll("copy a")
    for _ in range(4):
        waited = timedelta(0)
        while not town.jobs():
            town.clock.advance(seconds=5)
            waited += timedelta(seconds=5)
            town.scheduler.beat()
        assert waited == timedelta(seconds=30)
        town.poll("copy a")


def test_all_polls_that_are_due_are_asked_about_in_one_beat(small_town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    from matoolkit.scheduler import due, scheduler

    for module in (due, scheduler):
        monkeypatch.setattr(module, "POLLS_AT_ONCE", 2)
    keys = [f"user{number}" for number in range(5)]
    small_town.found(*keys, text=runbook({"move T-0": [step("copy", poll=POLL)]}))
    small_town.look(hours=2)
    small_town.poll(*(f"copy {key}" for key in keys))
    small_town.clock.advance(minutes=2)
    small_town.scheduler.beat()
    assert len(small_town.events("poll-check")) == 5


def test_phases_come_before_queries(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is asked sees that what was due has been started."""
    town.found("a")
    seen: list[str] = []
    read = TownSource.read

    def look(source: TownSource) -> Any:
        seen.append(town.phases()["move"])
        return read(source)

    monkeypatch.setattr(TownSource, "read", look)
    town.look(hours=3)
    assert seen == ["dispatched"]


# New versions


def test_open_batches_go_over_to_a_new_version(town: Town) -> None:
    town.found("a")
    town.publish(PLAIN.replace("copy", "copy-better"))
    town.look()
    assert town.phases() == {"move": "superseded", "move v2": "pending"}
    assert town.finish() == "completed"


def test_a_new_version_that_cannot_be_read_leaves_batches_with_the_old_one(town: Town) -> None:
    town.found("a")
    publish(town, "wave", "name: wave\n")
    town.look(hours=3)
    assert town.jobs() == ["copy a"]
    assert "cannot be read" in (town.error or "")


def test_versions_are_changed_though_the_query_fails_and_automation_is_off(town: Town) -> None:
    town.found("a")
    town.automation(on=False)
    town.source.error = SourceUnavailable("away")
    town.publish(PLAIN.replace("copy", "copy-better"))
    town.look()
    assert town.phases() == {"move": "superseded", "move v2": "pending"}


@pytest.mark.parametrize(
    ("ignore", "expected"),
    [
        (False, {"move": "completed", "move v2": "dispatched"}),
        (True, {"move": "completed", "move v2": "skipped: repeated"}),
    ],
)
def test_overdue_phases_are_rerun_or_ignored_and_that_is_noted(
    town: Town, *, ignore: bool, expected: dict[str, str]
) -> None:
    town.found("a", text=runbook({"move T-1h": ["copy"], "end T-0": ["check"]}))
    town.look(minutes=61)
    town.succeed("copy a")
    town.reconcile()
    town.publish(runbook({"move T-1h": ["copy"], "end T-0": ["check"]}), ignore=ignore)
    town.look()
    town.look(minutes=1)
    found = town.phases()
    assert {name: found[name] for name in expected} == expected
    assert town.rows(schema.runbooks)[-1]["ignore_overdue_applied"] is ignore


def test_a_rerun_init_that_failed_is_reported_until_another_version(town: Town) -> None:
    text = runbook({"move T-0": ["copy"]}, init=["group"])
    town.found("a", text=text)
    town.succeed("group")
    town.publish(text, rerun_init=True)
    town.look()
    town.fail("group")
    town.look()
    town.look()
    assert f"init step 'group' failed when it was run again for batch {town.batch_id}" in (town.error or "")
    assert town.batch_status == "active"
    town.publish(text)
    town.look()
    assert town.error is None


def test_a_manual_batch_is_left_alone_by_new_versions(town: Town) -> None:
    town.found("a")
    town.forge(schema.batches, town.batch_id, is_manual=True)
    town.publish(PLAIN.replace("copy", "copy-better"))
    town.only()
    town.look()
    assert town.phases() == {"move": "pending"}


def test_a_batch_whose_init_runs_goes_over_once_it_is_active(town: Town) -> None:
    text = runbook({"move T-0": ["copy"]}, init=["group"])
    town.found("a", text=text)
    town.publish(text.replace("copy", "copy-better"))
    town.look()
    assert town.phases() == {"move": "pending"}
    town.succeed("group")
    town.look()
    assert town.phases() == {"move": "superseded", "move v2": "pending"}
    assert AT_TEN in town.waves
