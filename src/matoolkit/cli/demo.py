"""`matoolkit demo`: a whole wave on this machine, from an empty folder to a closing report."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from matoolkit.hosts.demonstration import Closing, Demonstration, Progress

_DEFAULT_SPEED = 150.0
_PATIENCE_SECONDS = 120.0
_BEAT = 0.1
_FAILURES_SHOWN = 5


@click.command()
@click.option("--members", type=click.IntRange(2, 5000), default=200, show_default=True, help="How many people move.")
@click.option(
    "--speed",
    type=click.FloatRange(20, 1000),
    default=_DEFAULT_SPEED,
    show_default=True,
    help="How much faster than the machine's clock time passes.",
)
def demo(members: int, speed: float) -> None:
    """Run a whole wave on this machine, in a temporary folder.

    Four phases through the real store, bus and orchestrator, on functions that only pretend: some fail and are tried
    again, some fail for good and are undone, one is polled; one person joins late and one leaves.
    """
    from matoolkit.clock import FastClock
    from matoolkit.hosts.demonstration import Demonstration
    from matoolkit.store.address import in_file
    from matoolkit.store.database import open_database
    from matoolkit.store.migrate import migrate

    with tempfile.TemporaryDirectory(prefix="matoolkit-demo-") as folder:
        database = open_database(in_file(Path(folder) / "matoolkit.db"))
        try:
            migrate(database)
            people = Path(folder) / "people.db"
            demonstration = Demonstration(database, FastClock(speed), members, people=people, beat_seconds=_BEAT)
            began = time.monotonic()
            _run(demonstration, began)
            closing = demonstration.end()
        finally:
            database.close()
    _report(closing, time.monotonic() - began)
    if not closing.as_expected:
        sys.exit(1)


def _run(demonstration: Demonstration, began: float) -> None:
    demonstration.begin()
    shown, changed = "", False
    try:
        while not demonstration.is_over:
            progress = demonstration.progress()
            if not changed and progress.phases.get("notify") in ("dispatched", "completed"):
                demonstration.people_change()
                changed = True
            line = _line(progress)
            if line != shown:
                click.echo(f"{time.monotonic() - began:5.1f} s  {line}")
                shown = line
            _insist_on_progress(time.monotonic() - began, line)
            time.sleep(0.5)
    except BaseException:
        demonstration.stop()
        raise


def _insist_on_progress(seconds: float, line: str) -> None:
    if seconds > _PATIENCE_SECONDS:
        raise click.ClickException(f"the wave has not ended after {_PATIENCE_SECONDS:.0f} seconds: {line}")


def _line(progress: Progress) -> str:
    phases = "  ".join(f"{name}: {status}" for name, status in progress.phases.items())
    people = ", ".join(f"{count} {status}" for status, count in sorted(progress.members.items()))
    return f"{phases}  |  {people}  |  {progress.steps['succeeded']} steps done"


def _report(closing: Closing, seconds: float) -> None:
    click.echo()
    click.echo(f"The wave ended after {seconds:.1f} seconds.")
    for status in sorted(closing.expected | closing.members):
        click.echo(f"  {closing.members[status]:>5} {status:<10} (expected {closing.expected[status]})")
    click.echo(f"  {sum(closing.steps.values()):>5} steps, of which {closing.steps['succeeded']} succeeded")
    for member, step, error in closing.failures[:_FAILURES_SHOWN]:
        click.echo(f"  {member}: {step} failed: {error}")
    if len(closing.failures) > _FAILURES_SHOWN:
        click.echo(f"  and {len(closing.failures) - _FAILURES_SHOWN} more like these")
    for violation in closing.violations:
        click.echo(f"  Violation: {violation}")
    click.echo("As expected." if closing.as_expected else "NOT as expected.")
