"""Writes down what each statement becomes on Azure SQL: `python -m devtools.golden_statements`.

There is no such server in the tests. So its text is kept in `tests/store/golden/mssql`, where a change of it is seen
and reviewed, and a test compares. Statements are found by themselves: the public constants of the modules of `store/`,
the cached properties of `Executions` for each kind, the constants of the outbox, and the invariants of the doctor.
"""

from __future__ import annotations

import pkgutil
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import ClauseElement, Executable, Insert
from sqlalchemy.dialects.mssql.base import MSDialect
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from matoolkit import store
from matoolkit.bus import outbox
from matoolkit.simulation.invariants import ALWAYS, AT_REST
from matoolkit.store.executions import EXECUTIONS, Executions
from matoolkit.store.migrate import script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Dialect

FOLDER = Path(__file__).parents[1] / "tests/store/golden/mssql"


def dialects() -> dict[str, Dialect]:
    """The three databases, as SQLAlchemy finds them once it is connected."""
    azure: Any = MSDialect(deprecate_large_types=True)  # type: ignore[no-untyped-call]
    azure._supports_offset_fetch = True  # noqa: SLF001 - otherwise known after connecting: any server since 2012
    postgres = PGDialect()  # type: ignore[no-untyped-call]
    return {"mssql": azure, "postgresql": postgres, "sqlite": SQLiteDialect()}


def statements() -> dict[str, dict[str, Any]]:
    """Every statement of the store and of the outbox, by module and name."""
    found: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for name in sorted(each.name for each in pkgutil.iter_modules(store.__path__)):
        module = vars(import_module(f"matoolkit.store.{name}"))
        public = {key: value for key, value in module.items() if key.isupper() and not key.startswith("_")}
        own = {
            key: statement for key, statement in _flat(public) if _is_statement(statement) and id(statement) not in seen
        }
        seen |= {id(statement) for statement in own.values()}
        if own:
            found[name] = own
    found["outbox"] = {key.lstrip("_"): each for key, each in vars(outbox).items() if _is_statement(each)}
    found["doctor"] = {each.sentence: each.broken_by for each in (*ALWAYS, *AT_REST)}
    for kind, executions in EXECUTIONS.items():
        # `selected` is what others are made of, and not executed itself.
        properties = {
            key: getattr(executions, key)
            for key, value in vars(Executions).items()
            if isinstance(value, cached_property) and key != "selected"
        }
        found[f"executions_{kind}"] = {
            key: statement for key, statement in _flat(properties) if _is_statement(statement)
        }
    return found


def compiled(statement: Any, dialect: Dialect) -> str:
    """A statement as a server of that dialect gets it, but for the names of its parameters."""
    # A plain insert is compiled for the columns it is given, which are never the id.
    columns = [each.name for each in statement.table.c if not each.primary_key] if _is_plain_insert(statement) else None
    plain = statement.compile(dialect=dialect, column_keys=columns)
    given: dict[str, Any] = {name: [] if bind.expanding else 0 for name, bind in plain.binds.items() if bind.required}
    text: str = plain.construct_expanded_state(given).statement
    return "\n".join(line.rstrip() for line in text.splitlines())


def texts() -> dict[str, str]:
    """The files of golden text, by their names."""
    azure = dialects()["mssql"]
    files = {
        f"{module}.sql": "\n".join(f"-- {name}\n{compiled(statement, azure)};\n" for name, statement in own.items())
        for module, own in statements().items()
    }
    return {"schema.sql": script("mssql"), **files}


def named(text: str) -> dict[str, str]:
    """The statements of a file, by their names."""
    parts = ("\n" + text).split("\n-- ")[1:]
    return {name: body for name, _, body in (part.partition("\n") for part in parts)}


def main() -> None:
    """Write the files, and remove those of modules that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = texts()
    for file in FOLDER.glob("*.sql"):
        if file.name not in wanted:
            file.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)


def _flat(named: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names with their values, and with those in dictionaries."""
    for name, value in named.items():
        if isinstance(value, dict):
            for key, each in value.items():
                yield f"{name}[{key}]" if key else name, each
        else:
            yield name, value


def _is_plain_insert(value: object) -> bool:
    return isinstance(value, Insert) and value.select is None


def _is_statement(value: object) -> bool:
    return isinstance(value, Executable) and isinstance(value, ClauseElement)


if __name__ == "__main__":
    main()
