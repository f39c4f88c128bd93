"""Bugs planted on purpose in the scheduler: each must be found by the simulation, as those in the engine are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.scheduler import comparing, detection
from matoolkit.scheduler.differences import Differences, differences
from matoolkit.scheduler.lease import Lead
from matoolkit.scheduler.working import Working
from matoolkit.simulation.faults import Likelihoods
from matoolkit.simulation.history import Plan
from matoolkit.store import creation, roster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.scheduler.gathering import Person
    from matoolkit.simulation.history import Simulator
    from matoolkit.store.database import Transaction

_AT_MOST = 300
"""Histories in which a bug must show."""

ROUGH = Plan(
    likelihoods=replace(
        Likelihoods(), join=0.5, leave=0.4, come_back=0.5, move=0.4, source_empty=0.15, unreadable=0.2, source_slow=0.2
    )
)
Patch = pytest.MonkeyPatch
BUGS: list[Callable[[Patch], None]] = []


def bug(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """A bug to be found."""
    BUGS.append(plant)
    return plant


@bug
def let_an_empty_result_remove_everyone(patch: Patch) -> None:
    """The guard lets everything pass."""
    patch.setattr(Differences, "too_many", property(lambda _self: False))


@bug
def let_the_second_tick_of_a_bucket_remove_members(patch: Patch) -> None:
    """Who is in the batch already is filtered out before the comparison, and so is missing."""

    def compared(self: comparing.Comparison, batch: Any, people: Mapping[str, Person]) -> Differences:
        with self.work.database.reading() as tx:
            listed = roster.listed(tx, batch.id)
        known = {folded for _member, folded, *_rest in listed}
        late = {folded: person for folded, person in people.items() if folded not in known}
        return differences(listed, late, self.gathered.unreadable)

    whole = comparing.Comparison._compared

    def only_where_batches_start_at_once(self: comparing.Comparison, *args: Any) -> Differences:
        immediate = self.runbook.data_source.batch_time_column is None
        return (compared if immediate else whole)(self, *args)

    patch.setattr(comparing.Comparison, "_compared", only_where_batches_start_at_once)


@bug
def trust_the_lease_once_it_was_taken(patch: Patch) -> None:
    """Nobody asks again within a transaction."""
    patch.setattr(Lead, "insist", lambda _self, _tx: None)


@bug
def forget_batches_that_are_half_made(patch: Patch) -> None:
    """What a scheduler had begun when it died is nobody's business."""
    found = roster.open_of_name

    def shown(tx: Transaction, name: str) -> list[Any]:
        return [each for each in found(tx, name) if each.loaded_at is not None]

    patch.setattr(roster, "open_of_name", shown)


@bug
def join_before_the_leaving_has_ended(patch: Patch) -> None:
    """Who moves to another date is in two places at once."""
    for module in (detection, comparing):
        patch.setattr(module, "not_free", lambda *_args: set())


@bug
def keep_old_data(patch: Patch) -> None:
    """Nobody's data is refreshed."""
    patch.setattr(creation, "refresh_members", lambda _tx, _found: None)


@bug
def take_the_unreadable_for_gone(patch: Patch) -> None:
    """A row without a time removes its member."""

    def harsh(listed: Any, found: Any, _unreadable: Any) -> Differences:
        return differences(listed, found, frozenset())

    patch.setattr(comparing, "differences", harsh)


@bug
def stop_after_the_first_chunk(patch: Patch) -> None:
    """What does not fit into one transaction is left out."""
    in_chunks = Working.in_chunks

    def some(self: Working, items: Any, work: Any) -> None:
        in_chunks(self, list(items)[: self.settings.chunk_size], work)

    patch.setattr(Working, "in_chunks", some)


@bug
def compare_keys_as_they_are_spelled(patch: Patch) -> None:
    """Another spelling is another member."""
    from matoolkit.scheduler.gathering import Reader

    finished = Reader.finished

    def as_spelled(self: Reader) -> Any:
        found = finished(self)
        found.groups = {
            start: {person[0]: person for person in people.values()} for start, people in found.groups.items()
        }
        return found

    patch.setattr(Reader, "finished", as_spelled)


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_the_simulation_finds(plant: Callable[[Patch], None], monkeypatch: Patch, simulator: Simulator) -> None:
    plant(monkeypatch)
    for seed in range(_AT_MOST):
        if simulator.live(seed, ROUGH).violations:
            return
    pytest.fail(f"{_AT_MOST} histories did not find it")


def test_without_them_it_finds_nothing(simulator: Simulator) -> None:
    """What these histories show is the bug and not the weather they are lived in."""
    for seed in range(25):
        assert simulator.live(seed, ROUGH).violations == ()
