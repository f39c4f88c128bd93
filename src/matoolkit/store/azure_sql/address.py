"""Where an Azure SQL database is: read from an ADO-style string or from a URL, and settled to one form.

What a string says that has no meaning here, because it is about .NET's own pool for example, is passed over; what is
unknown is refused by name. No value is ever quoted, since any may be a password in the wrong place.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from sqlalchemy import URL

from matoolkit.connection_strings import SQL_PORT, fields, server_place

if TYPE_CHECKING:
    from collections.abc import Mapping

DRIVER: Final = "mssql+azuresql"
MANAGED_IDENTITY: Final = "ActiveDirectoryManagedIdentity"
DEFAULT: Final = "ActiveDirectoryDefault"
SERVICE_PRINCIPAL: Final = "ActiveDirectoryServicePrincipal"
_EXAMPLE: Final = (
    "Server=tcp:NAME.database.windows.net,1433;Database=NAME;Authentication=Active Directory Managed Identity"
)
_LOOPBACK: Final = {"localhost", "127.0.0.1"}
# Keys without their blanks, and what they are called here.
_KEYS: Final = {
    **dict.fromkeys(("server", "datasource", "addr", "address", "networkaddress"), "server"),
    **dict.fromkeys(("database", "initialcatalog"), "database"),
    **dict.fromkeys(("userid", "uid", "user"), "user"),
    **dict.fromkeys(("password", "pwd"), "password"),
    **dict.fromkeys(("connectiontimeout", "connecttimeout", "timeout", "logintimeout"), "connect_timeout"),
    **dict.fromkeys(("integratedsecurity", "trustedconnection"), "integrated"),
    "authentication": "authentication",
    "encrypt": "encrypt",
    **dict.fromkeys(("trustservercertificate", "trust"), "trust"),
    "hostnameincertificate": "host_name_in_certificate",
    "commandtimeout": "command_timeout",
    "applicationintent": "intent",
}
_PASSED_OVER: Final = {
    "app",
    "applicationname",
    "columnencryptionsetting",
    "connectionlifetime",
    "connectretrycount",
    "connectretryinterval",
    "driver",
    "enlist",
    "ipaddresspreference",
    "loadbalancetimeout",
    "maxpoolsize",
    "minpoolsize",
    "multipleactiveresultsets",
    "multisubnetfailover",
    "packetsize",
    "persistsecurityinfo",
    "poolblockingperiod",
    "pooling",
    "replication",
    "transactionbinding",
    "typesystemversion",
    "workstationid",
    "wsid",
}
_SIGN_INS: Final = {
    "": "",
    "sqlpassword": "",
    "activedirectorymanagedidentity": MANAGED_IDENTITY,
    "activedirectorymsi": MANAGED_IDENTITY,
    "activedirectorydefault": DEFAULT,
    "activedirectoryworkloadidentity": DEFAULT,
    "activedirectoryserviceprincipal": SERVICE_PRINCIPAL,
}
_YES, _NO = {"true", "yes", "mandatory", "1", ""}, {"false", "no", "optional", "0"}


class Unreadable(ValueError):
    """What is wrong with the address."""


def is_connection_string(value: str) -> bool:
    """Whether a value is one of `Key=value` parts, and no URL."""
    return "=" in value and "://" not in value.partition("=")[0]


def from_connection_string(value: str) -> URL:
    """The address that an ADO-style string names."""
    try:
        found = fields(value)
    except ValueError as error:
        raise Unreadable(f"{error}: it should look like {_EXAMPLE}") from None
    named = _named(found)
    try:
        host, port = server_place(named.get("server", ""))
    except ValueError:
        raise Unreadable(f"Server names no server that can be read: it should look like {_EXAMPLE}") from None
    return _settled(host, port, named)


def from_url(url: URL) -> URL:
    """The address that a URL names: its options are those of a string."""
    if url.drivername.partition("+")[2] not in {"", "mssqlpython", "azuresql"}:
        raise Unreadable(f"{url.drivername} is not the driver used here: write mssql+mssqlpython://")
    named = _named({key: values[-1] for key, values in url.normalized_query.items()})
    if url.host is None:
        raise Unreadable(
            "the URL names no server: it should look like mssql+mssqlpython://NAME.database.windows.net/NAME"
        )
    password = None if url.password is None else str(url.password)
    given = {"database": url.database, "user": url.username, "password": password}
    named |= {key: value for key, value in given.items() if value is not None}
    return _settled(url.host.lower(), url.port or SQL_PORT, named)


def _named(found: Mapping[str, str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for key, value in found.items():
        plain = key.lower().replace(" ", "").replace("_", "")
        if plain in _KEYS:
            named[_KEYS[plain]] = value.strip()
        elif plain not in _PASSED_OVER:
            near = get_close_matches(plain, _KEYS, 1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise Unreadable(f"there is no key {key[:40]!r}{hint}")
    return named


def _settled(host: str, port: int, named: Mapping[str, str]) -> URL:
    if not named.get("database"):
        raise Unreadable("Database is missing")
    local = host in _LOOPBACK
    user, password = named.get("user") or None, named.get("password") or None
    query = {
        "authentication": _sign_in(named, user, password),
        "encrypt": _encryption(named.get("encrypt", ""), local=local),
        "trust": _trust(named.get("trust", "no"), local=local),
        "host_name_in_certificate": named.get("host_name_in_certificate", ""),
        "connect_timeout": _seconds(named, "connect_timeout"),
        "command_timeout": _seconds(named, "command_timeout"),
    }
    if named.get("intent", "readwrite").lower().replace(" ", "") != "readwrite":
        raise Unreadable("ApplicationIntent must be ReadWrite: the state is written")
    return URL.create(
        DRIVER, user, password, host, port, named["database"], {key: value for key, value in query.items() if value}
    )


def _sign_in(named: Mapping[str, str], user: str | None, password: str | None) -> str:
    kind = _SIGN_INS.get("".join(named.get("authentication", "").lower().split()))
    if kind is None or named.get("integrated", "no").lower() not in _NO:
        raise Unreadable(
            "Authentication asks for a sign-in that a service cannot do: write Active Directory Managed Identity,"
            " Active Directory Default or Active Directory Service Principal"
        )
    if kind in {MANAGED_IDENTITY, DEFAULT} and password is not None:
        raise Unreadable("Password has no place beside this Authentication: leave it out")
    if kind in {SERVICE_PRINCIPAL, ""} and (user is None or password is None):
        raise Unreadable(
            "User ID and Password are missing, or Authentication: for a managed identity write"
            " Authentication=Active Directory Managed Identity"
        )
    return kind


def _encryption(value: str, *, local: bool) -> str:
    small = value.lower()
    if small == "strict":
        return "strict"
    if small in _YES:
        return "yes"
    if small in _NO and local:
        return "no"
    raise Unreadable("Encrypt must be True or Strict, or left out")


def _trust(value: str, *, local: bool) -> str:
    if value.lower() in _NO:
        return ""
    if value.lower() in _YES and local:
        return "yes"
    raise Unreadable("TrustServerCertificate must be False: whoever stands in between would be given the sign-in")


def _seconds(named: Mapping[str, str], key: str) -> str:
    value = named.get(key, "")
    if value and not (value.isdecimal() and int(value) > 0):
        raise Unreadable(f"{key.replace('_', ' ').title().replace(' ', '')} must be a whole number of seconds above 0")
    return value
