"""Functions that leave a line for each time they were begun, so that somebody can count."""

from __future__ import annotations

import os
import time
from typing import Any

from matoolkit.worker import FunctionContext, function


def _note(ctx: FunctionContext, number: int) -> None:
    """In one write, so that lines of many processes never mix; a killed process has either written it or not."""
    line = f"{ctx.idempotency_key} {ctx.attempt} {ctx.job_id} {os.getpid()} {number}\n".encode()
    descriptor = os.open(os.environ["COUNTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


@function("Count-Begin")
def begin(ctx: FunctionContext, Number: int, Seconds: float = 0.0) -> dict[str, Any]:  # noqa: N803 - as runbooks write it
    """Takes its time."""
    _note(ctx, Number)
    time.sleep(Seconds)
    return {"Made": f"made-{Number}"}


@function("Count-Stumble")
def stumble(ctx: FunctionContext, Number: int, Every: int) -> bool:  # noqa: N803 - the same
    """Fails the first time, for some."""
    _note(ctx, Number)
    if Number % Every == 0 and ctx.attempt == 1:
        raise ConnectionError("try again")
    return True


@function("Count-Refuse")
def refuse(ctx: FunctionContext, Number: int, Every: int, Made: str) -> bool:  # noqa: N803 - the same
    """Fails always, for some."""
    _note(ctx, Number)
    if Made != f"made-{Number}":
        raise ValueError(f"not what was made: {Made}")
    if Number % Every == 0:
        raise PermissionError("the mailbox is on hold")
    return True


@function("Count-Undo")
def undo(ctx: FunctionContext, Number: int) -> bool:  # noqa: N803 - the same
    """Takes back."""
    _note(ctx, Number)
    return True


@function("Count-Wait")
def wait(ctx: FunctionContext, Number: int, Polls: int = 1) -> dict[str, Any]:  # noqa: N803 - the same
    """Is complete after so many questions."""
    _note(ctx, Number)
    asked = ctx.job_id.rpartition("-poll-")[2]
    return {"complete": asked.isdigit() and int(asked) >= Polls}
