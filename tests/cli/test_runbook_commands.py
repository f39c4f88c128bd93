"""Runbooks, their automation, queries and templates, through the command line and a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.cli.files import LARGEST_RUNBOOK
from tests.api.people import csv, runbook, step
from tests.api.test_runbooks import automatic_batch
from tests.cli.conftest import bad, good, good_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.api.live import Live
    from tests.cli.conftest import Run


@pytest.fixture
def wave(live: Live, tmp_path: Path) -> Path:
    """A runbook in a file that is called after it."""
    name = live.name()
    file = tmp_path / f"{name}.yaml"
    file.write_text(runbook(name))
    return file


def test_published_listed_shown_and_taken_out_of_force(run: Run, wave: Path) -> None:
    name = wave.stem
    assert good(run("runbook", "publish", wave)).startswith("Published as version 1 (runbook id ")
    second = good_json(
        run("runbook", "publish", wave, "--overdue-behavior", "ignore", "--rerun-init", "--output", "json")
    )
    assert second["version"] == 2
    assert set(second) == {"runbookId", "version", "dataTableName", "warnings"}
    line = next(line for line in good(run("runbook", "list", "--all")).splitlines() if line.startswith(name))
    assert line.split()[1] == "2"
    assert "ignore" in line
    shown = good(run("runbook", "get", name))
    assert f"Runbook:        {name}\n" in shown
    assert shown.endswith(wave.read_text())
    assert good(run("runbook", "get", name, "--yaml", "--version", 1)) == wave.read_text()
    assert good_json(run("runbook", "get", name.upper(), "--output", "json"))["rerunInit"] is True
    versions = good(run("runbook", "versions", name)).splitlines()
    assert [line.split()[:2] for line in versions[1:]] == [["2", "yes"], ["1", "no"]]
    assert good(run("runbook", "delete", name, 2, "--force")) == (
        f"version 2 of runbook '{name}' is no longer in force\n"
    )
    assert "not in force" in bad(run("runbook", "delete", name, 2, "--force"))
    assert bad(run("runbook", "get", name)) == f"there is no active runbook '{name}'"


def test_a_runbook_from_standard_input(run: Run, live: Live) -> None:
    name = live.name()
    assert "version 1" in good(run("runbook", "publish", "-", given=runbook(name)))


def test_warnings_are_on_standard_error(run: Run, live: Live) -> None:
    result = run("runbook", "publish", "-", given=runbook(live.name(), colour="red"))
    assert "version 1" in good(result)
    assert "Warning: " in result.stderr
    assert "colour" in result.stderr


def test_every_error_has_its_place(run: Run, live: Live) -> None:
    name = live.name()
    text = runbook(name, phases=[{"name": "a", "offset": "soon", "steps": [step("x", worker_id="")]}])
    lines = bad(run("runbook", "publish", "-", given=text)).splitlines()
    assert len(lines) >= 3
    assert all("line " in line for line in lines[1:])


def test_a_name_that_does_not_agree(run: Run, wave: Path) -> None:
    assert "other" in bad(run("runbook", "publish", wave, "--name", "other"))


@pytest.mark.parametrize("given", [b"name: [", b"- a\n- b\n", b"\x00", b"name: {a: b}", b"a: &a [*a]\n"])
def test_what_is_no_runbook_is_told_by_the_server(run: Run, given: bytes) -> None:
    assert bad(run("runbook", "publish", "-", given=given))


def test_files_that_are_none(run: Run, tmp_path: Path) -> None:
    assert "does not exist" in bad(run("runbook", "publish", "none.yaml"), 2)
    assert "is a directory" in bad(run("runbook", "publish", tmp_path), 2)
    (tmp_path / "empty.yaml").write_bytes(b"")
    assert bad(run("runbook", "publish", "empty.yaml")) == "empty.yaml is empty"
    (tmp_path / "latin.yaml").write_bytes("name: Größe\n".encode("latin-1"))
    assert bad(run("runbook", "publish", "latin.yaml")) == (
        "latin.yaml is not text in UTF-8: byte 8 is none; save it as UTF-8"
    )
    (tmp_path / "large.yaml").write_bytes(b"#" * (LARGEST_RUNBOOK + 1))
    assert bad(run("runbook", "publish", "large.yaml")) == "large.yaml is larger than 4 MB, and not taken"


def test_deleting_says_how_many_go_on_and_does_nothing_without_a_yes(run: Run, live: Live) -> None:
    name = live.publish()
    live.create(name, "anna", "ben")
    live.create(name, "carl")
    said = bad(run("runbook", "delete", name, 1))
    assert "2 open batches of the runbook, with 3 people, would go on" in said
    assert "Nothing was done." in said
    assert good_json(run("runbook", "get", name, "--output", "json"))["isActive"] is True
    assert good_json(run("runbook", "delete", name, 1, "--force", "--output", "json"))["version"] == 1


def test_publishing_over_open_batches_has_to_be_meant(run: Run, live: Live, wave: Path) -> None:
    good(run("runbook", "publish", wave))
    batch = automatic_batch(live, wave.stem, "anna")
    said = bad(run("runbook", "publish", wave))
    assert f"batches are open and will go over to the new version ({batch})" in said
    assert said.endswith("Publish again with --overdue-behavior rerun, or with --overdue-behavior ignore.")
    assert "version 2" in good(run("runbook", "publish", wave, "--overdue-behavior", "ignore"))


def test_automation(run: Run, live: Live) -> None:
    name = live.publish()
    assert "Automation: enabled\n" in good(run("automation", "status", name))
    assert "Automation:    disabled\nDisabled last: " in good(run("automation", "disable", name))
    found = good_json(run("automation", "status", name, "--output", "json"))
    assert (found["automationEnabled"], found["disabledBy"] is None) == (False, False)
    assert good_json(run("automation", "enable", name, "--output", "json"))["automationEnabled"] is True
    for command in ("status", "enable", "disable"):
        assert bad(run("automation", command, "nobody")) == "there is no runbook 'nobody'"


def test_a_template_is_written_and_never_over_a_file(run: Run, live: Live, tmp_path: Path) -> None:
    name = live.publish()
    assert good(run("template", "download", name)) == f"Wrote {name}-template.csv.\n"
    content = (tmp_path / f"{name}-template.csv").read_bytes()
    assert content.splitlines()[0] == b"Key,Start,Mail"
    assert bad(run("template", "download", name)).startswith(f"{name}-template.csv is there already")
    good(run("template", "download", name, "--force"))
    good(run("template", "download", name, "people.csv"))
    assert (tmp_path / "people.csv").read_bytes() == content
    assert run("template", "download", name, "-").stdout_bytes == content
    found = good_json(run("template", "download", name, "more.csv", "--output", "json"))
    assert (found["file"], found["content"].encode()) == ("more.csv", content)
    assert bad(run("template", "download", "nobody")) == "there is no active runbook 'nobody'"
    assert "cannot be written" in bad(run("template", "download", name, "none/people.csv"))


def test_the_template_leads_to_a_batch(run: Run, live: Live, tmp_path: Path) -> None:
    name = live.publish()
    good(run("template", "download", name, "people.csv"))
    header = (tmp_path / "people.csv").read_text().splitlines()[0]
    (tmp_path / "people.csv").write_bytes(csv("anna", header=header))
    assert "of 1 person" in good(run("batch", "create", name, "people.csv"))
