"""`matoolkit demo`: a whole wave on this machine, from an empty folder to a closing report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from matoolkit.cli.demonstration.stage import Ended

_DEFAULT_SPEED = 150.0
_LOG = "demo.log"


@click.command()
@click.option("--members", type=click.IntRange(2, 5000), default=200, show_default=True, help="How many people move.")
@click.option(
    "--speed",
    type=click.FloatRange(20, 500),
    default=_DEFAULT_SPEED,
    show_default=True,
    help="How much faster than the machine's clock time passes.",
)
def demo(members: int, speed: float) -> None:
    """Run a whole wave on a simulated tenant, in a temporary folder.

    Four phases, from pre-stage to verification, through scheduler, orchestrator, worker and API as `matoolkit up` has
    them. The tenant throttles, fails now and then and loses answers; some people cannot be moved and are taken back;
    one joins late and one leaves. Exit code 0 when everybody ended where they should.
    """
    import signal
    from tempfile import TemporaryDirectory

    from matoolkit.cli.showing.tables import console

    # So that everything is ended and taken away, whoever ends it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    on = console()
    try:
        with TemporaryDirectory(prefix="matoolkit-demo-") as folder:
            ended = play(Path(folder), members, speed, on)
            if not ended.as_expected:
                on.print(f"What every part said is in {_kept(Path(folder))}.")
    except KeyboardInterrupt:
        click.echo("\nEnded in the middle of the wave; nothing is left of it.", err=True)
        sys.exit(1)
    if not ended.as_expected:
        sys.exit(1)


def play(folder: Path, members: int, speed: float, on: Console) -> Ended:
    """The demonstration, shown on a console."""
    import logging

    from matoolkit.cli.demonstration.closing import report
    from matoolkit.cli.demonstration.stage import Stage
    from matoolkit.cli.watch.lines import TextLines
    from matoolkit.cli.watch.screen import Screen

    # Retries and refusals are part of the play; what is wrong in the end is in the report.
    logging.basicConfig(filename=folder / _LOG, level=logging.INFO, force=True)
    on.print(f"{members:,} people move into a simulated tenant, {speed:g} times as fast as the clock on the wall.")
    stage = Stage(folder, members, speed)
    if on.is_terminal:
        with Screen() as screen:
            ended = stage.play(screen)
    else:
        ended = stage.play(TextLines())
    report(ended, on)
    return ended


def _kept(folder: Path) -> Path:
    """The log, where it outlasts the folder."""
    import shutil
    from tempfile import mkdtemp

    return Path(shutil.move(folder / _LOG, Path(mkdtemp(prefix="matoolkit-demo-log-")) / _LOG))
