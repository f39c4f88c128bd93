"""The frame of the command line: a fast start, one line for each error, and help that lists every command."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner, Result

from matoolkit import __version__
from matoolkit.cli.main import SUBCOMMANDS, LazyGroup, Subcommand, main
from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from pathlib import Path


class Unreachable(MatoolkitError):
    """The server cannot be reached.

    What else there is to say about it.
    """


@click.command()
@click.argument("message", required=False, default="")
def failing(message: str) -> None:
    """Fail."""
    raise Unreachable(message)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def run_failing(*arguments: str) -> Result:
    group = LazyGroup("matoolkit", subcommands={"failing": Subcommand(f"{__name__}:failing", "Fail.")})
    return CliRunner().invoke(group, list(arguments))


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"matoolkit, version {__version__}\n")


def test_help_lists_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name, subcommand in SUBCOMMANDS.items():
        assert f"  {name} " in result.output
        assert subcommand.summary[:30] in result.output


@pytest.mark.parametrize("name", sorted(SUBCOMMANDS))
def test_the_listed_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == SUBCOMMANDS[name].summary


@pytest.mark.parametrize(
    "name", ["batch", "runbook", "auth", "config", "automation", "query", "template", "dead-letter"]
)
def test_help_of_a_group_cuts_no_sentence(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "..." not in result.output.partition("Commands:")[2]


def test_an_error_of_ours_is_one_line_and_exit_code_1() -> None:
    result = run_failing("failing", "The server at 10.0.0.1 cannot be reached.")
    assert (result.exit_code, result.stderr) == (1, "Error: The server at 10.0.0.1 cannot be reached.\n")


def test_an_error_without_a_message_says_what_its_class_says() -> None:
    assert run_failing("failing").stderr == "Error: The server cannot be reached.\n"


def test_a_fault_of_the_program_is_not_hidden() -> None:
    group = LazyGroup("matoolkit", subcommands={"broken": Subcommand("matoolkit.errors:MatoolkitError", "Break.")})
    assert isinstance(CliRunner().invoke(group, ["broken"]).exception, TypeError)


@pytest.mark.parametrize(("arguments", "expected"), [(["runbok"], "Did you mean 'runbook'?"), (["--nope"], "--nope")])
def test_a_wrong_call_is_exit_code_2(arguments: list[str], expected: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error: No such" in result.stderr
    assert expected in result.stderr


def test_help_starts_fast() -> None:
    # Processor time: what the command costs, however busy the machine is with other tests.
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "matoolkit", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(seconds) < 0.3


def test_nothing_heavy_is_imported_for_help() -> None:
    code = (
        "import sys, json, matoolkit.cli.main as m\n"
        "try: m.main(['--help'])\n"
        "except SystemExit: print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    heavy = {"alembic", "asyncio", "msgspec", "psycopg", "rich", "sqlalchemy", "yaml"}
    assert heavy & set(json.loads(result.stderr)) == set()


def test_python_m_is_the_same_command(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "matoolkit", "--version"],
        cwd=tmp_path,
        env=dict(os.environ),
        check=True,
        capture_output=True,
        text=True,
    )
    assert result.stdout == run("--version").stdout
