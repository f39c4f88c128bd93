"""What was found, as tables of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.entries import STEPS
from benchmarks.peers.trials import STORY_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.peers.own import Own
    from benchmarks.peers.standings import Promise, Standing

_TITLES = {
    "matoolkit": "**matoolkit**",
    "huey": "Huey",
    "pgqueuer": "PGQueuer",
    "procrastinate": "Procrastinate",
    "dbos": "DBOS",
    "celery": "Celery",
    "dramatiq": "Dramatiq",
    "prefect": "Prefect",
    "dagster": "Dagster",
}
STORES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "redis": "Redis"}


def title(engine: str) -> str:
    """How an engine writes its name."""
    return _TITLES[engine]


def speed(standings: Sequence[Standing]) -> str:
    """How fast each is, and with how much memory."""
    heads = ("engine", "store", "steps/s", "range", "MB", "members", "setting")
    rows = []
    for each in standings:
        entry = each.entry
        name = f"{title(entry.engine)} {each.version}".strip()
        figures = (f"{each.steps_per_s:,.0f}", _range(each.rates), _whole(each.peak_mb)) if each.rates else ("—",) * 3
        setting = entry.setting if each.rates else each.missing
        rows.append((name, STORES[entry.store], *figures, f"{entry.members:,}", setting))
    return _table(heads, rows, right=range(2, 6))


def told(standings: Sequence[Standing]) -> str:
    """What each can tell of a small wave, through its own tables or functions."""
    failing = STORY_MEMBERS // 10
    runs = STORY_MEMBERS * STEPS - failing * 2
    heads = ("engine", "store", f"members (of {STORY_MEMBERS})", f"steps (of {runs})", f"times (of {runs})")
    rows = []
    for each in standings:
        if each.told is not None:
            counts = [str(each.told[field]) for field in ("members", "steps", "times", "errors")]
            rows.append((title(each.entry.engine), _store(each), *counts))
    return _table((*heads, f"errors (of {failing})"), rows, right=range(2, 6))


def crash(standings: Sequence[Standing]) -> str:
    """What a SIGKILL cost each."""
    heads = ("engine", "store", "members", "members lost", "steps run twice", "seconds to the end", "")
    rows = []
    for each in standings:
        if (found := each.crash) is not None:
            counts = (f"{found['members']:,}", f"{found['lost']:,}", f"{found['repeated']:,}")
            seconds = "never" if found["lost"] else f"{found['seconds']:.1f}"
            rows.append((title(each.entry.engine), _store(each), *counts, seconds, _remark(found)))
    return _table(heads, rows, right=range(2, 6))


def ratios(promises: Sequence[Promise]) -> str:
    """What is promised, beside what was found."""
    words = {True: "held", False: "**missed**", None: "not measured"}
    rows = [
        (
            each.what.replace("sqlite", "SQLite").replace("postgresql", "PostgreSQL"),
            each.against,
            f"{each.bound:.2f}",
            "—" if each.found is None else f"{each.found:.2f}",
            words[each.is_kept],
        )
        for each in promises
    ]
    return _table(("", "against", "at least", "found", ""), rows, right=(2, 3))


def limits(own: Own) -> str:
    """What the drivers reach with the row writes of a step and nothing else."""
    rows = [
        (STORES[each["store"]], each["style"], _rate(each["steps_per_s"]), _range(each["range"])) for each in own.raw
    ]
    return _table(("store", "how", "steps/s", "range"), rows, right=(2, 3))


def curves(own: Own) -> str:
    """Cost of a step and of a tick, by the number of members."""
    sizes = sorted({point["members"] for points in own.curves.values() for point in points})
    rows = []
    for name, points in own.curves.items():
        at = {point["members"]: point["ms"] for point in points}
        rows.append((name, *(f"{at[size]:,.3g}" if size in at else "" for size in sizes)))
    heads = ("milliseconds", *(f"{size:,} members" for size in sizes))
    return _table(heads, rows, right=range(1, len(heads)))


def lone(own: Own) -> str:
    """A member who comes alone."""
    rows = [
        (STORES[store], f"{each['ms']:.1f}", f"{each['raw_ms']:.1f}", f"{each['ms'] / each['raw_ms']:.2f}")
        for store, each in own.lone.items()
    ]
    heads = ("store", f"ms for {STEPS} steps", "ms for the same transactions bare", "ratio")
    return _table(heads, rows, right=range(1, 4))


def _store(each: Standing) -> str:
    suffix = {"fsync": ", fsync", "no-fsync": ", no fsync"}.get(each.entry.suffix, "")
    return STORES[each.entry.store] + suffix


def _remark(found: Mapping[str, Any]) -> str:
    """What an operator would see from then on."""
    if not found["remark"]:
        return ""
    return "lost for good" if found["lost"] else "some stay unfinished in its books"


def _range(rates: Sequence[float]) -> str:
    return f"{_rate(min(rates))} to {_rate(max(rates))}" if rates else ""


def _rate(value: float) -> str:
    return f"{value:,.0f}"


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int]) -> str:
    to_the_right = set(right)
    rule = ["---:" if column in to_the_right else "---" for column in range(len(heads))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))
