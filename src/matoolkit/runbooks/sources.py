"""The data source read from the document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, available_timezones

from matoolkit.runbooks.durations import parse_duration
from matoolkit.runbooks.model import (
    DEFAULT_MAX_BATCH_AGE_SECONDS,
    DataSource,
    MultiValuedColumn,
    MultiValuedFormat,
    SourceType,
)
from matoolkit.runbooks.problems import shown
from matoolkit.runbooks.steps import check_unique

if TYPE_CHECKING:
    from matoolkit.runbooks.fields import Fields
    from matoolkit.runbooks.problems import Problems

# What stands in for a source that has errors; such a runbook is never handed out.
NO_SOURCE: Final = DataSource(SourceType.SQL, "", "", "")


def read_data_source(fields: Fields | None, problems: Problems) -> DataSource:
    """Read where members come from and when they are due."""
    if fields is None:
        return NO_SOURCE
    source_type = fields.text("type")
    source = DataSource(
        type=SourceType(source_type) if source_type else NO_SOURCE.type,
        connection=fields.text("connection"),
        warehouse_id=fields.text_or_none("warehouse_id"),
        query=fields.text("query"),
        primary_key=fields.text("primary_key"),
        batch_time_column=fields.text_or_none("batch_time_column"),
        time_zone=_time_zone(fields, problems),
        max_batch_age_seconds=fields.converted("max_batch_age", parse_duration) or DEFAULT_MAX_BATCH_AGE_SECONDS,
        multi_valued_columns=_multi_valued_columns(fields),
    )
    immediate = fields.text_or_none("batch_time")
    if source_type:
        _check_warehouse(fields, source)
    _check_batch_time(fields, source, immediate)
    return source


def _check_warehouse(fields: Fields, source: DataSource) -> None:
    if source.type is SourceType.DATABRICKS:
        if not fields.has("warehouse_id"):
            fields.error("warehouse_id", "a databricks source needs a warehouse_id")
    elif fields.has("warehouse_id"):
        fields.error("warehouse_id", "only a databricks source has a warehouse_id")


def _check_batch_time(fields: Fields, source: DataSource, immediate: str | None) -> None:
    if fields.has("batch_time") and fields.has("batch_time_column"):
        fields.error("batch_time", "either batch_time_column or batch_time, not both")
    elif not fields.has("batch_time") and not fields.has("batch_time_column"):
        message = "says nothing of batch times"
        fields.error("", message, "add batch_time_column: a column, or batch_time: immediate")
    elif immediate:
        for name in ("time_zone", "max_batch_age"):
            if fields.has(name):
                fields.warning(name, "has no effect with batch_time: immediate")
    if source.batch_time_column and source.batch_time_column.casefold() == source.primary_key.casefold():
        fields.error("batch_time_column", "is the primary key, so every member would be a batch of its own")


def _multi_valued_columns(fields: Fields) -> tuple[MultiValuedColumn, ...]:
    items = fields.blocks("multi_valued_columns")
    check_unique(((item.text("name"), item) for item in items), "multi-valued column")
    columns = []
    single = {fields.text(name).casefold(): name for name in ("primary_key", "batch_time_column")}
    for item in items:
        name, packed = item.text("name"), item.text("format")
        if name and name.casefold() in single:
            item.error("name", f"is the {single[name.casefold()]}, which has one value")
        columns.append(MultiValuedColumn(name, MultiValuedFormat(packed or MultiValuedFormat.JSON_ARRAY)))
    return tuple(columns)


def _time_zone(fields: Fields, problems: Problems) -> str | None:
    name = fields.text_or_none("time_zone")
    if name is None or name == "UTC":
        return name
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        hint = problems.nearest(name, available_timezones())
        fields.error("time_zone", f"there is no time zone {shown(name)}", hint)
    return name
