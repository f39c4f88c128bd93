"""Members found with SQL on the CSV, Parquet and Excel files of one folder.

DuckDB runs the query and may open nothing but the files that the query names and that lie in the folder, links
followed: each becomes a view, or a table, of the name under which the query asks for it. So `FROM 'people.csv'` is the
one way to a file. Everything else is switched off and locked before the query is seen.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import duckdb

from matoolkit.scheduler.sources.csv_text import select_text
from matoolkit.scheduler.sources.errors import BadConnection, NothingToRead, QueryRefused, SourceUnavailable
from matoolkit.scheduler.sources.quoting import identifier, literal
from matoolkit.scheduler.sources.watch import Watch, first_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.sources.port import Chunk
    from matoolkit.scheduler.sources.settings import SourceSettings

_TEXT: Final = (".csv", ".tsv", ".txt", ".csv.gz")
_PARQUET: Final = (".parquet",)
_EXCEL: Final = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# Comments first, since what stands in them is not quoted.
_QUOTED: Final = re.compile(r"--[^\n]*|/\*.*?\*/|'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"", re.DOTALL)
_MOST_FILES: Final = 1_000

_AT_FIRST: Final[dict[str, str | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "enable_external_file_cache": False,
    "memory_limit": "256MB",
    "temp_directory": "",
    "threads": 2,
}


class FilesSource:
    """A query on the files of a folder."""

    def __init__(self, data_source: DataSource, settings: SourceSettings) -> None:
        self._query = data_source.query
        self._settings = settings
        self._name = data_source.connection
        self._path = Path(settings.variable(self._name, "its connection"))
        if not self._path.is_absolute():
            raise BadConnection(f"{self._name} has to hold the full path of a folder or a file")

    def read(self) -> Generator[Chunk]:
        """Run the query and give its rows in chunks."""
        watch = Watch(self._settings, f"the query on the files of {self._name}")
        folder = self._folder()
        connection = duckdb.connect(":memory:", config=_AT_FIRST)
        try:
            with watch.interrupting(connection.interrupt):
                self._check(connection)
                opened = self._offer(connection, folder, watch)
                _confine(connection, opened)
                connection.execute(self._query)
                description = connection.description
                if not description:
                    raise NothingToRead(f"{watch.place} returns no columns: it has to be a SELECT")
                yield from watch.chunks([str(column[0]) for column in description], connection.fetchmany)
        except duckdb.PermissionException as error:
            raise QueryRefused(
                f"{watch.place} names what is no file of its folder: a file is named as FROM 'people.csv', relative to"
                f" the folder, without '..' and without links that lead out of it ({first_line(error)})"
            ) from error
        except (duckdb.OutOfMemoryException, duckdb.Error) as error:
            raise QueryRefused(f"{watch.place}: {self._scrubbed(error)}") from error
        except OSError as error:
            raise SourceUnavailable(f"{watch.place}: {error.strerror or type(error).__name__}") from error
        finally:
            connection.close()

    def _folder(self) -> Path:
        if not self._path.exists():
            raise SourceUnavailable(f"the folder that {self._name} names is not there")
        return self._path.resolve()

    def _check(self, connection: duckdb.DuckDBPyConnection) -> None:
        statements = connection.extract_statements(self._query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise QueryRefused(f"the query on the files of {self._name} has to be one SELECT, and nothing else")

    def _offer(self, connection: duckdb.DuckDBPyConnection, folder: Path, watch: Watch) -> list[Path]:
        """Make the files that the query names known under those names; gives what DuckDB has to open for that."""
        opened: list[Path] = []
        for name in _quoted(self._query):
            plain, _, sheet = name.partition("#")
            suffix = plain.lower()
            if suffix.endswith(_EXCEL):
                from matoolkit.scheduler.sources.excel import offer_sheet

                for file in _found(folder, plain)[:1]:
                    offer_sheet(connection, name, file, sheet or None, watch)
            elif suffix.endswith((*_TEXT, *_PARQUET)) and (files := _found(folder, name)):
                opened += files
                select = _select_parquet(files) if suffix.endswith(_PARQUET) else select_text(files)
                connection.execute(f"CREATE OR REPLACE VIEW {identifier(name)} AS {select}")
        return opened

    def _scrubbed(self, error: BaseException) -> str:
        return first_line(error).replace(str(self._path.resolve()), f"${self._name}")


def _confine(connection: duckdb.DuckDBPyConnection, files: list[Path]) -> None:
    """Leave the query these files and nothing else."""
    paths = ", ".join(literal(str(file)) for file in files)
    connection.execute(f"SET allowed_paths = [{paths}]")
    for statement in (
        "SET TimeZone = 'UTC'",
        "SET enable_external_access = false",
        "SET allow_extension_repositories = 'forbidden'",
        "SET lock_configuration = true",
    ):
        connection.execute(statement)


def _quoted(query: str) -> Iterator[str]:
    """What stands in quotes in a query, each once: among it, every name of a file."""
    found = (match[1] or match[2] or "" for match in _QUOTED.finditer(query))
    return iter(dict.fromkeys(each.replace("''", "'").replace('""', '"') for each in found))


def _found(folder: Path, name: str) -> list[Path]:
    """The files of that name or pattern that lie in the folder, wherever links lead, in the order of their names."""
    pattern = PurePosixPath(name)
    if pattern.is_absolute() or ".." in pattern.parts or not pattern.parts:
        return []
    if folder.is_file():
        return [folder] if name == folder.name else []
    candidates = [folder / pattern] if not re.search(r"[*?\[]", name) else sorted(folder.glob(name))
    resolved = (each.resolve() for each in candidates if each.is_file())
    return [each for each in resolved if each.is_relative_to(folder)][:_MOST_FILES]


def _select_parquet(files: list[Path]) -> str:
    paths = ", ".join(literal(str(file)) for file in files)
    return f"SELECT * FROM read_parquet([{paths}], union_by_name = true)"  # noqa: S608 - every part is quoted
