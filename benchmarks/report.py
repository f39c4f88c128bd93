"""What was measured, what it is held against, and the table and JSON that say so."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

import msgspec

from benchmarks import machine

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[[], Sequence[float]]
"""Does what is measured once, and returns the seconds of its parts; only they count, added up."""


class Quantity(StrEnum):
    """What of a measurement a target speaks about."""

    RATE = "steps a second"
    """Higher is better: a target is a least value."""
    TIME = "milliseconds a step"
    """Lower is better: a target is a greatest value."""
    MEMORY = "peak MB"
    """Lower is better: a target is a greatest value."""


class Verdict(StrEnum):
    """How a measurement stands to one of its targets."""

    MET = "pass"
    """At the bound or on its better side."""
    SHORT = "SHORT"
    """Not there yet."""
    SHOWN = "shown"
    """A ratio without a bound, given for information."""
    NOT_MEASURED = "not measured"
    """This run lacks one of the two values, so that nothing can be said."""


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a quantity, or on its ratio to the same quantity of the measurement called `ratio_to`."""

    bound: float | None = None
    ratio_to: str | None = None
    quantity: Quantity = Quantity.RATE


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure, taken several times: `steps` steps took `seconds[i]` the i-th time."""

    name: str
    """Unique in a run, so that others can be compared with it: `raw/sqlite/executemany`."""
    store: str
    setting: str
    """What durability it was taken at, and whatever else must be known to take it again."""
    steps: int
    seconds: Sequence[float]
    peak_mb: float | None
    """Of the measuring process alone; a database server's memory is not in it."""
    targets: tuple[Target, ...] = ()

    @property
    def rates(self) -> list[float]:
        """Steps a second, slowest first."""
        return sorted(self.steps / seconds for seconds in self.seconds)

    def value(self, quantity: Quantity) -> float | None:
        """The median of a quantity, or None when it was not taken."""
        match quantity:
            case Quantity.RATE:
                return self.steps / statistics.median(self.seconds)
            case Quantity.TIME:
                return statistics.median(self.seconds) * 1000 / self.steps
            case Quantity.MEMORY:
                return self.peak_mb
            case _:
                assert_never(quantity)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A target with what was found for it."""

    target: Target
    value: float | None
    verdict: Verdict

    def __str__(self) -> str:
        target = self.target
        against = f" x {target.ratio_to}" if target.ratio_to else f" {target.quantity}"
        found = "?" if self.value is None else f"{self.value:.2f}"
        sign = ">=" if target.quantity is Quantity.RATE else "<="
        bound = "" if target.bound is None else f" ({sign} {target.bound:g})"
        return f"{found}{against}{bound}: {self.verdict}"


def compare(measurements: Sequence[Measurement]) -> dict[str, list[Comparison]]:
    """Holds every measurement against its targets, by name of measurement."""
    by_name = {measurement.name: measurement for measurement in measurements}
    if len(by_name) != len(measurements):
        raise ValueError("two measurements of one run have the same name")
    return {
        name: [_compare(measurement, target, by_name) for target in measurement.targets]
        for name, measurement in by_name.items()
    }


def _compare(measurement: Measurement, target: Target, by_name: dict[str, Measurement]) -> Comparison:
    value = measurement.value(target.quantity)
    if target.ratio_to is not None and value is not None:
        reference = by_name.get(target.ratio_to)
        reference_value = reference.value(target.quantity) if reference else None
        value = value / reference_value if reference_value else None
    if value is None:
        return Comparison(target, None, Verdict.NOT_MEASURED)
    if target.bound is None:
        return Comparison(target, value, Verdict.SHOWN)
    met = value >= target.bound if target.quantity is Quantity.RATE else value <= target.bound
    return Comparison(target, value, Verdict.MET if met else Verdict.SHORT)


def take_turns(
    prefix: str, store: str, setting: str, runs: Mapping[str, tuple[int, Run]], *, repeat: int, ratio_to: str | None
) -> Iterator[Measurement]:
    """Measures every run, of so many steps, `repeat` times; `ratio_to` names the one that the others are shown against.

    They take turns, so that a busy moment of the machine does not fall on one of them alone.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    peaks: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeat):
        for name, (_, run) in runs.items():
            machine.reset_peak_memory()
            seconds[name].append(sum(run()))
            peaks[name].append(machine.peak_memory_mb() or 0)
    for name, (steps, _) in runs.items():
        targets = (Target(ratio_to=f"{prefix}/{ratio_to}"),) if ratio_to not in (None, name) else ()
        yield Measurement(f"{prefix}/{name}", store, setting, steps, seconds[name], max(peaks[name]) or None, targets)


_HEADINGS = ("measurement", "setting", "steps", "ms, median", "ms, range", "steps/s", "steps/s, range", "MB", "against")
_LEFT_ALIGNED = {"measurement", "setting", "against"}


def table(measurements: Sequence[Measurement]) -> str:
    """One line a measurement, and one more for each further target it is held against."""
    comparisons = compare(measurements)
    lines: list[tuple[str, ...]] = [_HEADINGS]
    for measurement in measurements:
        first, *others = [str(comparison) for comparison in comparisons[measurement.name]] or [""]
        lines.append((*_cells(measurement), first))
        lines.extend((*[""] * (len(_HEADINGS) - 1), other) for other in others)
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join(_aligned(line, widths) for line in lines)


def _cells(measurement: Measurement) -> tuple[str, ...]:
    low, high = min(measurement.seconds) * 1000, max(measurement.seconds) * 1000
    rates = measurement.rates
    return (
        measurement.name,
        measurement.setting,
        f"{measurement.steps:,}",
        f"{statistics.median(measurement.seconds) * 1000:,.2f}",
        f"{low:,.2f}-{high:,.2f}",
        f"{measurement.value(Quantity.RATE):,.0f}",
        f"{rates[0]:,.0f}-{rates[-1]:,.0f}",
        "" if measurement.peak_mb is None else f"{measurement.peak_mb:.0f}",
    )


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    cells = zip(_HEADINGS, line, widths, strict=True)
    return "  ".join(
        cell.ljust(width) if heading in _LEFT_ALIGNED else cell.rjust(width) for heading, cell, width in cells
    ).rstrip()


def write_json(path: Path, described: machine.Machine, measurements: Sequence[Measurement]) -> None:
    """Writes everything the table says, the single times included, for later runs to be compared with."""
    comparisons = compare(measurements)
    document = {
        "machine": asdict(described),
        "measurements": [
            {
                "name": measurement.name,
                "store": measurement.store,
                "setting": measurement.setting,
                "steps": measurement.steps,
                "seconds": list(measurement.seconds),
                "median_seconds": statistics.median(measurement.seconds),
                "steps_per_second": measurement.value(Quantity.RATE),
                "peak_mb": measurement.peak_mb,
                "comparisons": [
                    {**asdict(comparison.target), "value": comparison.value, "verdict": comparison.verdict}
                    for comparison in comparisons[measurement.name]
                ],
            }
            for measurement in measurements
        ],
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
