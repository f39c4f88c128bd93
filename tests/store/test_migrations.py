"""Migrations lead to the schema, safely, and only to it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, create_engine, inspect, text

from devtools.initial_revision import TARGET, initial_revision
from matoolkit.store import bus_schema, migrate, schema
from matoolkit.store.address import in_file
from matoolkit.store.database import Database, open_database
from matoolkit.store.errors import SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection

metadata = schema.metadata


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database that nobody has migrated, in a folder whose name has every character that means something."""
    if request.param == "sqlite":
        folder = tmp_path / "100%s of ?x=1&y #"
        folder.mkdir()
        database = open_database(in_file(folder / "matoolkit.db"))
    else:
        database = open_database(request.getfixturevalue("postgres_url"))
    yield database
    database.close()


def tables(connection: Connection) -> dict[str, Any]:
    """Everything a database knows of its tables, as text that can be compared."""
    inspector = inspect(connection)
    found: dict[str, Any] = {}
    for name in sorted(inspector.get_table_names()):
        found[name] = {
            "columns": [str({**each, "type": repr(each["type"])}) for each in inspector.get_columns(name)],
            "key": str(inspector.get_pk_constraint(name)),
            "foreign keys": sorted(map(str, inspector.get_foreign_keys(name))),
            "unique": sorted(map(str, inspector.get_unique_constraints(name))),
            "checks": sorted(map(str, inspector.get_check_constraints(name))),
            "indexes": sorted(
                str({**each, "dialect_options": {key: str(value) for key, value in each["dialect_options"].items()}})
                for each in inspector.get_indexes(name)
            ),
        }
    if connection.dialect.name == "sqlite":
        statements = connection.execute(text("SELECT name, sql FROM sqlite_master ORDER BY name"))
        # Constraints may come in any order.
        found["statements"] = {
            name: sorted(re.findall(r"[\w' =<>]+", (sql or "").replace('"', ""))) for name, sql in statements
        }
    else:
        indexes = connection.execute(text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"))
        found["statements"] = {name: definition for name, definition in indexes}  # noqa: C416 - mypy knows rows this way
    return found


def test_migrations_lead_to_exactly_the_tables_of_the_schema(empty: Database) -> None:
    with empty.engine.begin() as connection:
        metadata.create_all(connection)
        created = tables(connection)
        metadata.drop_all(connection)
    migrate.migrate(empty)
    with empty.engine.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
        migrated = tables(connection)
    assert set(metadata.tables) < set(created)
    assert migrated.keys() == created.keys()
    for name in created:
        assert migrated[name] == created[name], name


def test_alembic_sees_no_difference(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "target_metadata": metadata}
        )
        assert compare_metadata(context, metadata) == []


def test_the_comparison_would_see_a_difference(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("DROP INDEX ix_batch_members_owed"))
        connection.execute(text("CREATE INDEX ix_batch_members_owed ON batch_members (id)"))
        connection.execute(text("ALTER TABLE batches ADD COLUMN mood TEXT"))
        assert "WHERE" not in tables(connection)["statements"]["ix_batch_members_owed"]
        context = MigrationContext.configure(connection)
        assert any("mood" in str(each) for each in compare_metadata(context, metadata))


def test_every_check_of_the_schema_has_a_name_and_is_there(database: Database) -> None:
    wanted = {
        str(each.name)
        for table in metadata.tables.values()
        for each in table.constraints
        if isinstance(each, CheckConstraint)
    }
    with database.engine.connect() as connection:
        found = {each["name"] for table in metadata.tables for each in inspect(connection).get_check_constraints(table)}
    assert found == wanted


def test_the_initial_revision_is_what_the_tables_say() -> None:
    """Until something is released: `python -m devtools.initial_revision` after a change of the tables."""

    def words(source: str) -> str:
        return "".join(source.replace("'", '"').replace(",", "").split())

    assert words(TARGET.read_text()) == words(initial_revision())


def test_migrating_twice_changes_nothing(empty: Database) -> None:
    first, second = migrate.migrate(empty), migrate.migrate(empty)
    assert (first.before, first.applied) == (None, ["0001"])
    assert (second.before, second.after, second.applied) == (first.after, first.after, [])
    migrate.require_current(empty)


def test_two_that_migrate_at_once_do_not_disturb_each_other(empty: Database) -> None:
    others = [open_database(empty.engine.url) for _ in range(4)]
    with ThreadPoolExecutor(len(others)) as pool:
        reports = list(pool.map(migrate.migrate, others))
    for other in others:
        other.close()
    assert sorted(report.applied for report in reports) == [[], [], [], ["0001"]]
    migrate.require_current(empty)


def test_a_migration_that_fails_leaves_nothing_behind(empty: Database) -> None:
    with empty.engine.begin() as connection:
        # The last table but one, so that much is done before it fails.
        connection.execute(text("CREATE TABLE rollback_executions (id INTEGER)"))
    with pytest.raises(Exception, match="rollback_executions"):
        migrate.migrate(empty)
    with empty.engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["rollback_executions"]


def test_an_empty_database_is_refused_with_what_to_do(empty: Database) -> None:
    with pytest.raises(SchemaMismatch, match="has no tables of matoolkit: run `matoolkit migrate`") as caught:
        migrate.require_current(empty)
    assert str(empty.engine.url.database) in str(caught.value)
    assert not caught.value.retryable


def test_an_older_schema_is_refused_with_what_is_missing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"0001": "initial", "0002": "held_removals", "0003": "more"}
    monkeypatch.setattr(migrate, "_revisions", lambda: known)
    with pytest.raises(SchemaMismatch) as caught:
        migrate.require_current(database)
    message = str(caught.value)
    assert "is at revision 0001 and lacks 0002 (held removals), 0003 (more): run `matoolkit migrate`" in message


def test_a_newer_schema_is_refused_and_not_touched(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
    for act in (migrate.require_current, migrate.migrate):
        with pytest.raises(SchemaMismatch, match=r"revision 0099, which is newer than this version .* install"):
            act(database)


def test_the_file_names_say_what_alembic_reads() -> None:
    scripts = ScriptDirectory.from_config(migrate._configuration())
    revisions = [each.revision for each in scripts.walk_revisions()][::-1]
    assert revisions == list(migrate._revisions())
    assert scripts.get_heads() == revisions[-1:]


def test_there_is_no_way_back() -> None:
    scripts = ScriptDirectory.from_config(migrate._configuration())
    assert [each.revision for each in scripts.walk_revisions() if hasattr(each.module, "downgrade")] == []


def test_the_tables_of_the_bus_are_among_them() -> None:
    assert bus_schema.outbox.metadata is metadata


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "mssql"])
def test_the_schema_can_be_had_as_a_script(dialect: str) -> None:
    script = migrate.script(dialect)
    for table in metadata.tables:
        assert f"CREATE TABLE {table} (" in script
    assert ("DATETIME2(6)" in script) == (dialect == "mssql")


def test_the_script_for_sqlite_is_one() -> None:
    with create_engine("sqlite://").begin() as connection:
        raw: Any = connection.connection.dbapi_connection
        raw.executescript(migrate.script("sqlite"))
        assert set(metadata.tables) < set(inspect(connection).get_table_names())
