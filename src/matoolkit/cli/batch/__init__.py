"""`matoolkit batch`: waves and their people, looked at, begun, taken on, ended."""

from __future__ import annotations

import click

from matoolkit.cli.batch.acting import advance, cancel, release_removals
from matoolkit.cli.batch.closely import failures, member
from matoolkit.cli.batch.looking import get, list_batches, phases, steps
from matoolkit.cli.batch.people import add_members, create, members, remove_member
from matoolkit.cli.batch.watching import watch
from matoolkit.cli.groups import Group


@click.group(
    commands=[
        list_batches,
        get,
        create,
        advance,
        watch,
        cancel,
        members,
        add_members,
        remove_member,
        member,
        failures,
        phases,
        steps,
        release_removals,
    ],
    cls=Group,
)
def batch() -> None:
    """Look at batches, make them by hand, take them on, end them."""
