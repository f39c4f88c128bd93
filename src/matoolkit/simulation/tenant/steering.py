"""Steering from outside the process: what goes wrong, what is there, what was asked. Needs a token of its own.

Whoever does not show it is told that there is nothing, so that no client comes here by accident.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.simulation.tenant.calls import Answer, Api, Refused, json_answer
from matoolkit.simulation.tenant.entra.device_codes import Decision, NoSuchCode
from matoolkit.simulation.tenant.entra.identities import Person
from matoolkit.simulation.tenant.faults import FaultRule, TenantFault
from matoolkit.simulation.tenant.throttling import ThrottleMode

if TYPE_CHECKING:
    from matoolkit.simulation.tenant.calls import Call
    from matoolkit.simulation.tenant.tenant import Tenant

TOKEN_HEADER = "X-Simulation-Token"  # noqa: S105 - the header's name


class _NewFault(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    fault: TenantFault
    api: Api | None = None
    method: str = ""
    path: str = ""
    body: str = ""
    times: int | None = None
    skip: int = 0
    likelihood: float = 1.0
    status: int = 503
    retry_after: int | None = None
    seconds: float = 0.0
    location: str = ""


class _NewThrottle(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    rate: float
    mode: ThrottleMode = ThrottleMode.FIXED_WINDOW
    window_seconds: float = 1.0
    burst: float | None = None


class _Settings(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    consistency_delay_seconds: float | None = None
    token_lifetime_seconds: float | None = None
    device_code_interval_seconds: int | None = None


class _Objects(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    users: list[dict[str, Any]] = []
    guests: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    mail_users: list[dict[str, Any]] = []
    distribution_groups: list[dict[str, Any]] = []


class _Approval(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    username: str
    name: str = ""
    roles: list[str] = []


class _RollOver(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    retire: bool = False


class Steering:
    """Answers requests to `/simulation/`."""

    def __init__(self, tenant: Tenant, token: str) -> None:
        self._tenant = tenant
        self._token = token

    def answer(self, call: Call) -> Answer:
        """Do what is asked; without the token there is nothing here."""
        if not secrets.compare_digest(call.headers.get(TOKEN_HEADER, "").encode(), self._token.encode()):
            return json_answer(404, {"error": "not_found"})
        try:
            with self._tenant.lock:
                return self._act(call)
        except Refused as refusal:
            return refusal.answer
        except (msgspec.DecodeError, NoSuchCode, ValueError, KeyError, TypeError) as error:
            return json_answer(400, {"error": f"{type(error).__name__}: {error}"})

    def _act(self, call: Call) -> Answer:
        tenant = self._tenant
        match (call.method, call.segments[1:]):
            case ("GET", ["records"]):
                return json_answer(
                    200,
                    {
                        "counts": tenant.records.table(),
                        "forgotten": tenant.records.forgotten,
                        "faults": {str(fault): count for fault, count in tenant.faults.struck.items()},
                    },
                )
            case ("GET", ["records", "requests"]):
                limit = int(call.query.get("limit", "100"))
                return json_answer(200, [asdict(each) for each in tenant.records.last(limit)])
            case ("GET", ["records", "subjects"]):
                return json_answer(200, tenant.records.by_subject(call.query["operation"], acted=True))
            case ("DELETE", ["records"]):
                tenant.records.clear()
                return Answer(204)
            case ("GET", ["faults"]):
                return json_answer(200, [asdict(rule) for rule in tenant.faults.rules])
            case ("POST", ["faults"]):
                given = msgspec.json.decode(call.body, type=_NewFault)
                tenant.faults.add(FaultRule(**msgspec.structs.asdict(given)))
                return Answer(204)
            case ("DELETE", ["faults"]):
                tenant.faults.clear()
                return Answer(204)
            case ("PUT", ["throttles", api]):
                limit_ = msgspec.json.decode(call.body, type=_NewThrottle)
                tenant.throttle(
                    Api(api), limit_.rate, limit_.mode, window_seconds=limit_.window_seconds, burst=limit_.burst
                )
                return Answer(204)
            case ("DELETE", ["throttles", api]):
                tenant.throttle(Api(api), None)
                return Answer(204)
            case ("PATCH", ["settings"]):
                return self._set(msgspec.json.decode(call.body, type=_Settings))
            case ("POST", ["keys", "rollover"]):
                wanted = msgspec.json.decode(call.body or b"{}", type=_RollOver)
                return json_answer(200, {"kid": tenant.tokens.keys.roll_over(retire=wanted.retire)})
            case ("POST", ["objects"]):
                return self._add(msgspec.json.decode(call.body, type=_Objects))
            case ("GET", ["objects"]):
                return json_answer(
                    200,
                    {
                        "users": len(tenant.directory.users),
                        "groups": len(tenant.directory.groups),
                        "mailUsers": len(tenant.recipients.mail_users),
                        "distributionGroups": len(tenant.recipients.groups),
                    },
                )
            case ("GET", ["device-codes"]):
                return json_answer(200, [code.user_code for code in tenant.device_codes.waiting])
            case ("POST", ["device-codes", code, "approve"]):
                who = msgspec.json.decode(call.body, type=_Approval)
                person = Person(username=who.username, name=who.name, roles=frozenset(who.roles))
                tenant.device_codes.decide(code, Decision.APPROVED, person)
                return Answer(204)
            case ("POST", ["device-codes", code, "decline"]):
                tenant.device_codes.decide(code, Decision.DECLINED)
                return Answer(204)
            case ("POST", ["device-codes", code, "expire"]):
                tenant.device_codes.decide(code, Decision.EXPIRED)
                return Answer(204)
            case _:
                return json_answer(404, {"error": "not_found"})

    def _set(self, wanted: _Settings) -> Answer:
        tenant = self._tenant
        if wanted.consistency_delay_seconds is not None:
            tenant.directory.delay_seconds = wanted.consistency_delay_seconds
        if wanted.token_lifetime_seconds is not None:
            tenant.tokens.lifetime_seconds = wanted.token_lifetime_seconds
        if wanted.device_code_interval_seconds is not None:
            tenant.device_codes.interval_seconds = wanted.device_code_interval_seconds
        return Answer(204)

    def _add(self, given: _Objects) -> Answer:
        tenant = self._tenant
        return json_answer(
            201,
            {
                "users": [each["id"] for each in tenant.add_users(given.users)],
                "guests": [each["id"] for each in tenant.add_guests(given.guests)],
                "groups": [each["id"] for each in tenant.add_groups(given.groups)],
                "mailUsers": [each["Guid"] for each in tenant.add_mail_users(given.mail_users)],
                "distributionGroups": [
                    each["Guid"] for each in tenant.add_distribution_groups(given.distribution_groups)
                ],
            },
        )
