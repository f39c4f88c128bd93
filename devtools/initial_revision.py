"""Writes the initial migration anew from the tables of `store/`: `python -m devtools.initial_revision`.

For as long as nothing is released: from then on a migration that exists is never changed, and the schema's next change
is a revision of its own. What it writes are explicit operations, to be read and reviewed like any other migration.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.migration import MigrationContext
from sqlalchemy import BigInteger, String, Unicode, create_engine
from sqlalchemy.sql.elements import False_, True_

from matoolkit.store import bus_schema  # noqa: F401 - its tables belong to the same metadata
from matoolkit.store.schema import metadata
from matoolkit.store.types import UtcDateTime

TARGET = Path(__file__).parents[1] / "src/matoolkit/store/migrations/versions/0001_initial.py"
_HEAD = '''"""The first schema: runbooks, batches, members, phases, the four kinds of executions, the audit and the bus.

Written by `python -m devtools.initial_revision`, from then on a matter of its own: it imports nothing that may change.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from matoolkit.store.types import UtcDateTime

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_EXACT = "Latin1_General_100_BIN2"


def _code(length: int) -> sa.String:
    """Words of ours, compared letter by letter."""
    return sa.String(length).with_variant(sa.String(length, collation=_EXACT), "mssql")


def _name(length: int) -> sa.Unicode:
    """Words of people's, compared letter by letter."""
    return sa.Unicode(length).with_variant(sa.Unicode(length, collation=_EXACT), "mssql")


def _where(condition: str) -> dict[str, Any]:
    """A filtered index, in the words of each database; only PostgreSQL has booleans that are no numbers."""
    numeric = sa.text(condition.replace("= true", "= 1").replace("= false", "= 0"))
    return {"sqlite_where": numeric, "mssql_where": numeric, "postgresql_where": sa.text(condition)}


def upgrade() -> None:
'''
_TAIL = """
    if op.get_context().dialect.name == "mssql":
        # Of a set of some thousand rows, a lock on the whole table would come otherwise.
        for table in ("batch_members", "step_executions", "rollback_executions", "removal_executions", "outbox"):
            op.execute(f"ALTER TABLE {table} SET (LOCK_ESCALATION = DISABLE)")
"""
_FILTERED = re.compile(r"(?:(?:sqlite|mssql|postgresql)_where=sa\.text\((?P<quote>[\"']).*?(?P=quote)\)(?:, )?){3}")
_FILTER = re.compile(r"postgresql_where=sa\.text\((?P<condition>(?P<quote>[\"']).*?(?P=quote))\)")


def main() -> int:
    """Write the file and format it."""
    TARGET.write_text(initial_revision())
    return subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(TARGET)], check=False).returncode


def initial_revision() -> str:
    """The migration's text: what leads from an empty database to all tables."""
    with create_engine("sqlite://").connect() as connection:
        context = MigrationContext.configure(connection)
        operations = produce_migrations(context, metadata).upgrade_ops
    if operations is None:
        raise RuntimeError("Alembic found nothing to do")
    lines = [line for line in render_python_code(operations, render_item=_rendered).splitlines() if "# ###" not in line]
    body = _FILTERED.sub(_filter, "\n".join(lines))
    # A condition that is too long for a line is cut where it has a seam.
    body = body.replace(") OR (", ") OR '\n'(")
    return f"{_HEAD}    {body.strip()}\n{_TAIL.removeprefix(chr(10))}"


def _rendered(kind: str, item: Any, _context: object) -> str | Literal[False]:
    """What Alembic would write in a way that holds for one database only, or with types that may still change."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "UtcDateTime()"
    if kind == "type" and isinstance(item, String) and item._variant_mapping:  # noqa: SLF001 - it has no public name
        return f"{'_name' if isinstance(item, Unicode) else '_code'}({item.length})"
    if kind == "type" and isinstance(item, BigInteger) and item._variant_mapping:  # noqa: SLF001 - it has no public name
        return "_ID"
    if kind == "server_default" and item is not None and isinstance(item.arg, False_ | True_):
        return "sa.false()" if isinstance(item.arg, False_) else "sa.true()"
    return False


def _filter(match: re.Match[str]) -> str:
    """One condition for three databases."""
    found = _FILTER.search(match[0])
    if found is None:
        raise RuntimeError(f"an index is filtered, but not on PostgreSQL: {match[0]}")
    return f"**_where({found['condition']})"


if __name__ == "__main__":
    sys.exit(main())
