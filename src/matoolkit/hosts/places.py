"""A worker's place at the jobs: one that is shared by all workers' jobs, or its own, and never both at once.

A topic gives each subscription a copy, so a job that reached both places would be run twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.bus import Topology
from matoolkit.bus.topology import WORKER_ID
from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from matoolkit.bus import EmbeddedBus, Names, SubscriptionRule
    from matoolkit.store.database import Database


class PlaceTaken(MatoolkitError):
    """Jobs go to somebody else already."""


def take_place(database: Database, bus: EmbeddedBus, names: Names, place: SubscriptionRule) -> None:
    """Declare a place and take over what lies in those that it replaces."""
    everybody = names.worker(None, place.lock_duration)
    with database.transaction() as tx:
        there = [each for each in bus.subscriptions(tx, names.jobs) if each != place.subscription]
        if place == everybody and there and database.dialect != "sqlite":
            named = ", ".join(each.name.removeprefix("worker-") for each in there)
            raise PlaceTaken(
                f"workers of their own take jobs from this database ({named}), and would run them beside this one: set"
                " WORKER_ID to the worker that this process is to be"
            )
        bus.declare(tx, Topology(subscriptions=(place,)))
        if place == everybody:
            for each in there:
                bus.hand_over(tx, each, lambda _: place)
        elif everybody.subscription in there:
            bus.hand_over(
                tx, everybody.subscription, lambda properties: names.worker(properties[WORKER_ID], place.lock_duration)
            )


def insist_on_own_place(bus: EmbeddedBus, names: Names, worker_id: str) -> None:
    """Refuse to work beside somebody who takes everybody's jobs."""
    everybody = names.worker(None).subscription
    with bus.transaction() as tx:
        if everybody in bus.subscriptions(tx, names.jobs):
            raise PlaceTaken(
                "a `matoolkit up` takes every worker's jobs from this database, and would run those of"
                f" {worker_id} beside this worker: start it once with WORKER_ID set, and each worker has its own"
            )
