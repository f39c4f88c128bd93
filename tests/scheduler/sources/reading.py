"""How the tests read a source: settings of a scheduler, with what a test changes."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from matoolkit.hosts.sources import source_settings
from matoolkit.runbooks.model import DataSource, SourceType
from matoolkit.scheduler.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.scheduler.sources import Chunk, SourceSettings


def settings(environment: Mapping[str, str], **changes: Any) -> SourceSettings:
    return source_settings(environment, **{"tokens": no_tokens, "time_limit_seconds": 30, **changes})


def no_tokens(scope: str, client_id: str | None = None) -> str:
    raise AssertionError(f"nobody is to sign in, and somebody asked for {scope}")


def described(kind: str, connection: str, query: str, **more: Any) -> DataSource:
    return DataSource(type=SourceType(kind), connection=connection, query=query, primary_key="id", **more)


def chunks(source: DataSource, given: SourceSettings) -> list[Chunk]:
    with closing(open_source(source, given).read()) as found:
        return list(found)


def table(source: DataSource, given: SourceSettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Columns and all rows."""
    found = chunks(source, given)
    assert found
    assert {chunk.columns for chunk in found} == {found[0].columns}
    return found[0].columns, [row for chunk in found for row in chunk.rows]
