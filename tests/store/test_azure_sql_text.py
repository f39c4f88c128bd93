"""The text for Azure SQL, read as its server would: its grammar by a parser, and the rules that have caught others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot
from sqlalchemy import Column, Index, String, Table, UniqueConstraint
from sqlalchemy.dialects.mssql.base import RESERVED_WORDS
from sqlglot import exp

from devtools.golden_statements import FOLDER, named
from matoolkit.store.bus_schema import outbox
from matoolkit.store.schema import metadata
from matoolkit.store.types import EXACT

if TYPE_CHECKING:
    from collections.abc import Iterable

STATEMENTS = {
    f"{file.stem}:{name}": text
    for file in sorted(FOLDER.glob("*.sql"))
    if file.stem != "schema"
    for name, text in named(file.read_text()).items()
}
SCHEMA = (FOLDER / "schema.sql").read_text()
every_statement = pytest.mark.parametrize("text", STATEMENTS.values(), ids=list(STATEMENTS))
every_table = pytest.mark.parametrize("table", metadata.tables.values(), ids=lambda table: table.name)
_WIDEST_INDEX, _WIDEST_CLUSTERED = 1700, 900


def parsed(text: str) -> list[exp.Expr]:
    # The parser knows no hint with arguments, which the server does.
    plain = text.replace("INDEX(ix_batch_members_status), ", "")
    return [each for each in sqlglot.parse(plain, dialect="tsql") if each is not None]


@every_statement
def test_it_is_one_statement_of_its_grammar(text: str) -> None:
    (statement,) = parsed(text)
    assert isinstance(statement, exp.Select | exp.SetOperation | exp.Insert | exp.Update | exp.Delete)


@every_statement
def test_tables_and_columns_are_those_of_the_schema(text: str) -> None:
    (statement,) = parsed(text)
    unknown = {each.name for each in statement.find_all(exp.Table) if each.name} - metadata.tables.keys()
    assert unknown <= {"given", "inserted", *[each.alias for each in statement.find_all(exp.Subquery)]}
    for column in statement.find_all(exp.Column):
        table = metadata.tables.get(column.table)
        assert table is None or column.name in table.c


def test_the_whole_schema_is_of_its_grammar() -> None:
    batches = [batch.strip() for batch in re.split(r"^GO$", SCHEMA, flags=re.MULTILINE) if batch.strip()]
    kinds = {type(statement).__name__ for batch in batches for statement in parsed(batch)}
    assert kinds <= {"Transaction", "Create", "Alter", "Insert", "Commit", "Set"}, kinds
    assert SCHEMA.count("CREATE TABLE") == len(metadata.tables) + 1


def test_text_that_is_not_of_its_grammar_is_noticed() -> None:
    for wrong in ("SELECT a b c FROM t", "SELECT a FROM (SELECT b FROM t", "SELECT count(* FROM t"):
        with pytest.raises(sqlglot.errors.ParseError):
            parsed(wrong)


@every_statement
def test_every_row_that_is_locked_is_locked_in_its_words(text: str) -> None:
    for hints in re.findall(
        r"WITH \(((?:XLOCK|UPDLOCK|HOLDLOCK|REPEATABLEREAD)[^\n]*?)\)\n? *(?:WHERE|JOIN|ORDER)", text
    ):
        assert "ROWLOCK" in hints
    assert "NOLOCK" not in text
    # Serializable locks would hold gaps, too, and whoever wants to write a row there.
    assert "HOLDLOCK" not in text


def test_who_locks_a_batch_keeps_those_out_who_only_share_it() -> None:
    assert "XLOCK" in STATEMENTS["locking:LOCK_BATCHES"], "an update lock does not conflict with a shared one"
    for name in ("locking:SHARE_BATCHES", "leases:HELD"):
        assert "REPEATABLEREAD" in STATEMENTS[name], "a lock that is given back before the commit says nothing"


def test_rows_in_another_one_s_hands_are_passed_over() -> None:
    assert "WITH (UPDLOCK, ROWLOCK, READPAST)" in STATEMENTS["outbox:FREE"]


def test_messages_get_their_ids_in_the_order_in_which_they_were_given() -> None:
    assert "ORDER BY written.position" in STATEMENTS["outbox:WRITE"]


@every_statement
def test_text_from_a_document_is_compared_as_the_columns_are(text: str) -> None:
    for picked, described in re.findall(r"\(SELECT ([^()]*?) FROM OPENJSON\(:\w+\) WITH \((.*?)\)\) AS", text):
        columns = dict(re.findall(r"(\w+) ([A-Z0-9]+(?:\(\w+\))?) '\$\[\d+\]'", described))
        wanted = [
            f"{name} COLLATE {EXACT} AS {name}" if kind.startswith("NVARCHAR") else name
            for name, kind in columns.items()
        ]
        assert picked == ", ".join(wanted)
        assert {name.lower() for name in columns}.isdisjoint(RESERVED_WORDS)
    assert text.count("OPENJSON") == len(re.findall(r"FROM OPENJSON\(:\w+\) WITH", text))


@every_table
def test_text_that_is_compared_is_compared_letter_by_letter(table: Table) -> None:
    body = SCHEMA.split(f"CREATE TABLE {table.name} (", 1)[1].split(";", 1)[0]
    for name, kind in re.findall(r"^ {4}(\w+) (N?VARCHAR\(\d+\)[^,]*)", body, flags=re.MULTILINE):
        assert f"COLLATE {EXACT}" in kind, name


def keys(table: Table) -> Iterable[tuple[str, list[Column[Any]], Index | None]]:
    yield "primary key", list(table.primary_key.columns), None
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            yield str(constraint.name), list(constraint.columns), None
    for index in table.indexes:
        yield str(index.name), list(index.columns), index


def width(column: Column[Any]) -> int:
    if isinstance(column.type, String):
        assert column.type.length is not None, f"{column} cannot be a key: it may be of any length"
        return column.type.length * 2
    return 8


@every_table
def test_keys_fit_into_indexes(table: Table) -> None:
    for name, columns, _ in keys(table):
        widest = _WIDEST_CLUSTERED if name == "primary key" else _WIDEST_INDEX
        assert sum(map(width, columns)) <= widest, name


@every_table
def test_nothing_that_may_be_missing_has_to_be_unique(table: Table) -> None:
    """On Azure SQL two rows without a value have the same one."""
    for name, columns, index in keys(table):
        if index is not None and not index.unique:
            continue
        condition = "" if index is None else str(index.dialect_options["mssql"]["where"])
        missing = [each.name for each in columns if each.nullable and f"{each.name} IS NOT NULL" not in condition]
        # A batch without a start is a manual one, of which this index knows nothing.
        assert missing == [] or (name == "ux_batches_start" and "is_manual = 0" in condition), name


def test_filtered_indexes_say_what_azure_sql_lets_them_say() -> None:
    for index in (index for table in metadata.tables.values() for index in table.indexes):
        where = index.dialect_options["mssql"]["where"]
        condition = "" if where is None else str(where)
        assert not re.search(r"\b(OR|NOT IN|LIKE|BETWEEN|true|false)\b", condition), index.name


def test_tables_of_which_many_rows_are_changed_at_once_are_never_locked_as_a_whole() -> None:
    for table in ("batch_members", "step_executions", outbox.name):
        assert f"ALTER TABLE {table} SET (LOCK_ESCALATION = DISABLE)" in SCHEMA


@every_statement
def test_it_does_nothing_that_only_shows_when_it_runs(text: str) -> None:
    """What the parser lets through and the server refuses."""
    (statement,) = parsed(text)
    for group in statement.find_all(exp.Group):
        # Each place of a parameter is another one to the server, so what is selected would not be what is grouped by.
        assert not list(group.find_all(exp.Placeholder))
    for order in statement.find_all(exp.Order):
        columns = [each.this.sql() for each in order.expressions]
        assert len(columns) == len(set(columns)), "a column may stand in an order once"
    if isinstance(statement, exp.Update):
        changed = [each.this.name for each in statement.expressions]
        assert len(changed) == len(set(changed)), "a column may be set once"
        assert "id" not in changed
    if isinstance(statement, exp.Insert) and isinstance(statement.this, exp.Schema):
        columns = [each.name for each in statement.this.expressions]
        assert "id" not in columns, "the server gives the ids"
        assert len(columns) == len(set(columns))
    for query in statement.find_all(exp.Subquery):
        selected = query.find(exp.Select) if query.alias else None
        names = [] if selected is None else [each.alias_or_name for each in selected.expressions]
        assert len(names) == len(set(names)), "a derived table has each name once"


def test_what_the_rules_look_at_is_there() -> None:
    found = [each for text in STATEMENTS.values() for each in parsed(text)]
    assert sum(isinstance(each, exp.Update) and bool(each.expressions) for each in found) > 30
    assert sum(isinstance(each, exp.Insert) and isinstance(each.this, exp.Schema) for each in found) > 5
    assert sum(len(list(each.find_all(exp.Group))) for each in found) > 4
