"""Which variables a runbook may name, what is missing, and who signs in."""

from __future__ import annotations

import sys
from datetime import timedelta
from decimal import Decimal
from ipaddress import ip_address
from threading import Event
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from azure.identity import CredentialUnavailableError

from matoolkit.hosts.sources import alarm
from matoolkit.runbooks.model import SourceType
from matoolkit.scheduler.sources import (
    ExtraNotInstalled,
    SignInRefused,
    SourceUnavailable,
    VariableNotAllowed,
    VariableNotSet,
    open_source,
)
from matoolkit.scheduler.sources.tokens import EntraTokens
from matoolkit.scheduler.sources.values import plain_rows
from tests.scheduler.sources.reading import described, settings

TYPES = sorted(SourceType)
NOTHING_SET = {"PATH": "/bin", "SQL_EMPTY": "  "}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "MATOOLKIT_DATABASE_URL",
        "MATOOLKIT_SECRET_API_KEY",
        "Scheduler__SqlConnectionString",
        "APP_CERT_PASSWORD",
        "AZURE_CLIENT_SECRET",
        "XSQL_PEOPLE",
        "DATAVERSE",
    ],
)
def test_a_runbook_names_only_what_is_meant_for_it(kind: str, name: str) -> None:
    with pytest.raises(VariableNotAllowed, match=name) as caught:
        open_source(described(kind, name, "SELECT 1"), settings({name: "a-secret-value"}))
    assert "a-secret-value" not in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["SQL_PEOPLE", "SQL_EMPTY", "MATOOLKIT_SOURCE_PEOPLE"])
def test_a_variable_that_is_not_set_is_named(kind: str, name: str) -> None:
    with pytest.raises(VariableNotSet, match=f"{name}, which the runbook names as its connection, is not set"):
        open_source(described(kind, name, "SELECT 1"), settings(NOTHING_SET))


@pytest.mark.parametrize(
    "name",
    ["MATOOLKIT_DATABASE_URL", "matoolkit_database_url", "AdminApi__Key", "APP_CLIENT_SECRET", "AZURE_TENANT_ID"],
)
def test_the_products_own_variables_are_never_allowed(name: str) -> None:
    given = settings({name: "x"}, allowed=("*",))
    with pytest.raises(VariableNotAllowed, match="own settings"):
        given.variable(name, "its connection")


def test_an_operator_may_allow_others() -> None:
    given = settings({"HR_VIEW": "x", "SQL_PEOPLE": "y"}, allowed=("hr_*",))
    assert given.variable("HR_VIEW", "its connection") == "x"
    with pytest.raises(VariableNotAllowed, match=r"it may name hr_\*"):
        given.variable("SQL_PEOPLE", "its connection")


@pytest.mark.parametrize(
    ("kind", "package", "module"),
    [
        ("files", "duckdb", "files"),
        ("dataverse", "pytds", "dataverse"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_what_installs_it(
    kind: str, package: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("matoolkit.scheduler.sources.")]:
        if name.rpartition(".")[2] in {module, "pytds_mended"}:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraNotInstalled, match=rf"package {package}: run pip install 'matoolkit\[{kind}\]'"):
        open_source(described(kind, "MATOOLKIT_SOURCE_PEOPLE", "SELECT 1"), settings({"MATOOLKIT_SOURCE_PEOPLE": "/x"}))


# Values --------------------------------------------------------------------------------------------------------------


def test_what_json_cannot_hold_becomes_what_people_write() -> None:
    given = [float("nan"), float("-inf"), Decimal("NaN"), b"\x01", memoryview(b"\x02"), timedelta(hours=1)]
    (row,) = plain_rows([[*given, ip_address("127.0.0.1"), (1, b"\x03"), {1: {2}}]])
    assert row == ("nan", "-inf", "nan", "01", "02", "1:00:00", "127.0.0.1", [1, "03"], {"1": [2]})


# Signing in ----------------------------------------------------------------------------------------------------------


class Credential:
    """Stands in for the one of azure-identity."""

    made: list[dict[str, Any]]
    error: Exception | None = None

    def __init__(self, **options: Any) -> None:
        self.made.append(options)

    def get_token(self, scope: str) -> AccessToken:
        if self.error:
            raise self.error
        return AccessToken(f"token for {scope}", 0)


@pytest.fixture
def credential(monkeypatch: pytest.MonkeyPatch) -> type[Credential]:
    class Fresh(Credential):
        made: list[dict[str, Any]] = []  # noqa: RUF012 - a class of its own for each test

    monkeypatch.setattr("azure.identity.DefaultAzureCredential", Fresh)
    return Fresh


def test_each_identity_signs_in_once(credential: type[Credential]) -> None:
    tokens = EntraTokens()
    assert tokens("a/.default") == "token for a/.default"
    assert tokens("b/.default") == "token for b/.default"
    assert tokens("a/.default", "id") == "token for a/.default"
    assert [options["managed_identity_client_id"] for options in credential.made] == [None, "id"]
    assert all(options["exclude_interactive_browser_credential"] for options in credential.made)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ClientAuthenticationError("AADSTS7000215: invalid secret s3cret"), SignInRefused),
        (CredentialUnavailableError("no identity s3cret"), SignInRefused),
        (ServiceRequestError("no route s3cret"), SourceUnavailable),
    ],
)
def test_a_refused_sign_in_says_what_to_do(
    credential: type[Credential], error: Exception, kind: type[Exception]
) -> None:
    credential.error = error
    with pytest.raises(kind, match=r"no token for https://org/\.default( \(AADSTS7000215\))?:") as caught:
        EntraTokens()("https://org/.default")
    assert "s3cret" not in str(caught.value)


# Alarms --------------------------------------------------------------------------------------------------------------


def test_an_alarm_rings_unless_it_is_called_off() -> None:
    rung, never = Event(), Event()
    call_off = alarm(3600, never.set)
    alarm(0.01, rung.set)
    assert rung.wait(10)
    call_off()
    assert not never.is_set()
