"""How fast the product is, in ratios to what the same machine can do at best: `python -m benchmarks`.

A suite is a function that takes a `Plan` and yields `report.Measurement`s; `__main__` lists the suites and runs them in
order, so that the raw limits stand in the same report as what is compared with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run measures and where: given to every suite alike, so that their figures can be compared."""

    members: int
    """How many members a wave has."""
    steps: int
    """How many steps each of them goes through."""
    large: Mapping[str, int]
    """How many members the large wave has, by the name of the database."""
    repeat: int
    """How many times each figure is taken; the report shows the median and the range."""
    folder: Path
    """An empty folder on the disk under test; whatever is left in it is removed after the run."""
    sqlite: bool
    """Whether SQLite is measured."""
    postgresql_url: str | None
    """An empty PostgreSQL database, as psycopg takes it, or None when PostgreSQL is not measured."""

    @property
    def total_steps(self) -> int:
        """Steps of all members together: what one throughput measurement writes."""
        return self.members * self.steps

    @property
    def stores(self) -> tuple[str, ...]:
        """The names of the databases that are measured."""
        return ("sqlite",) * self.sqlite + ("postgresql",) * (self.postgresql_url is not None)
