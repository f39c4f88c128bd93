"""Members found with SQL on Dataverse, through its TDS endpoint: read-only by nature, signed in with an Entra token."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import requests.utils
from OpenSSL import SSL

from matoolkit.scheduler.sources.connection_string import parse_connection_string
from matoolkit.scheduler.sources.errors import (
    NothingToRead,
    QueryRefused,
    SignInRefused,
    SourceError,
    SourceUnavailable,
)
from matoolkit.scheduler.sources.pytds_mended import pytds
from matoolkit.scheduler.sources.watch import Watch, first_line
from matoolkit.scheduler.sources.wire import WatchedSocket

if TYPE_CHECKING:
    from collections.abc import Generator

    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.sources.port import Chunk
    from matoolkit.scheduler.sources.settings import SourceSettings

_CANCEL_SECONDS: Final = 2.0
_LOOPBACK: Final = {"localhost", "127.0.0.1"}
# Numbers of SQL Server's messages; https://learn.microsoft.com/sql/relational-databases/errors-events lists them.
_SIGN_IN: Final = {4060, 18452, 18456, 18470, 18486, 18487, 18488, 40532}
_PASSING: Final = {1205, 1222, 3960, 10928, 10929, 40197, 40501, 40549, 40550, 40551, 40552, 40613, 49918, 49919, 49920}


class DataverseSource:
    """A query on an organisation's tables."""

    def __init__(self, data_source: DataSource, settings: SourceSettings) -> None:
        self._query = data_source.query
        self._settings = settings
        name = data_source.connection
        self._address = parse_connection_string(name, settings.variable(name, "its connection"))

    def read(self) -> Generator[Chunk]:
        """Run the query and give its rows in chunks."""
        watch = Watch(self._settings, f"the query on Dataverse at {self._address.host}")
        token = self._settings.tokens(self._address.scope, self._address.client_id)
        wire = WatchedSocket(self._address.host, self._address.port, watch)
        try:
            with self._connect(wire, token, watch) as connection, connection.cursor() as cursor:
                wire.may_cancel = True
                try:
                    cursor.execute(self._query)
                    if not cursor.description:
                        raise NothingToRead(f"{watch.place} returns no columns: it has to be a SELECT")
                    yield from watch.chunks([str(column[0]) for column in cursor.description], cursor.fetchmany)
                finally:
                    wire.left = watch.grace(_CANCEL_SECONDS)
                    # Nobody waits for the rest; a server that does not hear it notices that we are gone.
                    with suppress(Exception):
                        cursor.cancel()
        except SourceError as error:
            raise watch.too_long() if watch.over else error from error
        except Exception as error:
            raise self._translated(error, token, watch) from error
        finally:
            wire.close()

    def _connect(self, wire: WatchedSocket, token: str, watch: Watch) -> Any:
        plain = self._settings.plain_loopback and self._address.host in _LOOPBACK
        return pytds.connect(
            dsn=self._address.host,
            port=self._address.port,
            database=self._address.database or None,
            access_token_callable=lambda: token,
            sock=wire,
            cafile=None if plain else self._settings.ca_file or requests.utils.DEFAULT_CA_BUNDLE_PATH,
            timeout=watch.remaining(),
            login_timeout=watch.remaining(),
            disable_connect_retry=True,
            # No transaction is begun: the endpoint has none, and nothing can be written through it.
            autocommit=True,
            readonly=True,
            appname="matoolkit",
        )

    def _translated(self, error: Exception, token: str, watch: Watch) -> SourceError:
        if watch.over:
            return watch.too_long()
        text = str(error.text) if isinstance(error, pytds.DatabaseError) else str(error)
        said = f"{watch.place}: {first_line(text, type(error).__name__).replace(token, '***')}"
        match error:
            case pytds.LoginError():
                return SignInRefused(said)
            case pytds.DatabaseError() if error.number in _SIGN_IN:
                return SignInRefused(said)
            case pytds.DatabaseError() if error.number in _PASSING:
                return SourceUnavailable(said)
            case pytds.InterfaceError() | OSError() | EOFError():
                return SourceUnavailable(said)
            case SSL.Error():
                return SourceUnavailable(f"{watch.place}: the server has no certificate that this machine trusts")
            case pytds.DatabaseError() if error.number:
                return QueryRefused(said)
            case pytds.Error():
                return SourceUnavailable(said)
            case _:
                return SourceUnavailable(f"{said}: that is not what the SQL endpoint of Dataverse says")
