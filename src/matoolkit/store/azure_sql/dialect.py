"""SQLAlchemy's dialect for Microsoft's driver, with what it does not know of this driver yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects.mssql.mssqlpython import MSDialect_mssqlpython

from matoolkit.store.azure_sql.said import is_gone

if TYPE_CHECKING:
    from sqlalchemy import URL

_CONNECT_SECONDS = 30


class AzureSqlDialect(MSDialect_mssqlpython):
    """Reads our addresses, and recognises every way in which a connection ends."""

    supports_statement_cache = True

    def create_connect_args(self, url: URL) -> tuple[tuple[str], dict[str, Any]]:
        """The driver's own string, every value in braces."""
        options = {str(key): str(value) for key, value in url.query.items()}
        parts = {
            "Server": f"{url.host},{url.port}",
            "Database": url.database,
            "Encrypt": options.get("encrypt", "yes"),
            "TrustServerCertificate": options.get("trust"),
            "HostNameInCertificate": options.get("host_name_in_certificate"),
            # Whoever waits for a database says so, and the driver would do it in silence.
            "ConnectRetryCount": "0",
        }
        if url.password is not None:
            parts |= {
                "Authentication": options.get("authentication"),
                "UID": url.username,
                "PWD": str(url.password),
            }
        written = ";".join(f"{key}={_braced(value)}" for key, value in parts.items() if value)
        return (written,), {"timeout": int(options.get("connect_timeout", _CONNECT_SECONDS))}

    def do_close(self, dbapi_connection: Any) -> None:
        """Close it; of one that is gone the driver complains after it has cleaned up."""
        try:
            dbapi_connection.close()
        except self.loaded_dbapi.Error as error:
            if not is_gone(error):
                raise

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Whether the connection is of no more use."""
        return bool(super().is_disconnect(e, connection, cursor)) or is_gone(e)


def _braced(value: str) -> str:
    return "{" + value.replace("}", "}}") + "}"
