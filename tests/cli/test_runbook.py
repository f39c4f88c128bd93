"""`matoolkit runbook`: errors with their places for people and for programs, and the schema for editors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from matoolkit.cli.main import main
from matoolkit.runbooks import json_schema

EXAMPLES = Path(__file__).parents[2] / "examples"
BROKEN = "name: wave\nnam: x\n"


def run(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(main, ["runbook", *arguments], input=given)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    return file


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_valid(example: Path) -> None:
    result = run("validate", str(example))
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert result.stdout.endswith(f"{example} is valid\n")


def test_every_error_is_reported_with_its_place(broken: Path) -> None:
    result = run("validate", str(broken))
    assert result.exit_code == 1
    assert f"{broken}: error: line 1, column 1: 'data_source' is missing\n" in result.stdout
    assert f"{broken}: error: line 1, column 1: 'phases' is missing\n" in result.stdout
    assert result.stderr == f"Error: {broken} has 3 errors\n"


def test_unknown_keys_are_errors_with_a_hint_and_reported_once(broken: Path) -> None:
    result = run("validate", str(broken))
    assert [line for line in result.stdout.splitlines() if "'nam'" in line] == [
        f"{broken}: error: line 2, column 1: nam: 'nam' is not a key here (did you mean 'name'?)"
    ]


def test_programs_read_json(broken: Path) -> None:
    result = run("validate", "--output", "json", str(broken))
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["valid"] is False
    assert report["warnings"] == []
    assert {
        "line": 2,
        "column": 1,
        "path": "nam",
        "message": "'nam' is not a key here",
        "hint": "did you mean 'name'?",
    } in report["errors"]


def test_a_valid_runbook_is_valid_json_too() -> None:
    result = run("validate", "--output", "json", str(EXAMPLES / "every-feature.yaml"))
    assert result.exit_code == 0
    assert json.loads(result.stdout)["valid"] is True


@pytest.mark.parametrize("given", [b"", b"\xff\xfe\x00", b"name: [", b"- a\n"])
def test_whatever_it_is_given_it_answers(given: bytes) -> None:
    result = run("validate", "-", given=given)
    assert result.exit_code == 1
    assert "<stdin>: error: line " in result.stdout
    assert result.stderr == "Error: <stdin> has 1 error\n"


def test_a_missing_file_is_a_wrong_call(tmp_path: Path) -> None:
    result = run("validate", str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_the_schema_is_printed() -> None:
    assert json.loads(run("schema").stdout) == json_schema()
