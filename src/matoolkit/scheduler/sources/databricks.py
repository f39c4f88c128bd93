"""Members found with a statement on a Databricks SQL warehouse, through its REST API.

A statement is started, asked about until it has ended, and its result fetched in parts, from the API or from links to
a storage account. One that is given up is cancelled.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from matoolkit.scheduler.sources.cells import reader_of, typed
from matoolkit.scheduler.sources.errors import (
    BadConnection,
    NothingToRead,
    QueryRefused,
    SourceError,
    SourceUnavailable,
)
from matoolkit.scheduler.sources.rest import Workspace, acceptable
from matoolkit.scheduler.sources.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.sources.port import Chunk
    from matoolkit.scheduler.sources.settings import SourceSettings

_SCOPE: Final = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d/.default"
_STATEMENTS: Final = "/api/2.0/sql/statements"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_CANCEL_SECONDS: Final = 5.0


class DatabricksSource:
    """A statement on a warehouse."""

    def __init__(self, data_source: DataSource, settings: SourceSettings) -> None:
        self._query = data_source.query
        self._settings = settings
        name = data_source.connection
        self._url = _workspace(name, settings.variable(name, "its connection"), settings)
        self._warehouse = settings.variable(data_source.warehouse_id or "", "its warehouse_id")
        self._own_token = settings.environment.get(f"{name}_TOKEN", "").strip()

    def read(self) -> Generator[Chunk]:
        """Run the query and give its rows in chunks."""
        watch = Watch(self._settings, f"the query on Databricks at {urlsplit(self._url).hostname}")
        with closing(Workspace(self._url, self._token, self._settings, watch)) as workspace:
            yield from self._run(workspace, watch)

    def _run(self, workspace: Workspace, watch: Watch) -> Generator[Chunk]:
        answer = workspace.call("POST", _STATEMENTS, self._statement(watch))
        statement = f"{_STATEMENTS}/{quote(str(answer.get('statement_id') or ''), safe='')}"
        ended = False
        try:
            answer = self._ended(workspace, watch, statement, answer)
            ended = True
            manifest = answer.get("manifest") or {}
            columns = (manifest.get("schema") or {}).get("columns") or []
            if not columns:
                raise NothingToRead(f"{watch.place} returns no columns: it has to be a SELECT")
            expected = int(manifest.get("total_row_count") or 0)
            watch.expect(expected, cut_off=bool(manifest.get("truncated")))
            readers = [reader_of(column) for column in columns]
            names = [str(column.get("name") or "") for column in columns]
            rows = _parts(workspace, statement, answer.get("result") or {}, expected)
            yield from watch.cut(names, (typed(part, readers) for part in rows))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SourceUnavailable(f"{watch.place}: the answer is not what a Databricks workspace gives") from error
        finally:
            if not ended:
                workspace.tell(f"{statement}/cancel", _CANCEL_SECONDS)

    def _statement(self, watch: Watch) -> dict[str, Any]:
        # A statement whose number nobody has been told cannot be cancelled: with little time left, ask for it at once.
        wait = 5 if watch.remaining() > 2 * _LONGEST_PAUSE else 0
        return {
            "warehouse_id": self._warehouse,
            "statement": self._query,
            "wait_timeout": f"{wait}s",
            "on_wait_timeout": "CONTINUE",
            "format": "JSON_ARRAY",
            "disposition": "EXTERNAL_LINKS",
            "row_limit": self._settings.row_cap + 1,
        }

    def _ended(self, workspace: Workspace, watch: Watch, statement: str, answer: Any) -> Any:
        """Ask about the statement until it has ended well."""
        pause = _FIRST_PAUSE
        while (state := str((answer.get("status") or {}).get("state"))) in {"PENDING", "RUNNING"}:
            self._settings.sleep(min(pause, watch.remaining()))
            pause = min(pause * 2, _LONGEST_PAUSE)
            answer = workspace.call("GET", statement)
        if state != "SUCCEEDED":
            raise _failure(watch, state, (answer.get("status") or {}).get("error") or {})
        return answer

    def _token(self) -> str:
        return self._own_token or self._settings.tokens(_SCOPE)


def _workspace(name: str, value: str, settings: SourceSettings) -> str:
    """The address of the workspace, without what may follow it."""
    url = value if "://" in value else f"https://{value}"
    parts = urlsplit(url)
    if not acceptable(url, settings) or "@" in parts.netloc:
        raise BadConnection(
            f"{name} has to hold the address of a workspace, like https://adb-1234567890123456.7.azuredatabricks.net"
        )
    return f"{parts.scheme}://{parts.netloc}"


def _failure(watch: Watch, state: str, error: Any) -> SourceError:
    said = str(error.get("message") or "").strip().partition("\n")[0][:500]
    if state == "FAILED":
        code = str(error.get("error_code") or "")
        kind = SourceUnavailable if code in _PASSING else QueryRefused
        return kind(f"{watch.place} failed: {code} {said}".rstrip())
    return SourceUnavailable(f"{watch.place} was ended there before it was done ({state})")


_PASSING: Final = {
    "DEADLINE_EXCEEDED",
    "INTERNAL_ERROR",
    "IO_ERROR",
    "RESOURCE_EXHAUSTED",
    "SERVICE_UNDER_MAINTENANCE",
    "TEMPORARILY_UNAVAILABLE",
    "WORKSPACE_TEMPORARILY_UNAVAILABLE",
}


def _parts(workspace: Workspace, statement: str, result: Any, expected: int) -> Iterator[list[list[str | None]]]:
    """The rows of the result's parts, one after another, and all of them: a part that is missing is an error."""
    following: int | None = 0
    part = rows = 0
    while following is not None:
        if part:
            result = workspace.call("GET", f"{statement}/result/chunks/{part}")
        links = result.get("external_links")
        place = links[0] if links else result
        found = (
            workspace.fetch(str(place["external_link"]), place.get("http_headers") or {})
            if links
            else place.get("data_array") or []
        )
        rows += len(found)
        yield found
        part += 1
        following = place.get("next_chunk_index")
        if following not in {None, part}:
            raise ValueError(following)
    if rows != expected:
        raise ValueError(rows)
