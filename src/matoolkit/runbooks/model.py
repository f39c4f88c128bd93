"""What a runbook says, once it is known to be right: values that never change."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.runbooks.templates import Template

DEFAULT_TIMEOUT_SECONDS: Final = 1_800
DEFAULT_MAX_BATCH_AGE_SECONDS: Final = 86_400


class SourceType(StrEnum):
    """Where members are found."""

    DATAVERSE = "dataverse"
    """The SQL endpoint of Dataverse."""
    DATABRICKS = "databricks"
    """A Databricks SQL warehouse."""
    SQL = "sql"
    """Any database that SQLAlchemy reaches."""
    FILES = "files"
    """CSV, Parquet and Excel files."""


class MultiValuedFormat(StrEnum):
    """How several values are packed into one column."""

    SEMICOLON_DELIMITED = "semicolon_delimited"
    """`a;b;c`."""
    COMMA_DELIMITED = "comma_delimited"
    """`a,b,c`."""
    JSON_ARRAY = "json_array"
    """`["a", "b", "c"]`."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed step is tried again, and how long after."""

    max_retries: int
    interval_seconds: int


@dataclass(frozen=True, slots=True)
class Poll:
    """How often a step that goes on in the tenant is asked about, and for how long."""

    interval_seconds: int
    timeout_seconds: int


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a function; `retry` is the step's own, else that of the runbook, else None."""

    name: str
    worker_id: str
    function: Template
    params: tuple[tuple[str, Template], ...] = ()
    output_params: tuple[tuple[str, str], ...] = ()
    on_failure: str | None = None
    poll: Poll | None = None
    retry: Retry | None = None
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps that every member goes through, `offset_minutes` before the batch starts."""

    name: str
    offset_minutes: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class MultiValuedColumn:
    """A column that holds several values."""

    name: str
    format: MultiValuedFormat


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where members come from; without a batch time column, batches start as soon as members appear."""

    type: SourceType
    connection: str
    query: str
    primary_key: str
    warehouse_id: str | None = None
    batch_time_column: str | None = None
    time_zone: str | None = None
    max_batch_age_seconds: int = DEFAULT_MAX_BATCH_AGE_SECONDS
    multi_valued_columns: tuple[MultiValuedColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Runbook:
    """One version of a runbook; phases in the order of the document, rollbacks by the name they are declared under."""

    name: str
    data_source: DataSource
    phases: tuple[Phase, ...]
    description: str | None = None
    retry: Retry | None = None
    init: tuple[Step, ...] = ()
    on_member_removed: tuple[Step, ...] = ()
    rollbacks: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    phases_by_time: tuple[Phase, ...] = field(init=False, repr=False, compare=False)
    """The phases in the order they are due: largest offset first, equal offsets in the order of the document."""
    _phases_by_name: Mapping[str, Phase] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Order the phases once, for everyone who asks later."""
        put = object.__setattr__
        put(self, "phases_by_time", tuple(sorted(self.phases, key=lambda phase: -phase.offset_minutes)))
        put(self, "_phases_by_name", {phase.name.casefold(): phase for phase in self.phases})

    def phase(self, name: str) -> Phase | None:
        """Return the phase of this name, without regard to case."""
        return self._phases_by_name.get(name.casefold())
