"""Functions that leave a line when they begin and one when they end, so that somebody can count."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from matoolkit.worker import FunctionContext, function

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def _noted(ctx: FunctionContext) -> Iterator[None]:
    _note("begun", ctx)
    try:
        yield
    finally:
        _note("ended", ctx)


def _note(what: str, ctx: FunctionContext) -> None:
    """In one write, so that lines of many processes never mix; a killed process has either written it or not."""
    line = f"{what} {ctx.idempotency_key} {ctx.job_id} {os.getpid()} {time.monotonic()}\n".encode()
    descriptor = os.open(os.environ["COUNTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


@function("Count-Begin")
def begin(ctx: FunctionContext, Number: int, Seconds: float = 0.0) -> dict[str, Any]:  # noqa: N803 - as runbooks write it
    """Takes its time."""
    with _noted(ctx):
        time.sleep(Seconds)
        return {"Made": f"made-{Number}"}


@function("Count-Stumble")
def stumble(ctx: FunctionContext, Number: int, Every: int) -> bool:  # noqa: N803 - the same
    """Fails the first time, for some."""
    with _noted(ctx):
        if Number % Every == 0 and ctx.attempt == 1:
            raise ConnectionError("try again")
        return True


@function("Count-Refuse")
def refuse(ctx: FunctionContext, Number: int, Every: int, Made: str) -> bool:  # noqa: N803 - the same
    """Fails always, for some."""
    with _noted(ctx):
        if Made != f"made-{Number}":
            raise ValueError(f"not what was made: {Made}")
        if Number % Every == 0:
            raise PermissionError("the mailbox is on hold")
        return True


@function("Count-Undo")
def undo(ctx: FunctionContext, Number: int) -> bool:  # noqa: N803 - the same
    """Takes back."""
    with _noted(ctx):
        return Number >= 0


@function("Count-Wait")
def wait(ctx: FunctionContext, Number: int, Polls: int = 1) -> dict[str, Any]:  # noqa: N803 - the same
    """Is complete after so many questions."""
    with _noted(ctx):
        asked = ctx.job_id.rpartition("-poll-")[2]
        return {"complete": asked.isdigit() and int(asked) >= Polls, "number": Number}
