"""From what a runbook says to the source that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from matoolkit.runbooks.model import DataSource, SourceType
from matoolkit.scheduler.sources.errors import ExtraNotInstalled

if TYPE_CHECKING:
    from matoolkit.scheduler.sources.port import Source
    from matoolkit.scheduler.sources.settings import SourceSettings


def open_source(data_source: DataSource, settings: SourceSettings) -> Source:
    """The source that a runbook describes; nothing is reached before it is read.

    Raises a `SourceError` for what is wrong with the configuration.
    """
    try:
        match data_source.type:
            case SourceType.DATAVERSE:
                from matoolkit.scheduler.sources.dataverse import DataverseSource

                return DataverseSource(data_source, settings)
            case SourceType.DATABRICKS:
                from matoolkit.scheduler.sources.databricks import DatabricksSource

                return DatabricksSource(data_source, settings)
            case SourceType.SQL:
                from matoolkit.scheduler.sources.sql import SqlSource

                return SqlSource(data_source, settings)
            case SourceType.FILES:
                from matoolkit.scheduler.sources.files import FilesSource

                return FilesSource(data_source, settings)
    except ModuleNotFoundError as error:
        raise ExtraNotInstalled(
            f"data sources of the type {data_source.type} need the Python package {error.name}: run"
            f" pip install 'matoolkit[{data_source.type}]' where the scheduler runs"
        ) from error
    assert_never(data_source.type)
