"""A wave whose members are found: the scheduler with a source that says what the test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.batches.announcing import Announcer
from matoolkit.scheduler import Scheduler, Settings
from matoolkit.scheduler.sources import Chunk
from matoolkit.store import automation, schema
from tests.orchestrator.driver import Wave
from tests.orchestrator.post import START
from tests.orchestrator.runbooks import runbook

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from matoolkit.runbooks.model import DataSource
    from matoolkit.store.database import Database

PLAIN = runbook({"move T-0": ["copy"]})
LEAVING = runbook({"move T-0": ["copy"]}, on_member_removed=["bye"])
IMMEDIATE = runbook(
    {"move T-0": ["copy"]},
    on_member_removed=["bye"],
    data_source={
        "type": "sql",
        "connection": "SQL_WAVES",
        "query": "SELECT * FROM people",
        "primary_key": "Key",
        "batch_time": "immediate",
    },
)
AT_TEN = START + timedelta(hours=2)
AT_NOON = START + timedelta(hours=4)


def with_source(text: str, **changes: Any) -> str:
    """A runbook with other keys in its data source."""
    import yaml

    document = yaml.safe_load(text)
    document["data_source"] |= changes
    return str(yaml.safe_dump(document, sort_keys=False))


@dataclass
class TownSource:
    """Rows as they are to be read, or an error."""

    columns: tuple[str, ...] = ("Key", "Start", "Name")
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    def __call__(self, data_source: DataSource) -> TownSource:
        self.asked.append(data_source.connection)
        return self

    def read(self) -> Generator[Chunk]:
        yield Chunk(self.columns, self.rows[:2])
        if self.error is not None:
            raise self.error
        yield Chunk(self.columns, self.rows[2:])


class Town(Wave):
    """A scheduler, its source, and everybody who acts on what they find."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.source = TownSource()
        self.scheduler = self.another("first")

    def another(self, me: str, **settings: Any) -> Scheduler:
        """One more scheduler on the same database."""
        return Scheduler(
            self.database,
            Announcer(self.bus),
            self.clock,
            self.source,
            me=me,
            settings=Settings(**settings),
            lease_clock=self.clock,
        )

    def people(self, *keys: str, start: Any = AT_TEN, name: str = "x") -> None:
        """These are in the source, besides those who are there already."""
        self.source.rows += [(key, start, name) for key in keys]

    def only(self, *keys: str, start: Any = AT_TEN, name: str = "x") -> None:
        """These are in the source, and nobody else."""
        self.source.rows = []
        self.people(*keys, start=start, name=name)

    def look(self, **later: float) -> None:
        """Some time passes, five minutes unless said otherwise; the scheduler ticks, and what it says is handled."""
        self.clock.advance(**(later or {"minutes": 5}))
        self.scheduler.beat()
        self.scheduler.tick()
        self.pump()
        batches = self.rows(schema.batches)
        if batches:
            self.batch_id = batches[-1]["id"]

    def found(self, *keys: str, text: str = PLAIN, start: Any = AT_TEN) -> int:
        """A runbook is published and these people are found for it."""
        self.publish(text)
        self.people(*keys, start=start)
        self.look()
        return self.batch_id

    def automation(self, *, on: bool) -> None:
        """The switch is thrown."""
        with self.database.transaction() as tx:
            automation.switch(tx, "WAVE", enabled=on, now=self.now, by="anna")

    @property
    def waves(self) -> dict[datetime, dict[str, str]]:
        """Every batch by its start, and where its members are."""
        keys = {
            row["id"]: {
                each["member_key"]: each["status"] for each in self.rows(schema.batch_members, batch_id=row["id"])
            }
            for row in self.rows(schema.batches)
        }
        return {row["batch_start_time"]: keys[row["id"]] for row in self.rows(schema.batches)}

    @property
    def error(self) -> str | None:
        """What is noted at the latest version of the runbook."""
        last: str | None = self.rows(schema.runbooks)[-1]["last_error"]
        return last

    @property
    def kept_back(self) -> list[str]:
        """Whose removal is held."""
        return [row["member_key"] for row in self.rows(schema.batch_members) if row["removal_held_at"] is not None]

    def audited(self) -> Sequence[tuple[str, str, int]]:
        """Who did what, to which batch."""
        return [(row["actor"], row["action"], row["batch_id"]) for row in self.rows(schema.audit)]
