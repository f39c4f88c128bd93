"""`matoolkit simulate`: whole waves under a virtual clock, with faults drawn from seeds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from matoolkit.cli.options import echo_json, output_option

if TYPE_CHECKING:
    from matoolkit.simulation.history import Outcome
    from matoolkit.simulation.soak import Report


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=200, show_default=True, help="How many histories to live.")
@click.option("--seed", type=int, default=None, help="Live only this one, and show its violations.")
@click.option("--from", "first", type=int, default=0, show_default=True, help="The first seed.")
@click.option(
    "--processes", type=click.IntRange(1), default=None, help="How many at a time; as many as there are cores."
)
@click.option("--trace/--no-trace", default=False, help="With --seed: print everything that happened.")
@click.option("--require-coverage", is_flag=True, help="Fail when a change of state or a fault was seen too seldom.")
@output_option
def simulate(
    seeds: int, seed: int | None, first: int, processes: int | None, *, trace: bool, require_coverage: bool, output: str
) -> None:
    """Live whole waves under a virtual clock, with faults drawn from seeds, and check that nothing is lost."""
    from matoolkit.simulation.soak import be_quiet, soak

    be_quiet()
    if seed is not None:
        _one(seed, trace=trace, output=output)
        return
    shown = sys.stderr.isatty()

    def progress(report: Report) -> None:
        if shown:
            click.echo(f"\r{report.histories} of {seeds} histories, {len(report.failures)} failed", err=True, nl=False)

    report = soak(first, seeds, progress, processes)
    if shown:
        click.echo(err=True)
    if output == "json":
        echo_json(
            {
                "histories": report.histories,
                "perSecondAndCore": round(report.per_second, 2),
                "livedTwice": report.lived_twice,
                "failures": [{"seed": number, "violations": list(what)} for number, what in report.failures],
                "coverage": dict(report.coverage.rows()),
                "holes": dict(report.coverage.holes()),
            }
        )
    else:
        _show(report)
    if report.failures or report.coverage.unknown() or (require_coverage and report.coverage.holes()):
        sys.exit(1)


def _one(seed: int, *, trace: bool, output: str) -> None:
    from matoolkit.simulation.history import Simulator
    from matoolkit.simulation.soak import plan_for

    plan = plan_for(seed)
    outcome = Simulator().live(seed, plan)
    if output == "json":
        echo_json(
            {
                "seed": seed,
                "mode": plan.mode,
                "commits": outcome.commits,
                "violations": list(outcome.violations),
                "digest": outcome.digest,
                "trace": [str(line) for line in outcome.trace] if trace else [],
            }
        )
    else:
        _show_one(plan.mode, outcome, trace=trace)
    if outcome.violations:
        sys.exit(1)


def _show_one(mode: str, outcome: Outcome, *, trace: bool) -> None:
    if trace:
        for line in outcome.trace:
            click.echo(str(line))
    for violation in outcome.violations:
        click.echo(f"Violation: {violation}")
    click.echo(
        f"seed {outcome.seed} ({mode}): {outcome.commits} commits, {len(outcome.violations)} violations, "
        f"trace {outcome.digest[:16]}"
    )


def _show(report: Report) -> None:
    for name, times in report.coverage.rows():
        click.echo(f"{times:>9}  {name}")
    for name, times in report.coverage.holes():
        click.echo(f"Seldom: {name} was seen {times} times")
    for name in report.coverage.unknown():
        click.echo(f"Unknown: nobody said that there is '{name}'")
    for seed, violations in report.failures[:20]:
        click.echo(f"Seed {seed} failed: {violations[0]}")
        click.echo(f"  replay with: matoolkit simulate --seed {seed} --trace")
    click.echo(
        f"{report.histories} histories, {len(report.failures)} with violations, {report.lived_twice} lived twice, "
        f"{report.per_second:.1f} a second and core"
    )
