"""Addresses of Azure SQL databases: what is understood, what is passed over, what is refused, and never quoted."""

from __future__ import annotations

import subprocess
import sys

import pytest

from matoolkit.connection_strings import fields, server_place
from matoolkit.store.address import BadDatabaseUrl, described, parsed
from matoolkit.store.database import open_database

PORTAL = (
    "Server=tcp:waves.database.windows.net,1433;Initial Catalog=matoolkit;Persist Security Info=False;"
    "MultipleActiveResultSets=False;Encrypt=True;TrustServerCertificate=False;Connection Timeout=30;"
    'Authentication="Active Directory Managed Identity";'
)
MINE = "Server=waves.database.windows.net;Database=matoolkit;Authentication=Active Directory Default"


def option(address: str, name: str) -> object:
    return parsed(address).query.get(name)


def test_the_string_that_the_portal_gives() -> None:
    address = parsed(PORTAL)
    assert (address.host, address.port, address.database) == ("waves.database.windows.net", 1433, "matoolkit")
    assert dict(address.query) == {
        "authentication": "ActiveDirectoryManagedIdentity",
        "encrypt": "yes",
        "connect_timeout": "30",
    }
    assert described(address) == "the Azure SQL database matoolkit on waves.database.windows.net"


@pytest.mark.parametrize(
    "address",
    [
        "mssql+mssqlpython://waves.database.windows.net/matoolkit?authentication=ActiveDirectoryManagedIdentity",
        "mssql://waves.database.windows.net:1433/matoolkit?Authentication=ActiveDirectoryMSI&Encrypt=yes",
        "data source=waves.database.windows.net ; DATABASE = matoolkit;authentication=ActiveDirectoryMsi",
        "Addr=tcp:WAVES.database.windows.net;Database='matoolkit';Authentication={Active Directory Managed Identity}",
    ],
)
def test_other_ways_of_saying_the_same(address: str) -> None:
    found = parsed(address)
    assert found.drivername == "mssql+azuresql"
    assert (found.host, found.port, found.database) == ("waves.database.windows.net", 1433, "matoolkit")
    assert found.query["authentication"] == "ActiveDirectoryManagedIdentity"
    assert parsed(found) == found
    assert parsed(found.render_as_string(hide_password=False)) == found


def test_a_user_assigned_identity_is_named_by_its_client_id() -> None:
    assert parsed(f"{PORTAL}User Id=6f9619ff-8b86-d011-b42d-00c04fc964ff").username == (
        "6f9619ff-8b86-d011-b42d-00c04fc964ff"
    )


def test_a_password_of_all_letters() -> None:
    address = parsed('Server=waves;Database=w;User ID=anna;Password="s;w=o\'r""d"')
    assert (address.username, str(address.password)) == ("anna", "s;w=o'r\"d")
    assert "s;w" not in described(address) + str(address)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("Server=waves.database.windows.net;Authentication=Active Directory Default", "Database is missing"),
        ("Server=a b;Database=w;Authentication=Active Directory Default", "Server names no server"),
        ("Database=w;Authentication=Active Directory Default", "Server names no server"),
        (f"{MINE};Passwort=swordfish", "no key 'passwort', did you mean password?"),
        (f"{MINE};Password=swordfish", "Password has no place"),
        (f"{MINE};Encrypt=False", "Encrypt must be True or Strict"),
        (f"{MINE};Encrypt=swordfish", "Encrypt must be True or Strict"),
        (f"{MINE};TrustServerCertificate=True", "TrustServerCertificate must be False"),
        (f"{MINE};Connection Timeout=swordfish", "ConnectTimeout must be a whole number"),
        (f"{MINE};ApplicationIntent=ReadOnly", "ApplicationIntent must be ReadWrite"),
        ("Server=waves;Database=w;Authentication=Active Directory Interactive", "a sign-in that a service cannot do"),
        ("Server=waves;Database=w;Integrated Security=SSPI", "a sign-in that a service cannot do"),
        ("Server=waves;Database=w", "User ID and Password are missing"),
        ("Server=waves;Database=w;User ID=anna", "User ID and Password are missing"),
        ("Server=waves;Database=w;swordfish", "a part has no '='"),
        ("mssql+pyodbc://waves/w?driver=x", "write mssql+mssqlpython://"),
        ("mssql+mssqlpython:///w", "names no server"),
        ("mssql+mssqlpython://anna:swordfish@waves/w?colour=blue", "no key 'colour'"),
    ],
)
def test_what_is_wrong_is_named_and_not_quoted(address: str, problem: str) -> None:
    with pytest.raises(
        BadDatabaseUrl, match=r"^the connection string of the Azure SQL database cannot be used: "
    ) as caught:
        parsed(address)
    assert problem in str(caught.value)
    assert "swordfish" not in str(caught.value)


def test_on_this_machine_a_double_may_do_without_encryption() -> None:
    address = "Server=127.0.0.1,1;Database=w;Authentication=Active Directory Default;"
    assert option(f"{address}Encrypt=no", "encrypt") == "no"
    assert option(f"{address}TrustServerCertificate=yes", "trust") == "yes"


def test_who_has_not_installed_the_driver_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mssql_python", None)
    with pytest.raises(BadDatabaseUrl) as caught:
        open_database(MINE)
    assert str(caught.value) == (
        "the Azure SQL database matoolkit on waves.database.windows.net needs the Python package mssql_python"
        " (pip install 'matoolkit[azure]')"
    )


def test_nobody_else_loads_the_driver() -> None:
    asked = "import sys, matoolkit.cli.main, matoolkit.store.database, matoolkit.hosts.shared;"
    told = "print(sorted({'mssql_python', 'azure.identity'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", asked + told], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" ; ;", {}),
        ("A=1;b = 2 ;", {"a": "1", "b": "2"}),
        ("Data   Source=x", {"data source": "x"}),
        ("a=1;A=2", {"a": "2"}),
        ('a=\'1;2\';b="x""y";c={p}}q}', {"a": "1;2", "b": 'x"y', "c": "p}q"}),
        ("a=;b='';c='", {"a": "", "b": "", "c": "'"}),
        ("a=b=c", {"a": "b=c"}),
        ("a={half", {"a": "{half"}),
    ],
)
def test_the_parts_of_a_string(text: str, expected: dict[str, str]) -> None:
    assert fields(text) == expected


@pytest.mark.parametrize("text", ["a", "a=1;b", "=1", "a=1;=2"])
def test_a_string_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a part has no .=.$"):
        fields(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("x", ("x", 1433)), ("tcp:X.y,5558", ("x.y", 5558)), (" x : 9 ", ("x", 9)), ("127.0.0.1", ("127.0.0.1", 1433))],
)
def test_the_place_of_a_server(text: str, expected: tuple[str, int]) -> None:
    assert server_place(text) == expected


@pytest.mark.parametrize("text", ["", "tcp:", "a b", "x,0", "x,65536", "x,y", "-x", "x;y"])
def test_a_place_that_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        server_place(text)
