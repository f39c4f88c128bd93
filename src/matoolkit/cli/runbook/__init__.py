"""`matoolkit runbook`: runbooks checked, published, shown and taken out of force."""

from __future__ import annotations

import click

from matoolkit.cli.groups import Group
from matoolkit.cli.runbook.looking import get, list_runbooks, versions
from matoolkit.cli.runbook.offline import schema, validate
from matoolkit.cli.runbook.publishing import delete, publish


@click.group(commands=[validate, schema, publish, list_runbooks, get, versions, delete], cls=Group)
def runbook() -> None:
    """Check, publish and look at runbooks."""
