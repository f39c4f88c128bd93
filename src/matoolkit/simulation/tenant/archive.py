"""What the tenant holds, kept in a file and written before anything is answered: a killed process finds it again."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


class Archive:
    """Objects by kind and id, in a SQLite file; or nowhere, when there is no file."""

    def __init__(self, file: Path | None) -> None:
        self._connection: sqlite3.Connection | None = None
        if file is None:
            return
        file.touch(mode=0o600)
        # The tenant's lock is what keeps threads apart.
        connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        # Survives the death of the process; a power cut may cost the last moments, which is enough for a simulation.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS objects (sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL,"
            " body BLOB NOT NULL, UNIQUE (kind, id))"
        )
        self._connection = connection

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def load(self, kind: str) -> Iterator[tuple[str, Any]]:
        """All objects of a kind, in the order they were made."""
        if self._connection is None:
            return
        rows = self._connection.execute("SELECT id, body FROM objects WHERE kind = ? ORDER BY sequence", (kind,))
        for identifier, body in rows.fetchall():
            yield identifier, msgspec.json.decode(body)

    def put(self, kind: str, identifier: str, value: Any) -> None:
        """Keep an object, in place of what was kept under its id."""
        self.put_all(kind, ((identifier, value),))

    def put_all(self, kind: str, objects: Iterable[tuple[str, Any]]) -> None:
        """Keep several objects."""
        if self._connection is None:
            return
        rows = [(kind, identifier, msgspec.json.encode(value)) for identifier, value in objects]
        with self.together():
            self._connection.executemany(
                "INSERT INTO objects (kind, id, body) VALUES (?, ?, ?)"
                " ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body",
                rows,
            )

    def remove(self, kind: str, identifier: str) -> None:
        """Keep it no longer."""
        if self._connection is not None:
            self._connection.execute("DELETE FROM objects WHERE kind = ? AND id = ?", (kind, identifier))

    @contextmanager
    def together(self) -> Iterator[None]:
        """All of it or nothing."""
        connection = self._connection
        if connection is None or connection.in_transaction:
            yield
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
