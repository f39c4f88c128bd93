"""Runs the suites and prints what they found: `python -m benchmarks`, or `make bench`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from benchmarks import Plan, machine, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_HERE = Path(__file__).parent

_SUITES = {
    "raw": "benchmarks.raw_limits:raw_limits",
    "styles": "benchmarks.raw_limits:parameter_styles",
    "engine": "benchmarks.engine:engine",
    "worker": "benchmarks.worker:worker",
    "tick": "benchmarks.tick:tick",
}
"""Where each suite's function is. They are imported only when run, so that none counts in another's memory; the order
is the order of the report."""
_LARGE = {"sqlite": 100_000, "postgresql": 20_000}
"""Members of the large wave: as many as are promised where it fits in the time of a run."""


class Suite(Protocol):
    """Takes the plan of a run and yields what it measured."""

    def __call__(self, plan: Plan) -> Iterator[report.Measurement]: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is asked for, prints the table and writes the JSON."""
    options = _parser().parse_args(arguments)
    missing = [name for name in options.only or [] if not _exists(name)]
    if missing:
        print(f"no such suite yet: {', '.join(missing)}", file=sys.stderr)
        return 2
    names = [name for name in _SUITES if name in (options.only or _SUITES) and _exists(name)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".run-", dir=_HERE)))
        create_database = _start_postgresql(stack) if options.store != "sqlite" else None
        described = machine.describe(folder, create_database("machine") if create_database else None)
        measurements: list[report.Measurement] = []
        for name in names:
            plan = Plan(
                members=options.members,
                steps=options.steps,
                large={store: options.members_large or members for store, members in _LARGE.items()},
                repeat=options.repeat,
                folder=folder / name,
                sqlite=options.store != "postgresql",
                postgresql_url=create_database(name) if create_database else None,
            )
            plan.folder.mkdir()
            print(f"measuring: {name} ...", file=sys.stderr, flush=True)
            measurements.extend(_load(name)(plan))
    print("\n".join(f"{key}: {value}" for key, value in asdict(described).items()), end="\n\n")
    print(report.table(measurements))
    report.write_json(options.json, described, measurements)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--members", type=_positive, default=1000, help="members in the wave (%(default)s)")
    parser.add_argument(
        "--members-large", type=_positive, help=f"members in the large wave ({', '.join(map(str, _LARGE.values()))})"
    )
    parser.add_argument("--steps", type=_positive, default=5, help="steps of each member (%(default)s)")
    parser.add_argument("--repeat", type=_positive, default=3, help="times each figure is taken (%(default)s)")
    parser.add_argument("--store", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--only", choices=tuple(_SUITES), action="append", help="a suite; may be repeated (all)")
    parser.add_argument("--json", type=Path, default=_HERE / "results.json", metavar="PATH", help="(%(default)s)")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _start_postgresql(stack: ExitStack) -> Callable[[str], str]:
    """Starts a server with fsync on, for the length of the run, and returns what makes a database and tells its URL.

    Imported here, so that SQLite alone needs none.
    """
    from devtools.postgres import PostgresServer

    server = stack.enter_context(PostgresServer(fsync=True))

    def create_database(name: str) -> str:
        server.create_database(name)
        return server.url(name).replace("postgresql+psycopg://", "postgresql://", 1)

    return create_database


def _exists(suite: str) -> bool:
    return importlib.util.find_spec(_SUITES[suite].partition(":")[0]) is not None


def _load(suite: str) -> Suite:
    module, _, function = _SUITES[suite].partition(":")
    return cast("Suite", getattr(importlib.import_module(module), function))


if __name__ == "__main__":
    sys.exit(main())
