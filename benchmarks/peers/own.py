"""The product's own figures, as `python -m benchmarks` takes them: raw limits, curves, lone members."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROOT = Path(__file__).parent.parent.parent
_SUITES = ("raw", "engine", "tick")
_CURVES = {
    "a step, SQLite": re.compile(r"engine/sqlite/([\d,]+) members"),
    "a step, PostgreSQL": re.compile(r"engine/postgresql/([\d,]+) members"),
    "a tick without changes, SQLite": re.compile(r"tick/sqlite/([\d,]+) members, unchanged"),
    "a tick without changes, PostgreSQL": re.compile(r"tick/postgresql/([\d,]+) members, unchanged"),
}
_STEP = "a step"


@dataclass(frozen=True)
class Own:
    """What was found."""

    raw: Sequence[Mapping[str, Any]]
    """The raw limits: store, style, steps a second."""
    curves: Mapping[str, Sequence[Mapping[str, float]]]
    """Milliseconds by the number of members: for one step, or for a whole tick."""
    lone: Mapping[str, Mapping[str, float]]
    """Milliseconds of a lone member, and of the same transactions bare, by store."""
    short: Sequence[str]
    """Targets of the product's own that were missed, in words."""

    @property
    def rates(self) -> dict[str, float]:
        """Steps a second of the raw limits, by the name of the measurement."""
        return {f"raw/{each['store']}/{each['style']}": each["steps_per_s"] for each in self.raw}


def measure(file: Path, *, repeat: int, members_large: int | None, limit: float) -> dict[str, Any]:
    """Has the suites run in a process of their own."""
    arguments = [*(f"--only={suite}" for suite in _SUITES), f"--repeat={repeat}", f"--json={file}"]
    if members_large is not None:
        arguments.append(f"--members-large={members_large}")
    try:
        subprocess.run(
            [sys.executable, "-m", "benchmarks", *arguments],
            cwd=_ROOT,
            stdout=subprocess.DEVNULL,
            timeout=limit,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(f"the product's own figures are missing: {error}", file=sys.stderr)
        return {"machine": {}, "measurements": []}
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def own(document: Mapping[str, Any]) -> Own:
    """Picks out of their report what is shown beside the peers."""
    measurements = document["measurements"]
    by_name = {each["name"]: each for each in measurements}
    raw = [
        {
            "store": each["store"],
            "style": each["name"].split("/")[2],
            "setting": each["setting"],
            "steps_per_s": each["steps_per_second"],
            "range": sorted(each["steps"] / second for second in each["seconds"]),
        }
        for each in measurements
        if each["name"].startswith("raw/") and not each["name"].endswith("lone member")
    ]
    lone = {
        store: {"ms": _ms(by_name[f"engine/{store}/lone member"]), "raw_ms": _ms(by_name[f"raw/{store}/lone member"])}
        for store in ("sqlite", "postgresql")
        if {f"engine/{store}/lone member", f"raw/{store}/lone member"} <= by_name.keys()
    }
    short = [
        f"{each['name']}: {comparison['value']:.2f}, {_bound(comparison)}"
        for each in measurements
        for comparison in each["comparisons"]
        if comparison["verdict"] == "SHORT"
    ]
    curves = {name: _points(name, pattern, measurements) for name, pattern in _CURVES.items()}
    return Own(raw, {name: points for name, points in curves.items() if points}, lone, short)


def _points(name: str, pattern: re.Pattern[str], measurements: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    points = []
    for each in measurements:
        if (match := pattern.fullmatch(each["name"])) is not None:
            ms = _ms(each) / each["steps"] if name.startswith(_STEP) else _ms(each)
            points.append({"members": int(match[1].replace(",", "")), "ms": ms})
    return points


def _ms(measurement: Mapping[str, Any]) -> float:
    seconds: float = measurement["median_seconds"]
    return seconds * 1000


def _bound(comparison: Mapping[str, Any]) -> str:
    against = f" x {comparison['ratio_to']}" if comparison["ratio_to"] else f" {comparison['quantity']}"
    least = "at least" if comparison["quantity"] == "steps a second" else "at most"
    return f"{least} {comparison['bound']:g}{against}"
