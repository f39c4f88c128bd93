"""Every statement compiles for the three databases; for Azure SQL, which no test reaches, its text is kept.

`python -m devtools.golden_statements` writes it anew.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from devtools.golden_statements import FOLDER, compiled, dialects, named, statements, texts

DIALECTS = dialects()
STATEMENTS = {(module, name): each for module, own in statements().items() for name, each in own.items()}
every_statement = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=[":".join(key) for key in STATEMENTS])


def on_azure(statement: Any) -> str:
    return compiled(statement, DIALECTS["mssql"])


def test_there_is_golden_text_of_every_statement_and_of_nothing_else() -> None:
    kept = {(file.stem, name) for file in FOLDER.glob("*.sql") for name in named(file.read_text())}
    kept = {(module, name) for module, name in kept if module != "schema"}
    missing, gone = sorted(STATEMENTS.keys() - kept), sorted(kept - STATEMENTS.keys())
    assert (missing, gone) == ([], []), "review, then run `python -m devtools.golden_statements`"


@pytest.mark.parametrize("file", sorted(texts()))
def test_the_text_for_azure_sql_is_the_golden_one(file: str) -> None:
    assert (FOLDER / file).read_text() == texts()[file]


def test_the_statements_are_found() -> None:
    assert {"batches", "members", "phases", "due", "stuck", "executions_step", "executions_removal"} < {
        module for module, _ in STATEMENTS
    }
    assert ("executions_rollback", "first_open[failed_init]") in STATEMENTS
    assert ("due", "CHECK_AGAIN[step]") in STATEMENTS


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@every_statement
def test_it_compiles(statement: Any, dialect: str) -> None:
    assert compiled(statement, DIALECTS[dialect])


@every_statement
def test_azure_sql_is_given_no_condition_where_it_wants_a_value(statement: Any) -> None:
    text = re.sub(r"CASE WHEN .*? THEN", "", on_azure(statement), flags=re.DOTALL)
    columns = re.split(r"\bFROM\b|\bWHERE\b", text, maxsplit=1)[0]
    assert "EXISTS" not in columns
    assert not re.search(r"\b(true|false)\b", text, re.IGNORECASE)
    assert " IS 1" not in text


@every_statement
def test_azure_sql_is_given_its_own_words_for_limits_and_locks(statement: Any) -> None:
    text = on_azure(statement)
    assert not re.search(r"\b(LIMIT|FOR UPDATE|FOR SHARE|RETURNING|ROW_NUMBER|mssql_rn)\b", text)
    ordered = re.findall(r"ORDER BY [^()]*?\n OFFSET \S+ ROWS\n FETCH FIRST :\w+ ROWS ONLY", text)
    assert len(ordered) == text.count("FETCH FIRST"), "a part of rows in no order is refused"


@every_statement
def test_states_stand_in_the_statement_so_that_filtered_indexes_can_be_used(statement: Any) -> None:
    for dialect in DIALECTS.values():
        conditions = compiled(statement, dialect).split("WHERE", 1)[-1]
        found = re.findall(r"\bstatus (?:=|IN) (?!given\.|other\.)\S+", conditions)
        assert [each for each in found if not re.match(r"status (= '|IN \(')", each)] == []
