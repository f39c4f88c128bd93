"""Batches from a file to their end, through the command line and a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.cli.files import LARGEST_FILE
from matoolkit.messages import WorkerError, WorkerResult
from tests.api.people import csv, step
from tests.cli.conftest import bad, good, good_json

if TYPE_CHECKING:
    from pathlib import Path

    from matoolkit.messages import WorkerJob
    from tests.api.live import Live
    from tests.cli.conftest import Run


@pytest.fixture
def people(tmp_path: Path) -> Path:
    file = tmp_path / "people.csv"
    file.write_bytes(csv("anna", "ben", "carl"))
    return file


@pytest.fixture
def batch(live: Live) -> int:
    return live.batch("anna", "ben", "carl")


def failing(*steps: str) -> Any:
    def function(job: WorkerJob) -> WorkerResult:
        fails = job.function_name in {f"Do-{each}" for each in steps} and job.parameters.get("Who", "ben") == "ben"
        return WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=job.worker_id,
            function_name=job.function_name,
            status="failure" if fails else "success",
            error=WorkerError(type="NotFound", message="no such mailbox") if fails else None,
            correlation_data=job.correlation_data,
        )

    return function


def test_from_a_file_to_the_end(run: Run, live: Live, people: Path) -> None:
    name = live.publish(init=True)
    made = good(run("batch", "create", name, people))
    batch_id = int(made.split()[2])
    assert made == (
        f"Made batch {batch_id} of 3 people; its phases: prepare, move.\n"
        f"`matoolkit batch advance {batch_id}` begins it.\n"
    )
    assert good(run("batch", "advance", batch_id)) == (f"Init of batch {batch_id} has begun. Next: phase 'prepare'.\n")
    assert "init is not finished" in bad(run("batch", "advance", batch_id))
    live.settle()
    assert good(run("batch", "advance", batch_id)) == (
        f"Phase 'prepare' of batch {batch_id} has begun for 3 people, 1 step each. Next: phase 'move'.\n"
    )
    live.settle()
    advanced = good_json(run("batch", "advance", batch_id, "--output", "json"))
    assert advanced == {
        "action": "phase_dispatched",
        "phaseName": "move",
        "memberCount": 3,
        "stepCount": 2,
        "nextPhase": None,
    }
    live.settle()
    assert good(run("batch", "advance", batch_id)) == f"Batch {batch_id} has ended: every phase has.\n"
    shown = good(run("batch", "get", batch_id))
    assert "Status:  completed\n" in shown
    assert "Members: 3: 3 completed\n" in shown
    assert "\nInit:\n" in shown


def test_lists_and_their_filters(run: Run, live: Live, batch: int) -> None:
    found = good_json(run("batch", "get", batch, "--output", "json"))
    assert set(found) == {"batch", "phases", "initSteps"}
    name = found["batch"]["runbookName"]
    listed = good_json(run("batch", "list", "--runbook", name, "--output", "json"))
    assert [each["id"] for each in listed["batches"]] == [batch]
    assert good_json(run("batch", "list", "--runbook", name, "--status", "active", "--output", "json"))["total"] == 0
    assert good_json(run("batch", "list", "--runbook", name, "--automatic", "--output", "json"))["total"] == 0
    assert good(run("batch", "list", "--runbook", name, "--manual")).splitlines()[1].split()[:2] == [str(batch), name]
    empty = run("batch", "list", "--runbook", "nobody")
    assert (good(empty), empty.stderr) == ("", "There are no such batches.\n")
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    phases = good_json(run("batch", "phases", batch, "--output", "json"))["phases"]
    assert [each["stepsByStatus"] for each in phases] == [{"succeeded": 3}, {}]
    plain = good_json(run("batch", "phases", batch, "--no-counts", "--output", "json"))["phases"]
    assert [each["stepsByStatus"] for each in plain] == [None, None]
    assert good(run("batch", "phases", batch)).splitlines()[1].split()[:3] == ["prepare", "T-1d", "completed"]
    steps = good_json(run("batch", "steps", batch, "--member", "ben", "--output", "json"))
    assert [(each["memberKey"], each["stepName"]) for each in steps["steps"]] == [("ben", "prepare")]
    assert good_json(run("batch", "steps", batch, "--phase", "move", "--output", "json"))["total"] == 0
    assert good_json(run("batch", "steps", batch, "--status", "succeeded", "--output", "json"))["total"] == 3
    assert good(run("batch", "steps", batch)).count("succeeded") == 3


def test_pages(run: Run, live: Live) -> None:
    batch = live.batch(*(f"p{number}" for number in range(7)))
    first = run("batch", "members", batch, "--limit", 3)
    assert len(good(first).splitlines()) == 4
    assert "3 of 7." in first.stderr
    cursor = first.stderr.split("--cursor ")[1].split()[0]
    second = good(run("batch", "members", batch, "--limit", 3, "--cursor", cursor))
    assert [line.split()[1] for line in second.splitlines()[1:]] == ["p3", "p4", "p5"]
    assert len(good(run("batch", "members", batch, "--offset", 5)).splitlines()) == 3
    everything = run("batch", "members", batch, "--limit", 2, "--all")
    assert len(good(everything).splitlines()) == 8
    assert everything.stderr == ""
    found = good_json(run("batch", "members", batch, "--limit", 2, "--all", "--output", "json"))
    assert [each["memberKey"] for each in found["members"]] == [f"p{number}" for number in range(7)]
    assert (found["total"], found["nextCursor"]) == (7, None)
    assert "exclude" in bad(run("batch", "members", batch, "--offset", 1, "--cursor", cursor), 2)
    assert "cursor" in bad(run("batch", "members", batch, "--cursor", "???"))


def test_members_and_what_was_done_to_them(run: Run, live: Live, batch: int) -> None:
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    one = good_json(run("batch", "members", batch, "--member", "ben", "--output", "json"))
    assert [each["memberKey"] for each in one["members"]] == ["ben"]
    member_id = one["members"][0]["id"]
    assert good_json(run("batch", "members", batch, "--member", member_id, "--output", "json")) == one
    assert good_json(run("batch", "members", batch, "--status", "failed", "--output", "json"))["total"] == 0
    assert "Mail=ben@example.test" in good(run("batch", "members", batch, "--data", "--member", "ben"))
    shown = good(run("batch", "member", batch, "ben", "--values"))
    assert f"Member:    ben (id {member_id} in batch {batch})\n" in shown
    assert "\nSteps:\n" in shown
    assert "Mail=ben@example.test" in shown
    history = good_json(run("batch", "member", batch, member_id, "--output", "json"))
    assert set(history) == {"batchId", "member", "steps", "rollbacks", "removals"}
    assert bad(run("batch", "member", batch, "nobody")).startswith(f"batch {batch} has no member 'nobody'")
    found = good_json(run("find", "BEN", "--all", "--output", "json"))
    assert batch in [each["batch"]["id"] for each in found["places"]]
    assert f"{batch} " in good(run("find", "ben", "--all"))
    assert run("find", "nobody@here").stderr == "No batch has, or had, a member of this key.\n"


def test_what_goes_wrong(run: Run, live: Live) -> None:
    phases = [
        {"name": "move", "offset": "T-0", "steps": [step("move", on_failure="undo")]},
    ]
    rollbacks = {"undo": [step("back")]}
    batch = live.batch("anna", "ben", phases=phases, rollbacks=rollbacks)
    live.function = failing("move")
    try:
        live.post(f"/api/batches/{batch}/advance")
        live.settle()
    finally:
        live.function = None
    listed = good(run("batch", "failures", batch))
    assert "no such mailbox" in listed
    assert good_json(run("batch", "failures", batch, "--limit", 5, "--output", "json"))["failures"][0]["count"] == 1
    assert "no such mailbox" in good(run("batch", "steps", batch, "--status", "failed"))
    assert "\nRollbacks:\n" in good(run("batch", "member", batch, "ben"))
    other = run("batch", "failures", live.batch())
    assert (good(other), other.stderr) == ("", "Nothing went wrong.\n")


def test_joining_and_leaving(run: Run, batch: int, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_bytes(csv("carl", "dora", "emil"))
    result = run("batch", "add-members", batch, "more.csv")
    assert good(result) == f"Added 2 people to batch {batch}, left out 1.\n"
    assert "Warning: left out: 'carl'" in result.stderr
    added = good_json(run("batch", "add-members", batch, "-", "--output", "json", given=csv("fritz")))
    assert (added["addedCount"], added["skippedCount"]) == (1, 0)
    said = bad(run("batch", "remove-member", batch, "dora"))
    assert said.startswith("This would take 1 person, 'dora' (id ")
    assert said.endswith("give --force to do it all the same. Nothing was done.")
    assert good_json(run("batch", "members", batch, "--status", "removed", "--output", "json"))["total"] == 0
    assert good(run("batch", "remove-member", batch, "dora", "--force")).startswith("'dora' is removed from batch")
    member_id = good_json(run("batch", "members", batch, "--member", "emil", "--output", "json"))["members"][0]["id"]
    removed = good_json(run("batch", "remove-member", batch, member_id, "--force", "--output", "json"))
    assert removed["memberId"] == member_id
    assert "removed" in bad(run("batch", "remove-member", batch, "dora", "--force"))
    assert bad(run("batch", "remove-member", batch, "nobody", "--force")).startswith(f"batch {batch} has no member")


def test_cancelling_says_how_many_are_under_way(run: Run, batch: int) -> None:
    said = bad(run("batch", "cancel", batch))
    assert "for 3 people under way (its members: 3 active). That cannot be undone" in said
    assert said.endswith("Nothing was done.")
    assert "Status:    detected\n" in good(run("batch", "get", batch))
    assert good(run("batch", "cancel", batch, "--force")) == f"batch {batch} is cancelled\n"
    assert "cancelled" in bad(run("batch", "cancel", batch, "--force"))
    assert "cancelled" in bad(run("batch", "advance", batch))


def test_cancelling_in_json(run: Run, batch: int) -> None:
    found = good_json(run("batch", "cancel", batch, "--force", "--output", "json"))
    assert (found["batchId"], found["status"]) == (batch, "cancelled")


def test_nothing_is_held(run: Run, batch: int) -> None:
    # This server was started without what releases removals; the next test has it.
    assert "was started without" in bad(run("batch", "release-removals", batch, "--force"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "people.csv is empty"),
        (b"Key,Start\nanna,2030-01-01\n", "Mail"),
        (b"Key,Start,Mail\n,2030-01-01,x\n,2030-01-02,x\n", "2 errors"),
        (b"PK\x03\x04zipped", "the file was not taken"),
        (b'Key,Start,Mail\n"anna,2030-01-01,x\n', "the file was not taken"),
    ],
)
def test_wrong_files_are_told_whole(run: Run, live: Live, tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "people.csv").write_bytes(content)
    assert expected in bad(run("batch", "create", live.publish(), "people.csv"))


def test_files_that_are_none(run: Run, live: Live, batch: int, tmp_path: Path) -> None:
    name = live.publish()
    assert "does not exist" in bad(run("batch", "create", name, "none.csv"), 2)
    assert "is a directory" in bad(run("batch", "add-members", batch, tmp_path), 2)
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    assert bad(run("batch", "create", name, "large.csv")) == "large.csv is larger than 50 MB, and not taken"
    (tmp_path / "people.csv").write_bytes(csv("anna"))
    assert bad(run("batch", "create", "nobody", "people.csv")) == "there is no active runbook 'nobody'"


@pytest.mark.parametrize(
    "command",
    [
        ["get"],
        ["members"],
        ["phases"],
        ["steps"],
        ["failures"],
        ["advance"],
        ["advance", "--auto"],
        ["watch"],
        ["cancel"],
        ["cancel", "--force"],
        ["release-removals"],
        ["member", "anna"],
        ["remove-member", "anna"],
    ],
)
def test_a_batch_that_is_not_there(run: Run, command: list[str]) -> None:
    first, *others = command
    assert bad(run("batch", first, 999999, *others)) == "there is no batch 999999"


@pytest.mark.parametrize("given", ["0", "-1", "x", "1.5", "99999999999999999999", "१x"])
def test_ids_that_are_none(run: Run, given: str) -> None:
    assert bad(run("batch", "get", "--", given), 2)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("batch list --limit 3", "/api/batches?limit=3"),
        ("batch get {batch}", "/api/batches/{batch}"),
        ("batch members {batch} --limit 2", "/api/batches/{batch}/members?limit=2"),
        ("batch phases {batch}", "/api/batches/{batch}/phases?counts=true"),
        ("batch steps {batch} --member anna", "/api/batches/{batch}/steps?member=anna"),
        ("batch failures {batch}", "/api/batches/{batch}/failures"),
        ("find anna --limit 3", "/api/members?key=anna&limit=3"),
        ("runbook list --limit 4", "/api/runbooks?limit=4"),
        ("runbook get {name}", "/api/runbooks/{name}"),
        ("runbook get {name} --version 1", "/api/runbooks/{name}/versions/1"),
        ("runbook versions {name}", "/api/runbooks/{name}/versions"),
        ("automation status {name}", "/api/runbooks/{name}/automation"),
        ("dead-letter list", "/api/dead-letters"),
        ("audit --batch {batch} --limit 1", "/api/audit?batchId={batch}&limit=1"),
        ("status", "/api/status"),
    ],
)
def test_json_is_what_the_api_says(run: Run, live: Live, batch: int, command: str, path: str) -> None:
    name = live.get(f"/api/batches/{batch}")["batch"]["runbookName"]
    arguments = command.format(batch=batch, name=name).split()
    assert good_json(run(*arguments, "--output", "json")) == live.get(path.format(batch=batch, name=name))


def test_text_is_not_json_and_json_is_nothing_else(run: Run, batch: int) -> None:
    for command in (["get", batch], ["list"], ["members", batch], ["phases", batch], ["steps", batch]):
        result = run("batch", *command, "--output", "json")
        assert isinstance(json.loads(good(result)), dict)
        assert result.stderr == ""
