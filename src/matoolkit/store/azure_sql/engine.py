"""Connections to Azure SQL, through Microsoft's driver: loaded when they are wanted, signed in one by one."""

from __future__ import annotations

import ctypes
import logging
import os
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event
from sqlalchemy.dialects import registry

from matoolkit.store.azure_sql.address import DRIVER
from matoolkit.store.azure_sql.sign_in import ACCESS_TOKEN, entra_tokens, packed, scope, wants_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import URL, Engine

log = logging.getLogger(__name__)

_COMMAND_SECONDS = 120
"""How long a statement may take; nothing of ours does, unless somebody holds its rows."""
_KEPT_SECONDS = 25 * 60
"""Azure ends connections on which nothing happened for half an hour."""
_PROVIDER = "MSSQL_PYTHON_NATIVE_PROVIDER"
_NEEDED = "libltdl.so.7"
"""What the older of the driver's two halves needs of the system, and a bare one does not have."""


def azure_sql_engine(address: URL, tokens: Callable[[str], str] | None = None) -> Engine:
    """An engine for an address; `tokens` gives the tokens to sign in with, where it is not Entra ID's own library."""
    _choose_provider()
    registry.register(DRIVER.replace("+", "."), "matoolkit.store.azure_sql.dialect", "AzureSqlDialect")
    engine = create_engine(
        address,
        # What a statement was given may be people's data, so no error quotes it.
        hide_parameters=True,
        # The server's own way: with names, the driver would go through every statement to find them.
        paramstyle="qmark",
        pool_size=8,
        max_overflow=8,
        pool_recycle=_KEPT_SECONDS,
    )
    if wants_token(address):
        _sign_in_with(engine, tokens or entra_tokens(address), scope(address))
    limit = int(str(address.query.get("command_timeout", _COMMAND_SECONDS)))

    @event.listens_for(engine, "connect")
    def _limit(connection: Any, _record: object) -> None:
        connection.timeout = limit

    return engine


def _sign_in_with(engine: Engine, tokens: Callable[[str], str], wanted: str) -> None:
    @event.listens_for(engine, "do_connect")
    def _sign_in(_dialect: object, _record: object, _arguments: object, options: dict[str, Any]) -> None:
        options["attrs_before"] = {ACCESS_TOKEN: packed(tokens(wanted))}


def _choose_provider() -> None:
    """Take the half of the driver that needs nothing of the system, where the other one cannot be loaded."""
    import mssql_python

    driver: Any = mssql_python  # it makes its properties when it is loaded
    if os.environ.get(_PROVIDER, "").strip() or driver.native_provider == "mssql-odbc":
        return
    try:
        ctypes.CDLL(_NEEDED)
    except OSError:
        log.info("%s is not there: Azure SQL is reached by the driver mssql-odbc, which does not need it", _NEEDED)
        driver.native_provider = "mssql-odbc"
