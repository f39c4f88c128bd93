"""What Alembic runs: migrations on the connection `store/migrate.py` hands over, or as a script for a dialect."""

from __future__ import annotations

from alembic import context

from matoolkit.store import bus_schema  # noqa: F401 - its tables belong to the same metadata
from matoolkit.store.schema import metadata

connection = context.config.attributes.get("connection")
if connection is not None:
    context.configure(connection=connection, target_metadata=metadata)
else:
    context.configure(
        dialect_name=context.config.attributes["dialect"],
        # As any Azure SQL has it; Alembic cannot ask a server that is not there.
        dialect_opts={"deprecate_large_types": True} if context.config.attributes["dialect"] == "mssql" else {},
        target_metadata=metadata,
        as_sql=True,
    )
with context.begin_transaction():
    context.run_migrations()
