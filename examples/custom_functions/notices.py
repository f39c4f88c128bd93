"""Tells people that their move is coming, through a service of the company's own.

An example of a function that calls something over the network: with a secret, a time limit, and an answer for the
case that it is run twice.
"""

from __future__ import annotations

from typing import Any

from aiohttp import ClientSession, ClientTimeout

from matoolkit.worker import FunctionContext, FunctionError, function

_SENT, _SENT_BEFORE, _BUSY = 201, 409, 429


@function("Send-MigrationNotice", secrets=("ApiKey",))
async def send_migration_notice(
    ctx: FunctionContext, UserPrincipalName: str, ServiceUrl: str, ApiKey: str, Language: str = "en"
) -> dict[str, Any]:
    """Send one person the notice, once."""
    letter = {"to": UserPrincipalName, "template": "migration", "language": Language}
    # The key is the same however often this step is tried, so the service can tell a repetition from a second letter.
    headers = {"Authorization": f"Bearer {ApiKey}", "Idempotency-Key": ctx.idempotency_key or ctx.job_id}
    async with (
        ClientSession(timeout=ClientTimeout(total=30)) as session,
        session.post(ServiceUrl, json=letter, headers=headers) as answer,
    ):
        if answer.status == _SENT_BEFORE and ctx.repeated:
            return {"Sent": False, "NoticeId": None}
        if answer.status == _BUSY:
            raise FunctionError("the notice service is busy", type="NoticeServiceBusy", is_throttled=True)
        if answer.status != _SENT:
            raise FunctionError(f"the notice service answered {answer.status}", type="NoticeRefused")
        ctx.logger.info("notice sent")
        return {"Sent": True, "NoticeId": (await answer.json())["id"]}
