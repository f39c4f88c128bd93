"""The tenant that they move to: what is there before they come, and what goes wrong in it."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from matoolkit.simulation.tenant import Api, TenantFault

if TYPE_CHECKING:
    from matoolkit.cli.demonstration.people import People
    from matoolkit.simulation.tenant import Tenant

_GRAPH_A_SECOND = 110.0
_UNSEEN = 90.0
"""Seconds, of the demonstration's time, until the directory shows everywhere what was changed."""
TOO_MANY_REQUESTS = 429


def prepare(tenant: Tenant, people: People, speed: float) -> str:
    """Have everything there; the runbook that fits it."""
    (owner,) = tenant.add_users([{"userPrincipalName": "owner@target.example", "displayName": "Owner"}])
    staged, moved = tenant.add_groups([{"displayName": "Staged"}, {"displayName": "Moved", "members": [owner["id"]]}])
    taken = [each for each in people.everybody if each.address_is_taken]
    tenant.add_mail_users(
        [
            {"UserPrincipalName": f"shared{each.number:04}@target.example", "PrimarySmtpAddress": each.address}
            for each in taken
        ]
    )
    tenant.directory.delay_seconds = _UNSEEN / speed
    tenant.throttle(Api.GRAPH, _GRAPH_A_SECOND)
    for each in people.everybody:
        if each.stumbles:
            tenant.fault(TenantFault.UNAVAILABLE, method="POST", path="/users$", body=each.target, times=1)
        if each.answer_is_lost:
            tenant.fault(TenantFault.CUT_AFTER_ACTING, method="POST", path="/users$", body=each.target, times=1)
    runbook = files("matoolkit.cli.demonstration").joinpath("wave.yaml").read_text(encoding="utf-8")
    for name, found in (("GROUP-STAGED", staged), ("GROUP-MOVED", moved), ("USER-OWNER", owner)):
        runbook = runbook.replace(name, found["id"])
    return runbook


def licence(tenant: Tenant) -> None:
    """What another team does by and by, and the wave waits for: whoever has no licence gets one."""
    with tenant.lock:
        for _, user in tenant.directory.all_users():
            if not user.get("usageLocation"):
                tenant.directory.change_user(user, {"usageLocation": "DE"})


def throttled(tenant: Tenant) -> int:
    """How often it said that these were too many requests."""
    return int(tenant.records.statuses()[TOO_MANY_REQUESTS])
