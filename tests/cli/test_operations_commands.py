"""What operators look after: status, queries, held removals, dead letters, the audit."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from matoolkit.hosts.api_parts import previews, releases
from matoolkit.store.schema import batch_members
from tests.api.people import runbook, step
from tests.api.test_writing import park
from tests.cli.conftest import bad, good, good_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.live import Live
    from tests.cli.conftest import Run


@pytest.fixture
def with_everything(live: Live, tmp_path: Path) -> Iterator[Live]:
    """A server that can ask data sources and release removals."""
    people = tmp_path / "people.db"
    with closing(sqlite3.connect(people)) as made:
        made.execute("CREATE TABLE people (Key TEXT, Start TEXT, Mail TEXT)")
        made.executemany(
            "INSERT INTO people VALUES (?, ?, ?)",
            [
                ("anna", "2030-01-01T00:00:00Z", "a@x"),
                ("ben", "2030-01-01T00:00:00Z", "b@x"),
                ("carl", "2030-02-01T00:00:00Z", "c@x"),
            ],
        )
        made.commit()
    object.__setattr__(live.services, "preview", previews({"SQL_WAVES": f"sqlite:///{people}"}, live.clock))
    object.__setattr__(live.services, "release", releases(live.database, live.services.announcer))
    yield live
    object.__setattr__(live.services, "preview", None)
    object.__setattr__(live.services, "release", None)


def with_query(live: Live, query: str) -> str:
    name = live.name()
    source = {
        "type": "sql",
        "connection": "SQL_WAVES",
        "query": query,
        "primary_key": "Key",
        "batch_time_column": "Start",
    }
    live.post("/api/runbooks", json={"name": name, "yamlContent": runbook(name, data_source=source)})
    return name


def test_a_query_is_previewed(run: Run, with_everything: Live) -> None:
    name = with_query(with_everything, "SELECT * FROM people ORDER BY Key")
    shown = good(run("query", "preview", name, "--rows", 2))
    assert shown.startswith("3 rows, 2 batches.\n")
    assert "2030-01-01 00:00:00Z        2\n" in shown
    assert "anna" in shown
    assert "carl" not in shown
    found = good_json(run("query", "preview", name, "--output", "json"))
    assert [each["memberCount"] for each in found["batchGroups"]] == [2, 1]
    assert [row["Key"] for row in found["sample"]] == ["anna", "ben", "carl"]


def test_a_query_that_fails_says_why(run: Run, with_everything: Live) -> None:
    name = with_query(with_everything, "SELECT Key FROM nowhere")
    assert "nowhere" in bad(run("query", "preview", name))
    assert bad(run("query", "preview", "nobody")) == "there is no active runbook 'nobody'"


def test_held_removals_are_let_go_when_a_person_says_so(run: Run, with_everything: Live) -> None:
    live = with_everything
    batch = live.batch("anna", "ben", "carl", on_member_removed=[step("forget")])
    nothing = run("batch", "release-removals", batch)
    assert good(nothing) == f"No removals of batch {batch} are held.\n"
    with live.database.transaction() as tx:
        held = update(batch_members).where(
            batch_members.c.batch_id == batch, batch_members.c.member_key.in_(["anna", "ben"])
        )
        tx.execute(held.values(removal_held_at=live.clock.now()))
    assert f"Held removals: 2; `matoolkit batch release-removals {batch}` lets them go\n" in good(
        run("batch", "get", batch)
    )
    status = good(run("status"))
    assert "\nHeld removals:\nBATCH  RUNBOOK" in status
    said = bad(run("batch", "release-removals", batch))
    assert said.startswith(f"This would take 2 people of 3 out of batch {batch} ")
    assert said.endswith("Nothing was done.")
    assert good_json(run("batch", "get", batch, "--output", "json"))["batch"]["heldRemovals"] == 2
    assert good(run("batch", "release-removals", batch, "--force")) == f"Released 2 people from batch {batch}.\n"
    assert good_json(run("batch", "release-removals", batch, "--force", "--output", "json")) == {
        "batchId": batch,
        "releasedCount": 0,
    }


def test_dead_letters_are_listed_and_sent_again(run: Run, live: Live) -> None:
    number = park(live, '{"messageType":"phase-due","runbookName":"x","batchId":1,"memberKey":"anna@example.test"}')
    listed = good(run("dead-letter", "list"))
    assert listed.splitlines()[1].split()[0] == str(number)
    assert "it did not work" in listed
    assert '"memberKey": "***"' in good(run("dead-letter", "list", "--bodies", "--limit", 1))
    assert good_json(run("dead-letter", "list", "--output", "json"))["messages"][0]["id"] == number
    assert good(run("dead-letter", "resubmit", number)) == f"dead letter {number} is on its way again\n"
    assert "was sent again before" in bad(run("dead-letter", "resubmit", number))
    other = park(live, '{"messageType":"phase-due"}')
    assert set(good_json(run("dead-letter", "resubmit", other, "--output", "json"))) == {"message"}
    assert bad(run("dead-letter", "resubmit", 999999)) == "there is no dead letter 999999"
    assert bad(run("dead-letter", "resubmit", "x"), 2)
    live.settle()


def test_the_audit_is_filtered(run: Run, live: Live) -> None:
    batch = live.batch()
    good(run("batch", "cancel", batch, "--force"))
    found = good_json(run("audit", "--batch", batch, "--output", "json"))["entries"]
    assert [each["action"] for each in found] == ["batch.cancelled", "batch.created"]
    by = found[0]["actor"]
    assert len(good(run("audit", "--batch", batch, "--actor", by)).splitlines()) == 2
    assert "memberCount: 2" in good(run("audit", "--batch", batch))
    assert run("audit", "--batch", batch, "--since", "2030-01-01").stderr == "Nothing is recorded.\n"
    assert "since" in bad(run("audit", "--since", "yesterday"))
    first = run("audit", "--batch", batch, "--limit", 1)
    cursor = first.stderr.split("--cursor ")[1].split()[0]
    assert "batch.created" in good(run("audit", "--batch", batch, "--cursor", cursor))
    assert len(good(run("audit", "--batch", batch, "--limit", 1, "--all")).splitlines()) == 3


def test_how_all_of_it_is(run: Run, live: Live) -> None:
    batch = live.batch("anna")
    shown = good(run("status"))
    assert shown.startswith("! no scheduler is running")
    assert "\nOpen batches:\n" in shown
    found = good_json(run("status", "--output", "json"))
    assert batch in [each["id"] for each in found["openBatches"]]
    assert {"attention", "nextPhases", "scheduler", "workers", "deadLetters"} <= set(found)
