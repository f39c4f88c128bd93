"""What the API is handed of other parts: previews of queries, releasing held removals, what publishing must know."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from matoolkit.api.publishing import PublishRules
from matoolkit.api.services import BatchGroup, QueryPreview
from matoolkit.hosts.sources import source_settings
from matoolkit.scheduler import preview
from matoolkit.scheduler.held_removals import release_held_removals
from matoolkit.scheduler.sources import VariableNotAllowed, VariableNotSet, open_source
from matoolkit.worker.loading import gather

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from matoolkit.api.services import Preview, Release
    from matoolkit.batches.announcing import Announcer
    from matoolkit.clock import Clock
    from matoolkit.runbooks import Runbook
    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.sources import Source
    from matoolkit.store.database import Database


def secret_parameters() -> dict[str, frozenset[str]]:
    """Of the standard functions those that take a secret, with the parameters that do."""
    standard = gather(None)
    found = {each.name: frozenset(one.name for one in each.parameters if one.secret) for each in standard}
    return {name: secrets for name, secrets in found.items() if secrets}


def publish_rules(environment: Mapping[str, str], worker_ids: tuple[str, ...] | None) -> PublishRules:
    """What publishing must know of this place."""
    sources = source_settings(environment)

    def is_allowed(variable: str) -> bool:
        try:
            sources.variable(variable, "a connection")
        except VariableNotAllowed:
            return False
        except VariableNotSet:
            return True  # it need only be set where the scheduler runs
        return True

    known = None if worker_ids is None else frozenset(worker_ids)
    return PublishRules(secret_parameters=secret_parameters(), worker_ids=known, connection_is_allowed=is_allowed)


def previews(environment: Mapping[str, str], clock: Clock) -> Preview:
    """Previews of the sources that the environment leads to."""
    return previews_of(partial(open_source, settings=source_settings(environment)), clock)


def previews_of(sources: Callable[[DataSource], Source], clock: Clock) -> Preview:
    """Previews of given sources."""

    def look(runbook: Runbook) -> QueryPreview:
        found = preview(sources(runbook.data_source), runbook, clock.now())
        groups = [BatchGroup(start, number) for start, number in found.batch_groups]
        return QueryPreview(found.row_count, found.columns, found.sample, groups, found.problems)

    return look


def releases(database: Database, announcer: Announcer) -> Release:
    """Lets go whose removal is held."""

    def release(batch_id: int, now: datetime, *, by: str) -> int:
        return release_held_removals(database, announcer, batch_id, by=by, now=now)

    return release
