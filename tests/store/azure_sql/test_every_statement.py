"""Every statement goes through Microsoft's driver to a server: as many values as it has places, of types it is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import BigInteger, Boolean, Insert, Integer

from devtools.golden_statements import statements
from matoolkit.store.prepared import Prepared
from matoolkit.store.types import UtcDateTime
from tests.store.azure_sql.server import AzureSql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

STATEMENTS = [
    pytest.param(statement, id=f"{module}:{name}")
    for module, own in statements().items()
    for name, statement in own.items()
    # Those with values run through SQLAlchemy, which makes them for the columns it is given.
    if not (isinstance(statement, Insert) and statement.select is None)
]
KINDS = {"bigint", "int", "integer", "bit", "datetime2", "nvarchar(4000)", "nvarchar(max)"}
NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[AzureSql]:
    server = AzureSql()
    with server.double:
        yield server


@pytest.fixture(scope="module")
def database(server: AzureSql) -> Iterator[Database]:
    database = server.database()
    with database.transaction():
        pass
    yield database
    database.close()


def value(kind: Any) -> Any:
    match kind:
        case UtcDateTime():
            return NOW
        case Boolean():
            return True
        case BigInteger() | Integer():
            return 7
        case _:
            return "[]"


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("missing", [False, True], ids=["given", "missing"])
def test_it_arrives_whole(server: AzureSql, database: Database, statement: Any, missing: bool) -> None:
    compiled = statement.compile(dialect=database.engine.dialect)
    names = {name: bind.type for name, bind in compiled.binds.items() if bind.required}
    given = {name: None if missing and kind else value(kind) for name, kind in names.items()}
    before = len(server.double.calls)
    with database.transaction() as tx:
        tx.execute(statement, **given)
    (call,) = [each for each in server.double.calls[before:] if each.text not in {"BEGIN", "COMMIT"}]
    places = len(set(re.findall(r"@P\d+", call.text)))
    declared = [
        each.split()[-1].lower().removesuffix("(7)") for each in call.declared.replace(" ,", ",").split(",") if each
    ]
    assert places == len(call.values) == len(declared)
    assert set(declared) <= KINDS
    assert "?" not in call.text
    assert "%(" not in call.text
    assert len(server.double.logins) == 1


def test_types_do_not_depend_on_the_values(database: Database) -> None:
    for parameter in STATEMENTS:
        statement: Any = parameter.values[0]
        prepared = Prepared(statement, database.engine.dialect)
        order, sizes = prepared._order or (), prepared._sizes
        if sizes is None:
            continue
        short, absent = sizes.of(["x"] * len(order)), sizes.of([None] * len(order))
        assert short == absent
