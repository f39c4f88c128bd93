"""Medians and ranges of the single runs, and the ratios that were promised."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.peers.entries import Entry
    from benchmarks.peers.recording import Records


@dataclass(frozen=True)
class Standing:
    """What is known of an entry."""

    entry: Entry
    version: str
    rates: Sequence[float]
    """Steps a second of each take, slowest first; none when it could not be measured."""
    peak_mb: float | None
    told: Mapping[str, Any] | None
    crash: Mapping[str, Any] | None
    missing: str
    """Why there is no figure."""

    @property
    def steps_per_s(self) -> float:
        """The median."""
        return statistics.median(self.rates)


def standing(entry: Entry, records: Records) -> Standing:
    """Made of whatever has been run so far."""
    takes = records.takes(f"{entry.key}-wave")
    good = [take for take in takes if "seconds" in take]
    peaks = [take["peak_mb"] for take in good if take["peak_mb"] is not None]
    return Standing(
        entry,
        good[0]["version"] if good else "",
        sorted(take["steps"] / take["seconds"] for take in good),
        statistics.median(peaks) if peaks else None,
        _known(records.get(f"{entry.key}-story"), "members"),
        _known(records.get(f"{entry.key}-crash"), "lost"),
        "" if good else _reason(takes),
    )


def _known(record: dict[str, Any] | None, field: str) -> dict[str, Any] | None:
    return record if record is not None and field in record else None


def _reason(takes: Sequence[Mapping[str, Any]]) -> str:
    if not takes:
        return "not run: the time was up"
    last = takes[-1]
    return f"not installable: {last['not_installable']}" if "not_installable" in last else str(last["failed"])


@dataclass(frozen=True)
class Promise:
    """A ratio that the product is to hold."""

    what: str
    against: str
    bound: float
    found: float | None
    """None where one of the two was not measured."""

    @property
    def is_kept(self) -> bool | None:
        """Whether it is, or None where nobody can tell."""
        return None if self.found is None else self.found >= self.bound


def promises(standings: Sequence[Standing], raw: Mapping[str, float]) -> list[Promise]:
    """All of them; `raw` has steps a second by the name of the measurement."""
    rates = {each.entry.key: each.steps_per_s for each in standings if each.rates}
    ours = {store: rates.get(f"matoolkit-{store}") for store in ("sqlite", "postgresql")}

    def promise(store: str, against: str, bound: float, reference: float | None) -> Promise:
        own = ours[store]
        found = own / reference if own is not None and reference else None
        return Promise(f"the product on {store}", against, bound, found)

    return [
        promise("sqlite", "Huey with fsync", 8, rates.get("huey-sqlite-fsync")),
        promise("sqlite", "raw executemany", 1 / 2, raw.get("raw/sqlite/executemany")),
        promise("postgresql", "PGQueuer", 2.7, rates.get("pgqueuer-postgresql")),
        promise("postgresql", "DBOS", 10, rates.get("dbos-postgresql")),
        promise("postgresql", "raw COPY and unnest", 1 / 3, raw.get("raw/postgresql/copy and unnest")),
    ]
