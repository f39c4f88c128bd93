"""What the jobs of the wave come to: decided by the member's number and by which attempt it is, and by nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from matoolkit.worker import FunctionContext, FunctionError, function

STUMBLES_EVERY, FAILS_EVERY, WAITS_EVERY, NEVER_CREATED = 7, 11, 5, 13


@function("Open-Wave")
async def open_wave(ctx: FunctionContext) -> bool:
    """Fails the first time."""
    if ctx.attempt == 1:
        raise FunctionError("not yet", type="ServiceUnavailable")
    return True


@function("New-Account")
async def new_account(ctx: FunctionContext, Number: int) -> dict[str, Any]:  # noqa: N803 - as runbooks write it
    """Fails the first time for some, and always for one."""
    if Number == NEVER_CREATED or (Number % STUMBLES_EVERY == 0 and ctx.attempt == 1):
        raise FunctionError("try again", type="ServiceUnavailable")
    return {"Id": f"id-{Number}"}


@function("Wait-Gate")
def wait_gate(Number: int, Account: str) -> dict[str, Any]:  # noqa: N803 - as runbooks write it
    """Is complete once the test has opened the gate."""
    if Account != f"id-{Number}":
        raise FunctionError(f"{Account} is not of {Number}", type="Mixed")
    return {"complete": Path(os.environ["GATE"]).exists()}


@function("Set-Forwarding")
async def set_forwarding(Number: int) -> bool:  # noqa: N803 - as runbooks write it
    """Fails for some, for good."""
    if Number % FAILS_EVERY == 0:
        raise FunctionError("the mailbox is on hold", type="MailboxOnHold")
    return True


@function("Move-Mailbox")
async def move_mailbox(ctx: FunctionContext, Number: int) -> dict[str, Any]:  # noqa: N803 - as runbooks write it
    """Has to be asked again for some."""
    return {"complete": Number % WAITS_EVERY != 0 or bool(re.search(r"-poll-\d+", ctx.job_id))}


@function("Remove-Forwarding")
async def remove_forwarding(Number: int) -> bool:  # noqa: N803 - as runbooks write it
    """Undoes."""
    return Number >= 0


@function("Revoke-Access")
async def revoke_access(Number: int) -> bool:  # noqa: N803 - as runbooks write it
    """For who leaves."""
    return Number >= 0
