"""`matoolkit migrate`: which database it takes, what it says, and what it never says."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from matoolkit.cli.main import main
from matoolkit.store.database import open_database
from matoolkit.store.migrate import require_current

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING_SET = {"MATOOLKIT_DATABASE_URL": "", "MATOOLKIT_DATA": ""}


def run(*arguments: str, **variables: str) -> Result:
    environment: Mapping[str, str] = NOTHING_SET | variables
    return CliRunner().invoke(main, ["migrate", *arguments], env=environment)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_database_is_in_the_data_folder_by_default() -> None:
    result = run()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == ("The SQLite database matoolkit-data/matoolkit.db is now at revision 0001 (it was empty)\n")
    assert stat.S_IMODE(Path("matoolkit-data").stat().st_mode) == 0o700
    again = run()
    assert again.stdout == "The SQLite database matoolkit-data/matoolkit.db is up to date, at revision 0001\n"


def test_the_data_folder_can_be_another(tmp_path: Path) -> None:
    folder = tmp_path / "some 100% odd" / "folder?x=1"
    assert run(MATOOLKIT_DATA=str(folder)).exit_code == 0
    assert (folder / "matoolkit.db").is_file()
    assert not Path("matoolkit-data").exists()


def test_the_option_beats_the_variable_and_the_variable_the_folder() -> None:
    variables = {"MATOOLKIT_DATABASE_URL": "sqlite:///variable.db", "MATOOLKIT_DATA": "folder"}
    assert run("--database-url", "sqlite:///option.db", **variables).exit_code == 0
    assert {each.name for each in Path().iterdir()} == {"option.db"}
    assert run(**variables).exit_code == 0
    assert {each.name for each in Path().iterdir()} == {"option.db", "variable.db"}


def test_programs_read_json(postgres_url: str) -> None:
    reports = [json.loads(run("--output", "json", "--database-url", postgres_url).stdout) for _ in range(2)]
    assert [report["applied"] for report in reports] == [["0001"], []]
    assert [report["before"] for report in reports] == [None, "0001"]
    assert {report["after"] for report in reports} == {"0001"}
    assert reports[0]["database"].startswith("the PostgreSQL database test_")
    database = open_database(postgres_url)
    require_current(database)
    database.close()


def test_two_processes_at_once_on_one_database(postgres_url: str) -> None:
    command = [sys.executable, "-m", "matoolkit", "migrate", "--output", "json", "--database-url", postgres_url]

    def process(_: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(process, range(3)))
    assert [result.stderr for result in results] == [""] * 3
    assert sorted(json.loads(result.stdout)["applied"] for result in results) == [[], [], ["0001"]]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("swordfish", "the database URL cannot be read"),
        ("postgresql://anna:sword@fish@db/x", "more than one @"),
        ("mysql://anna:swordfish@db/x", "mysql is none of the databases"),
        ("mssql+nosuch://anna:swordfish@db/x", "mssql+nosuch is not the driver used here"),
        ("postgresql://anna:swordfish@127.0.0.1:1/x", "the PostgreSQL database x on 127.0.0.1:1: connection failed"),
        ("postgresql://anna:swordfish@/x?host=/none&nosuch=swordfish", 'invalid connection option "nosuch"'),
        ("sqlite:////none/x.db", "the SQLite database /none/x.db: unable to open database file"),
    ],
)
def test_what_is_wrong_is_one_line_without_the_password(url: str, expected: str) -> None:
    result = run("--database-url", url)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert expected in result.stderr
    assert "swordfish" not in result.output
    assert len(result.stderr.splitlines()) == 1


def test_a_data_folder_that_cannot_be_made_is_named() -> None:
    Path("file").write_text("")
    result = run(MATOOLKIT_DATA="file/folder")
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: the data folder file/folder cannot be made: Not a directory\n",
    )


def test_a_newer_database_is_left_alone() -> None:
    run("--database-url", "sqlite:///x.db")
    database = open_database("sqlite:///x.db")
    with database.transaction() as tx:
        tx.connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    result = run("--database-url", "sqlite:///x.db")
    assert result.exit_code == 1
    assert "is at revision 9999, which is newer than this version of matoolkit" in result.stderr
