"""The TDS double as an Azure SQL database: what it answers to everybody, and what a test says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from matoolkit.store.database import open_database
from tests.doubles.tds import types
from tests.doubles.tds.server import Changed, Failure, Rows, Step, TdsDouble
from tests.doubles.tds.types import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matoolkit.store.database import Database

TOKEN = "a-good-token"
ASLEEP = Failure(
    40613,
    "Database 'waves' on server 'x' is not currently available.  Please retry the connection later.  If the problem"
    " persists, contact customer support, and provide them the session tracing ID of '{1}'.",
)


def one(value: Any, kind: types.Type = types.NVARCHAR) -> list[Step]:
    return [Rows([Column("value", kind)], [(value,)])]


class AzureSql:
    """What the server says, by what it is asked; the first that fits, and a test's own before all others."""

    def __init__(self, **changes: Any) -> None:
        self.said: list[tuple[str, Sequence[Step] | Callable[[str], Sequence[Step] | None]]] = []
        self.double = TdsDouble(answers=self._answer, token=TOKEN, **changes)
        self.scopes: list[str] = []
        self.snapshots, self.level, self.revision = True, 170, "0001"

    def when(self, pattern: str, *steps: Step) -> None:
        """Answer so, every time."""
        self.said.insert(0, (pattern, steps))

    def once(self, pattern: str, *steps: Step) -> None:
        """Answer so the first time."""
        left = [steps]
        self.said.insert(0, (pattern, lambda _: left.pop() if left else None))

    def database(self, options: str = "Encrypt=no", token: str = TOKEN) -> Database:
        def tokens(scope: str) -> str:
            self.scopes.append(scope)
            return token

        address = f"Server=tcp:127.0.0.1,{self.double.port};Database=waves;Authentication=Active Directory Default"
        return open_database(f"{address};{options}", tokens=tokens)

    def texts(self) -> list[str]:
        """What was asked since the connection was made ready."""
        every = [call.text for call in self.double.calls]
        ready = max((place for place, text in enumerate(every) if "fn_listextendedproperty" in text), default=-1)
        return every[ready + 2 :]

    def _answer(self, query: str) -> Sequence[Step]:
        for pattern, steps in self.said:
            if re.search(pattern, query):
                found = steps(query) if callable(steps) else steps
                if found is not None:
                    return found
        return self._usual(query)

    def _usual(self, query: str) -> Sequence[Step]:
        if "@@version" in query.lower():
            return one("Microsoft SQL Azure (RTM) - 12.0.2000.8")
        if "schema_name()" in query.lower():
            return one("dbo")
        if "is_read_committed_snapshot_on" in query:
            columns = [Column("snapshots", types.BIT), Column("level", types.TINYINT)]
            return [Rows(columns, [(self.snapshots, self.level)])]
        if "sp_getapplock" in query:
            return one(0, types.INT)
        if "sys.objects" in query:
            return one("alembic_version") if self.revision else [Rows([Column("name", types.NVARCHAR)])]
        if "FROM alembic_version" in query:
            return one(self.revision)
        if query.startswith("SELECT") or "OUTPUT" in query:
            return [Rows([Column("value", types.INT)])]
        return [Changed(1)]
