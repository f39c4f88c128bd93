"""The tenant itself: its services, what it holds, and what goes wrong in it. No network here: calls in, answers out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from matoolkit.clock import SystemClock
from matoolkit.simulation.tenant.access import Access
from matoolkit.simulation.tenant.archive import Archive
from matoolkit.simulation.tenant.calls import Answer, Api, Refused
from matoolkit.simulation.tenant.directory import Directory
from matoolkit.simulation.tenant.entra.device_codes import DeviceCodes
from matoolkit.simulation.tenant.entra.refusals import refused as sign_in_refused
from matoolkit.simulation.tenant.entra.sign_in import SignIn
from matoolkit.simulation.tenant.entra.tokens import SigningKeys, Tokens
from matoolkit.simulation.tenant.exchange.recipients import Recipients
from matoolkit.simulation.tenant.exchange.refusals import BUSY
from matoolkit.simulation.tenant.exchange.refusals import error_answer as exchange_error
from matoolkit.simulation.tenant.exchange.service import Exchange
from matoolkit.simulation.tenant.faults import FaultRule, TenantFault, TenantFaults
from matoolkit.simulation.tenant.graph.refusals import error_answer as graph_error
from matoolkit.simulation.tenant.graph.refusals import unauthorized
from matoolkit.simulation.tenant.graph.service import Graph
from matoolkit.simulation.tenant.records import CUT, Records
from matoolkit.simulation.tenant.throttling import Throttle, ThrottleMode, make_throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from matoolkit.clock import Clock
    from matoolkit.simulation.tenant.calls import Call
    from matoolkit.simulation.tenant.entra.identities import Application, ExposedApi

    Properties = dict[str, Any]

TENANT_ID = "7c1e5a3e-0d1f-4f4e-9a55-1b2c3d4e5f60"
DOMAINS = ("target.example", "target.onmicrosoft.example")
_RETRY_AFTER = 10


@dataclass(slots=True)
class Reply:
    """What is sent, and how."""

    answer: Answer | None
    """None: the connection is closed without a word."""
    seconds: float = 0.0
    """How long to wait before it is sent."""
    halfway: bool = False
    """Whether the connection is closed in the middle of it."""


class Tenant:
    """A tenant that exists in this process and, with a file, from one process to the next."""

    def __init__(
        self,
        *,
        file: Path | None = None,
        clock: Clock | None = None,
        sign_in_clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        seed: int | None = None,
        tenant_id: str = TENANT_ID,
        domains: Iterable[str] = DOMAINS,
        mail_users_for_users: bool = False,
        keep_requests: int = 10_000,
        keep_counts: int = 500_000,
    ) -> None:
        # What is created carries the time of `clock`, which may run fast; tokens are checked by clients against the
        # machine's time, so they have a clock of their own.
        clock, sign_in_clock = clock or SystemClock(), sign_in_clock or SystemClock()
        self.tenant_id = tenant_id.lower()
        self.domains = [domain.lower() for domain in domains]
        self.lock = RLock()
        self.mail_users_for_users = mail_users_for_users
        self.archive = Archive(file)
        self.directory = Directory(self.archive, clock, monotonic, self.domains)
        self.recipients = Recipients(self.archive, clock, self.domains)
        self.tokens = Tokens(SigningKeys(self.archive), sign_in_clock)
        self.device_codes = DeviceCodes(monotonic)
        self.sign_in = SignIn(self.tenant_id, self.domains, self.tokens, self.device_codes, sign_in_clock)
        self.faults = TenantFaults(Random(seed))
        self.records = Records(keep_requests=keep_requests, keep_counts=keep_counts)
        self._monotonic = monotonic
        self._throttles: dict[Api, Throttle] = {}
        access = Access(self.tokens)
        self._graph = Graph(self.directory, access, clock, self._user_created)
        self._exchange = Exchange(self.recipients, access, self.sign_in, {self.tenant_id, *self.domains})

    def close(self) -> None:
        """Let go of the file."""
        with self.lock:
            self.archive.close()

    # Who may sign in -------------------------------------------------------------------------------------------------

    def register(self, application: Application) -> Application:
        """Let an application sign in."""
        with self.lock:
            self.sign_in.applications[application.client_id.lower()] = application
        return application

    def expose(self, api: ExposedApi) -> ExposedApi:
        """Issue tokens for an API of ours."""
        with self.lock:
            self.sign_in.apis[api.client_id.lower()] = api
        return api

    def allow_people_in(self, client_id: str) -> None:
        """Let people sign in through an application."""
        with self.lock:
            self.sign_in.public_clients.add(client_id.lower())

    # What is there ---------------------------------------------------------------------------------------------------

    def add_users(self, several: Iterable[Mapping[str, Any]]) -> list[Properties]:
        """Users, each with a userPrincipalName; everything else is as given or as it is by default."""
        with self.lock:
            return self.directory.add_users(dict(each) for each in several)

    def add_guests(self, several: Iterable[Mapping[str, Any]]) -> list[Properties]:
        """Guests, each with a mail address."""
        guests = [
            {
                "userPrincipalName": f"{each['mail'].replace('@', '_')}#EXT#@{self.domains[0]}",
                "displayName": each["mail"].partition("@")[0],
                "userType": "Guest",
                "creationType": "Invitation",
                "externalUserState": "Accepted",
                **each,
            }
            for each in several
        ]
        return self.add_users(guests)

    def add_groups(self, several: Iterable[Mapping[str, Any]]) -> list[Properties]:
        """Groups, each with a displayName; `members` are ids."""
        with self.lock:
            given = [dict(each) for each in several]
            members = [each.pop("members", ()) for each in given]
            groups = self.directory.add_groups(given)
            for group, ids in zip(groups, members, strict=True):
                self.directory.join_all(group["id"], ids)
            return groups

    def add_mail_users(self, several: Iterable[Mapping[str, Any]]) -> list[Properties]:
        """Mail users, each with a UserPrincipalName."""
        with self.lock:
            return self.recipients.add_mail_users(several)

    def add_distribution_groups(self, several: Iterable[Mapping[str, Any]]) -> list[Properties]:
        """Distribution groups, each with a Name; `Members` are identities of mail users."""
        with self.lock:
            return self.recipients.add_groups(several)

    def _user_created(self, user: Properties) -> None:
        if self.mail_users_for_users:
            name = user["userPrincipalName"]
            if self.recipients.owner_of(name) is None:
                self.recipients.add_mail_users(
                    [
                        {
                            "UserPrincipalName": name,
                            "DisplayName": user["displayName"],
                            "ExternalDirectoryObjectId": user["id"],
                        }
                    ]
                )

    # What goes wrong -------------------------------------------------------------------------------------------------

    def fault(self, fault: TenantFault, **aim: Any) -> FaultRule:
        """Have something go wrong: `tenant.fault(TenantFault.CUT_AFTER_ACTING, path="/users$", times=1)`."""
        with self.lock:
            return self.faults.add(FaultRule(fault=fault, **aim))

    def throttle(
        self,
        api: Api,
        rate: float | None,
        mode: ThrottleMode = ThrottleMode.FIXED_WINDOW,
        *,
        window_seconds: float = 1.0,
        burst: float | None = None,
    ) -> None:
        """Answer 429 above so many requests a second; None lifts the limit."""
        with self.lock:
            if rate is None:
                self._throttles.pop(api, None)
            else:
                self._throttles[api] = make_throttle(
                    mode, rate, self._monotonic, window_seconds=window_seconds, burst=burst
                )

    # Calls -----------------------------------------------------------------------------------------------------------

    def before_acting(self, call: Call) -> tuple[FaultRule | None, Reply | None]:
        """The fault that strikes this call, and the reply when it is known without acting."""
        api = call.api
        with self.lock:
            # What was throttled never came in: the other faults strike what did.
            throttle = self._throttles.get(api)
            wait = throttle.wait_seconds() if throttle else 0.0
            if wait > 0:
                answer = _throttled(api, max(1, math.ceil(wait)))
                return None, self._recorded(api, call, Reply(answer), acted=False)
            rule = self.faults.draw(call, api)
            if rule is None:
                return None, None
            reply = _instead_of_acting(rule, api, call)
            if reply is None:
                return rule, None
            return rule, self._recorded(api, call, reply, acted=False)

    def act(self, call: Call, rule: FaultRule | None) -> Reply:
        """Do what the call asks for, and reply as the fault has it."""
        api = call.api
        with self.lock:
            acted = True
            try:
                with self.archive.together():
                    answer = self._answer(api, call)
            except Refused as refusal:
                answer, acted = refusal.answer, False
            _add_identifiers(api, call, answer)
            return self._recorded(api, call, _after_acting(rule, api, answer), acted=acted)

    def _answer(self, api: Api, call: Call) -> Answer:
        match api:
            case Api.GRAPH:
                return self._graph.answer(call)
            case Api.EXCHANGE:
                return self._exchange.answer(call)
            case Api.SIGN_IN | Api.STEERING:
                return self.sign_in.answer(call)

    def _recorded(self, api: Api, call: Call, reply: Reply, *, acted: bool) -> Reply:
        if not call.operation:
            call.describe()
        cut = reply.answer is None or reply.halfway
        status = CUT if cut or reply.answer is None else reply.answer.status
        self.records.add(api, call, status, acted=acted)
        return reply


def _throttled(api: Api, seconds: int) -> Answer:
    headers = {"Retry-After": str(seconds)}
    match api:
        case Api.GRAPH:
            return graph_error(429, "TooManyRequests", "Too many requests.", headers=headers)
        case Api.EXCHANGE:
            answer = exchange_error(429, BUSY, "The server cannot service this request right now. Try again later.")
        case Api.SIGN_IN | Api.STEERING:
            answer = sign_in_refused(
                90055, "There are too many requests.", error="temporarily_unavailable", status=429
            ).answer
    answer.headers.update(headers)
    return answer


def _failing(rule: FaultRule, api: Api) -> Answer:
    if api is Api.EXCHANGE:
        answer = exchange_error(
            rule.status, "Microsoft.Exchange.Data.Directory.ADTransientException", "The server is not available."
        )
    elif rule.status == 503:  # noqa: PLR2004 - the status it is
        answer = graph_error(rule.status, "ServiceUnavailable", "The service is temporarily unavailable.")
    elif rule.status == 504:  # noqa: PLR2004 - the same
        answer = graph_error(rule.status, "GatewayTimeout", "The gateway did not receive a response in time.")
    else:
        answer = graph_error(rule.status, "InternalServerError", "An internal server error occurred.")
    if rule.retry_after is not None:
        answer.headers["Retry-After"] = str(rule.retry_after)
    return answer


def _instead_of_acting(rule: FaultRule, api: Api, call: Call) -> Reply | None:
    match rule.fault:
        case TenantFault.THROTTLED:
            wait = _RETRY_AFTER if rule.retry_after is None else rule.retry_after
            return Reply(_throttled(api, wait), rule.seconds)
        case TenantFault.UNAVAILABLE:
            return Reply(_failing(rule, api), rule.seconds)
        case TenantFault.CUT_BEFORE_ACTING:
            return Reply(None, rule.seconds)
        case TenantFault.UNAUTHORIZED:
            answer = (
                Answer(401) if api is Api.EXCHANGE else unauthorized("Access token has expired or is not yet valid.")
            )
            return Reply(answer, rule.seconds)
        case TenantFault.TRANSIENT:
            answer = exchange_error(400, BUSY, "The server is busy. Please retry the request.")
            return Reply(answer, rule.seconds)
        case TenantFault.REDIRECTED:
            query = f"?{call.raw_query}" if call.raw_query else ""
            location = f"{rule.location or call.origin}{call.raw_path}{query}"
            return Reply(Answer(302, headers={"Location": location}), rule.seconds)
        case _:
            return None


def _after_acting(rule: FaultRule | None, api: Api, answer: Answer) -> Reply:
    if rule is None:
        return Reply(answer)
    match rule.fault:
        case TenantFault.CUT_AFTER_ACTING:
            return Reply(None, rule.seconds)
        case TenantFault.CUT_HALFWAY:
            return Reply(answer, rule.seconds, halfway=True)
        case TenantFault.UNAVAILABLE_AFTER_ACTING:
            return Reply(_failing(rule, api), rule.seconds)
        case TenantFault.FOREIGN_NEXT_LINK:
            return Reply(_with_foreign_link(answer, rule.location or "https://elsewhere.example"), rule.seconds)
        case TenantFault.SLOW_AFTER_ACTING:
            return Reply(answer, rule.seconds)
        case _:
            return Reply(answer)


def _with_foreign_link(answer: Answer, location: str) -> Answer:
    body = msgspec.json.decode(answer.body) if answer.body else None
    if isinstance(body, dict) and answer.status == 200:  # noqa: PLR2004 - only what succeeded has pages
        body["@odata.nextLink"] = f"{location}/next"
        return Answer(answer.status, msgspec.json.encode(body), answer.headers)
    return answer


def _add_identifiers(api: Api, call: Call, answer: Answer) -> None:
    if api is Api.SIGN_IN:
        return
    answer.headers.setdefault("request-id", str(uuid4()))
    client = call.headers.get("client-request-id")
    if client:
        answer.headers["client-request-id"] = client
