"""The API as a process of its own, on a database that others share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import requests
from click.testing import CliRunner

from matoolkit.cli.main import main
from matoolkit.hosts.api_parts import publish_rules
from matoolkit.local_key import load_local_key
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate

if TYPE_CHECKING:
    from pathlib import Path


def test_it_is_started_answers_and_is_ended(postgres_url: str, tmp_path: Path) -> None:
    database = open_database(postgres_url)
    migrate(database)
    database.close()
    environment = {
        **os.environ,
        "MATOOLKIT_DATA": str(tmp_path),
        "AdminApi__SqlConnectionString": postgres_url,
        "AdminApi__Port": "0",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "matoolkit", "api"], env=environment, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stderr is not None
        url = next(line for line in process.stderr if "listens at" in line).split()[-1]
        token = load_local_key(tmp_path).token("anna", ["Admin"], datetime.now(UTC), timedelta(minutes=5))
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "first"}
        answer = requests.get(f"{url}/api/batches", headers=headers, timeout=30)
        assert (answer.status_code, answer.json()["total"]) == (200, 0)
        process.send_signal(signal.SIGTERM)
        log = process.stderr.read()
        assert process.wait(30) == 0
    assert "[first] GET /api/batches: 200" in log


def started(tmp_path: Path, **environment: str) -> str:
    result = CliRunner().invoke(main, ["api"], env={"MATOOLKIT_DATA": str(tmp_path), **environment})
    assert result.exit_code == 1
    return result.stderr


def test_without_a_database_it_says_what_is_missing(tmp_path: Path) -> None:
    assert "set AdminApi__SqlConnectionString" in started(tmp_path)
    assert "`matoolkit up`" in started(tmp_path, MATOOLKIT_DATABASE_URL=f"sqlite:///{tmp_path}/x.db")


def test_settings_that_are_wrong_are_all_named(tmp_path: Path) -> None:
    told = started(tmp_path, AdminApi__Port="many", AzureAd__TenantId="x")
    assert "AdminApi__Port" in told
    assert "AzureAd__TenantId" in told


def test_an_old_schema_is_refused(tmp_path: Path, postgres_url: str) -> None:
    assert "matoolkit migrate" in started(tmp_path, MATOOLKIT_DATABASE_URL=postgres_url)


def test_passwords_of_standard_functions_are_known() -> None:
    known = publish_rules({}, None).secret_parameters
    assert {"New-EntraUser", "Convert-EntraB2BToInternal"} <= set(known)
    assert known["New-EntraUser"] == {"Password"}


@pytest.mark.parametrize(
    ("variable", "allowed"), [("SQL_PEOPLE", True), ("MATOOLKIT_DATABASE_URL", False), ("HOME", False)]
)
def test_runbooks_name_only_variables_for_sources(variable: str, *, allowed: bool) -> None:
    rules = publish_rules({"HOME": "/", "MATOOLKIT_DATABASE_URL": "x"}, None)
    assert rules.connection_is_allowed is not None
    assert rules.connection_is_allowed(variable) is allowed
