"""Members found through Dataverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.sources.port import Chunk
    from matoolkit.scheduler.sources.settings import SourceSettings


class DataverseSource:
    """A query on Dataverse."""

    def __init__(self, data_source: DataSource, settings: SourceSettings) -> None:
        self._query = data_source.query
        self._settings = settings

    def read(self) -> Generator[Chunk]:
        """Run the query and give its rows in chunks."""
        raise NotImplementedError
