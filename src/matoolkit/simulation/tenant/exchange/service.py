"""The command endpoint: one address, a command in the body, pages of what it gives."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.simulation.tenant.calls import Answer, Refused, json_answer
from matoolkit.simulation.tenant.exchange.commands import COMMANDS
from matoolkit.simulation.tenant.exchange.refusals import NO_COMMAND, bad_request, refused

if TYPE_CHECKING:
    from matoolkit.simulation.tenant.access import Access
    from matoolkit.simulation.tenant.calls import Call
    from matoolkit.simulation.tenant.entra.sign_in import SignIn
    from matoolkit.simulation.tenant.exchange.recipients import Recipients

_ROLE = "Exchange.ManageAsApp"
_ANCHOR = re.compile(r"(APP:SystemMailbox\{[0-9a-f-]{36}\}|UPN:[^@\s]+)@\S+", re.IGNORECASE)
_PAGE = re.compile(r"odata\.maxpagesize=(\d+)", re.IGNORECASE)
_LARGEST_PAGE = 1000
_EMPTY_CREDENTIALS = {"WWW-Authenticate": 'Bearer realm="", error="invalid_token"'}


class Exchange:
    """Answers what clients ask `https://outlook.office365.com/adminapi`."""

    def __init__(self, recipients: Recipients, access: Access, sign_in: SignIn, tenants: set[str]) -> None:
        self._recipients = recipients
        self._access = access
        self._sign_in = sign_in
        self._tenants = tenants

    def answer(self, call: Call) -> Answer:
        """Answer a request, or refuse it."""
        name, given = _command_of(call)
        call.operation = name or "InvokeCommand"
        call.subject = str(given.get("Identity", ""))
        self._check_token(call)
        match (call.method, [part.lower() for part in call.segments]):
            case ("POST", ["adminapi", "beta", tenant, "invokecommand"]):
                if tenant not in self._tenants:
                    raise Refused(Answer(403))
            case _:
                raise Refused(json_answer(404, {"error": {"code": "NotFound", "message": "Resource not found."}}))
        _check_headers(call, name)
        command = COMMANDS.get(name.casefold())
        if command is None:
            raise refused(
                NO_COMMAND,
                f"The term '{name}' is not recognized as the name of a cmdlet, function, script file, or operable"
                " program.",
            )
        bound = command.bind(given)
        outcome = command.run(self._recipients, bound)
        return _page(call, outcome.values, outcome.warnings)

    def _check_token(self, call: Call) -> None:
        # Both are answered without a word.
        claims = self._access.exchange(call)
        if isinstance(claims, str):
            raise Refused(Answer(401, headers=dict(_EMPTY_CREDENTIALS)))
        application = self._sign_in.applications.get(str(claims.get("appid", "")).lower())
        administrator = application is None or application.exchange_administrator
        if _ROLE not in claims.get("roles", ()) or not administrator:
            raise Refused(Answer(403))


def _command_of(call: Call) -> tuple[str, dict[str, Any]]:
    """The command and its parameters, as far as the body is one: what is wrong with it is said later."""
    try:
        body = msgspec.json.decode(call.body)
    except msgspec.DecodeError:
        return "", {}
    given = body.get("CmdletInput") if isinstance(body, dict) else None
    if not isinstance(given, dict) or not isinstance(given.get("CmdletName"), str):
        return "", {}
    parameters = given.get("Parameters", {})
    return given["CmdletName"], parameters if isinstance(parameters, dict) else {}


def _check_headers(call: Call, name: str) -> None:
    if not call.headers.get("Content-Type", "").lower().startswith("application/json"):
        raise bad_request("The request's Content-Type must be application/json.")
    if not name:
        raise bad_request("The request body is not valid: CmdletInput with CmdletName and Parameters is expected.")
    stated = call.headers.get("X-CmdletName")
    if stated is None or stated.casefold() != name.casefold():
        raise bad_request(f"The header X-CmdletName does not name the command of the body, '{name}'.")
    if not _ANCHOR.fullmatch(call.headers.get("X-AnchorMailbox", "")):
        raise bad_request("The header X-AnchorMailbox is missing or invalid.")
    if call.headers.get("X-ResponseFormat", "json").lower() != "json":
        raise bad_request("The header X-ResponseFormat must be json.")


def _page(call: Call, values: list[dict[str, Any]], warnings: list[str]) -> Answer:
    preferred = _PAGE.search(call.headers.get("Prefer", ""))
    size = min(max(1, int(preferred[1])), _LARGEST_PAGE) if preferred else _LARGEST_PAGE
    start = _read_token(call.query.get("$skiptoken", ""))
    base = f"{call.origin}/adminapi/beta/{call.segments[2]}"
    answer: dict[str, Any] = {
        "@odata.context": f"{base}/$metadata#Collection(Exchange.PSCustomObject)",
        "adminapi.warnings@odata.type": "#Collection(String)",
        "@adminapi.warnings": warnings,
    }
    if len(values) > start + size:
        token = base64.urlsafe_b64encode(str(start + size).encode()).decode().rstrip("=")
        answer["@odata.nextLink"] = f"{call.origin}{call.raw_path}?%24skiptoken={token}"
    return json_answer(200, {**answer, "value": [{**each} for each in values[start : start + size]]})


def _read_token(token: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)) or 0)
    except ValueError as error:
        raise bad_request("The skip token is not valid.") from error
