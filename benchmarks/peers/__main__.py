"""Runs the comparison and writes `docs/`: `python -m benchmarks.peers`, or `make bench-peers`."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import machine
from benchmarks.peers.entries import ENTRIES, MEMBERS
from benchmarks.peers.environments import Environments, NotInstallable
from benchmarks.peers.own import measure, own
from benchmarks.peers.publishing import Publication
from benchmarks.peers.recording import Records
from benchmarks.peers.standings import standing
from benchmarks.peers.stores import Stores
from benchmarks.peers.trials import Trials
from devtools.postgres import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.peers.entries import Entry

_ROOT = Path(__file__).parent.parent.parent
_FOLDER = _ROOT / ".bench"
_MINUTES_FOR_OWN = 10.0


@dataclass(frozen=True)
class Task:
    """One piece of the comparison."""

    name: str
    run: Callable[[], dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Everything, or what is asked for."""
    options = _parser().parse_args(arguments)
    begun = time.monotonic()
    _FOLDER.mkdir(exist_ok=True)
    records = Records(_FOLDER / "runs")
    if not options.resume:
        records.clear()
    entries = [
        replace(entry, members=min(entry.members, options.members))
        for entry in ENTRIES
        if not options.only or entry.engine in options.only
    ]
    environments = Environments(_FOLDER / "environments")
    _install(environments, entries)
    runs = _FOLDER / "work"
    runs.mkdir(exist_ok=True)
    with PostgresServer(fsync=True) as postgres:
        described = records.once("machine", partial(_describe, runs, postgres))
        trials = Trials(environments, Stores(postgres, environments), runs)
        for task in _tasks(trials, entries, options):
            if time.monotonic() - begun > options.minutes * 60:
                print("the time is up; the rest is left out (--resume goes on)", file=sys.stderr)
                break
            print(f"{time.monotonic() - begun:5.0f} s  {task.name}: ", end="", file=sys.stderr, flush=True)
            print(_said(records.once(task.name, task.run)), file=sys.stderr, flush=True)
    figures = own(records.get("own") or {"measurements": []})
    standings = [standing(entry, records) for entry in entries]
    publication = Publication(described["machine"], described["when"], standings, figures)
    whole = not options.only and options.members == MEMBERS
    if whole or options.docs is not None:
        publication.write(options.docs or _ROOT / "docs")
    else:
        print(publication.section())
    return 0


def _tasks(trials: Trials, entries: Sequence[Entry], options: argparse.Namespace) -> Iterator[Task]:
    """First a take of everything, so that a run whose time is up has something of each."""
    yield from (Task(f"{entry.key}-wave-1", partial(trials.wave, entry)) for entry in entries)
    if not options.only:
        yield Task("own", partial(_own, options))
    for entry in entries:
        yield Task(f"{entry.key}-crash", partial(trials.crash, entry))
        yield Task(f"{entry.key}-story", partial(trials.story, entry))
    for take in range(2, options.repeat + 1):
        yield from (Task(f"{entry.key}-wave-{take}", partial(trials.wave, entry)) for entry in entries)


def _own(options: argparse.Namespace) -> dict[str, Any]:
    file = _FOLDER / "own.json"
    return measure(file, repeat=options.repeat, members_large=options.members_large, limit=_MINUTES_FOR_OWN * 60)


def _install(environments: Environments, entries: Sequence[Entry]) -> None:
    """All that can be had; what cannot is told again, and listed, when its turn comes."""
    for name in sorted({entry.lock for entry in entries if entry.lock is not None}):
        try:
            environments.python(name)
        except NotInstallable as error:
            print(f"{name} is not installable: {error}", file=sys.stderr)


def _describe(folder: Path, postgres: PostgresServer) -> dict[str, Any]:
    described = asdict(machine.describe(folder, postgres.conninfo()))
    return {"machine": described, "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def _said(found: dict[str, Any]) -> str:
    """A run in a few words."""
    if "seconds" in found and "steps" in found:
        return f"{found['steps'] / found['seconds']:,.0f} steps/s"
    if "measurements" in found:
        return f"{len(found['measurements'])} figures"
    return ", ".join(f"{key} {value}" for key, value in found.items() if value not in ("", None))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=sorted({entry.engine for entry in ENTRIES}),
        help="an engine; may be repeated; nothing is written (all)",
    )
    parser.add_argument("--members", type=int, default=MEMBERS, help="with fewer, nothing is written (%(default)s)")
    parser.add_argument("--members-large", type=int, help="members in the product's large wave (its own default)")
    parser.add_argument("--repeat", type=int, default=3, help="times each figure is taken (%(default)s)")
    parser.add_argument("--minutes", type=float, default=13.5, help="after which nothing new is begun (%(default)s)")
    parser.add_argument("--docs", type=Path, help="where benchmarks.md is that is written, whatever is measured (docs)")
    parser.add_argument("--resume", action="store_true", help="keep what an earlier comparison has measured")
    return parser


if __name__ == "__main__":
    sys.exit(main())
