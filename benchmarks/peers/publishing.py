"""Writes what was found into `docs/`: the JSON for programs, the picture for the README, the tables of the page."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.peers import tables
from benchmarks.peers.entries import STEPS
from benchmarks.peers.picture import Bar, Group, picture
from benchmarks.peers.standings import promises

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.peers.own import Own
    from benchmarks.peers.standings import Standing

_GROUPS = {"redis": "Redis, synced every second"}
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
_BETWEEN = re.compile(f"(?<={re.escape(_BEGIN)}\n).*?(?={re.escape(_END)})", re.DOTALL)


@dataclass(frozen=True)
class Publication:
    """Everything that is written."""

    machine: Mapping[str, Any]
    when: str
    standings: Sequence[Standing]
    own: Own

    def write(self, docs: Path) -> None:
        """The three files; of the page only what stands between the two marks."""
        docs.joinpath("benchmarks.json").write_text(json.dumps(self.document(), indent=2) + "\n")
        docs.joinpath("benchmarks.svg").write_text(self.picture())
        page = docs / "benchmarks.md"
        text, count = _BETWEEN.subn(lambda _: self.section(), page.read_text())
        if count != 1:
            raise ValueError(f"{page} has no place between {_BEGIN} and {_END}")
        page.write_text(text)

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "when": self.when,
            "machine": dict(self.machine),
            "results": [_result(each) for each in self.standings if each.rates],
            "not_measured": [
                {"engine": each.entry.engine, "store": each.entry.store, "reason": each.missing}
                for each in self.standings
                if not each.rates
            ],
            "raw_limits": list(self.own.raw),
            "ratios": [{**asdict(each), "is_kept": each.is_kept} for each in promises(self.standings, self.own.rates)],
            "lone_member": dict(self.own.lone),
            "curves": dict(self.own.curves),
            "short": list(self.own.short),
        }

    def picture(self) -> str:
        """A group for each store, of the entries that had the same work."""
        groups = []
        for store, name in tables.STORES.items():
            bars = [
                Bar(
                    _label(each),
                    each.steps_per_s,
                    each.rates[0],
                    each.rates[-1],
                    is_own=each.entry.engine == "matoolkit",
                )
                for each in self.standings
                if each.rates and each.entry.store == store
            ]
            if bars:
                groups.append(Group(_GROUPS.get(store, name), bars))
        return picture(
            f"1,000 members, {STEPS} steps each, on durable storage",
            f"{self.machine.get('cores', '?')} cores, {self.machine.get('cpu', '')}; {self.when}. Fewer members for "
            "Prefect and Dagster. docs/benchmarks.md has the settings.",
            groups,
        )

    def section(self) -> str:
        """The tables, with their headings."""
        own, machine = self.own, self.machine
        described = ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in machine.items() if value)
        parts = [
            f"Taken {self.when}: {described}.",
            "### Speed and memory",
            tables.speed(self.standings),
            "### What is promised",
            tables.ratios(promises(self.standings, own.rates)),
            *(f"Missed among the product's own targets: {each}." for each in own.short),
            "### What each can tell afterwards",
            tables.told(self.standings),
            "### What a SIGKILL half-way costs",
            tables.crash(self.standings),
            "### Raw limits",
            tables.limits(own),
            "### One member alone",
            tables.lone(own),
            "### Cost by size",
            tables.curves(own),
        ]
        return "\n\n".join(parts) + "\n\n"


def _result(each: Standing) -> dict[str, Any]:
    entry = each.entry
    return {
        "engine": entry.engine,
        "version": each.version,
        "store": str(entry.store),
        "setting": entry.setting,
        "members": entry.members,
        "steps": STEPS,
        "steps_per_s": round(each.steps_per_s, 1),
        "range": [round(each.rates[0], 1), round(each.rates[-1], 1)],
        "peak_mb": None if each.peak_mb is None else round(each.peak_mb, 1),
        "takes": len(each.rates),
        "tells": each.told,
        "sigkill_half_way": each.crash,
    }


def _label(each: Standing) -> str:
    notes = {"fsync": "fsync", "no-fsync": "no fsync, not durable"}.get(each.entry.suffix, "")
    fewer = f"{each.entry.members} members" if each.entry.engine in ("prefect", "dagster") else ""
    extra = ", ".join(part for part in (notes, fewer) if part)
    return tables.title(each.entry.engine).strip("*") + (f" ({extra})" if extra else "")


def _short(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
