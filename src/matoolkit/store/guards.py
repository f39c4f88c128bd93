"""Conditions that are checked on rows, and by which rows are never looked for.

A guard says in which state a row must be that was found by its id. The columns it speaks of are indexed for those who
do look for that state; a planner without statistics, taking such rows for few, then goes through all of them for every
row that was given. `checked` hides a column from PostgreSQL's indexes; the other databases go by the given rows anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import SQLCompiler


class _Checked(FunctionElement[Any]):
    inherit_cache = True
    name = "checked"


@compiles(_Checked)
def _plain(element: _Checked, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.clauses, **kw)


@compiles(_Checked, "postgresql")
def _hidden(element: _Checked, compiler: SQLCompiler, **kw: Any) -> str:
    column = compiler.process(element.clauses, **kw)
    if isinstance(element.type, Boolean):
        return f"CAST(CAST({column} AS integer) AS boolean)"
    return f"({column} || '')"


def checked(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The column, for a condition on rows that are found without it."""
    hidden = _Checked(column)
    hidden.type = column.type
    return hidden
