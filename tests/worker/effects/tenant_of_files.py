"""Functions that leave traces in a folder, one file for each thing they make: what a test can count afterwards."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from matoolkit.worker import FunctionContext, FunctionError, function


def _make(name: str, job_id: str) -> bool:
    """Whether this call made it: nothing can be made twice, nor by halves."""
    try:
        (Path(os.environ["EFFECTS"]) / name).symlink_to(job_id)
    except FileExistsError:
        return False
    return True


@function("Make-Thing")
async def make_thing(ctx: FunctionContext, Name: str, Seconds: float = 0) -> dict[str, str]:  # noqa: N803 - as runbooks write it
    """As an account is made: one that exists counts only when this job may have made it."""
    await asyncio.sleep(Seconds / 2)
    if not _make(Name, ctx.job_id) and not ctx.repeated:
        raise FunctionError(f"{Name} exists", type="Conflict")
    await asyncio.sleep(Seconds / 2)
    return {"Id": Name}


@function("Send-Letter", repeatable=False)
async def send_letter(ctx: FunctionContext, Name: str, Seconds: float = 0) -> None:  # noqa: N803 - as runbooks write it
    """As an invitation: what is sent is sent."""
    await asyncio.sleep(Seconds / 2)
    if not _make(f"letter-{Name}", ctx.job_id):
        _make(f"twice-{Name}", ctx.job_id)
    await asyncio.sleep(Seconds / 2)


@function("Wait-Long")
async def wait_long(ctx: FunctionContext, Seconds: float) -> None:  # noqa: N803 - as runbooks write it
    """Say that it has begun, and wait."""
    ctx.logger.info("begun")
    await asyncio.sleep(Seconds)


@function("Block-Everything")
async def block_everything(ctx: FunctionContext) -> None:
    """What no coroutine should do."""
    ctx.logger.info("begun")
    time.sleep(60)  # noqa: ASYNC251 - that is the point


@function("Tell-Secret", secrets=("Password",))
async def tell_secret(ctx: FunctionContext, Password: str) -> dict[str, str]:  # noqa: N803 - as runbooks write it
    """Write a secret wherever one can be written."""
    ctx.logger.warning("the password is %s", Password)
    print(f"from {ctx.job_id}")
    return {"Password": Password}
