"""`matoolkit doctor`: the invariants, checked on a live database."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from matoolkit.cli.database import address, database_option
from matoolkit.cli.options import echo_json, output_option


@click.command()
@database_option
@click.option("--at-rest", is_flag=True, help="Also check what must be true once every batch has ended.")
@output_option
def doctor(database_url: str | None, output: str, *, at_rest: bool) -> None:
    """Check that a live database holds nothing that must not be; it is read, and nothing is changed."""
    from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
    from matoolkit.store.database import open_database
    from matoolkit.store.migrate import require_current

    where = address(database_url)
    if where.get_backend_name() == "sqlite" and where.database and not Path(where.database).is_file():
        raise click.ClickException(f"there is no database {where.database}; name one with --database-url")
    database = open_database(where)
    wanted = (*ALWAYS, *AT_REST) if at_rest else ALWAYS
    try:
        require_current(database)
        with database.reading() as tx:
            found = check(tx, wanted)
    finally:
        database.close()
    if output == "json":
        echo_json(
            {
                "checked": [each.sentence for each in wanted],
                "violations": [{"invariant": each.invariant, "subject": each.subject} for each in found],
            }
        )
    else:
        for violation in found:
            click.echo(f"Violation: {violation}")
        click.echo(f"{len(wanted)} invariants checked, {len(found)} violations")
    if found:
        sys.exit(1)
