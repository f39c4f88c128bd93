"""Query options: `$select`, `$filter`, `$top` and `$skiptoken`, and the pages they make."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from matoolkit.simulation.tenant.graph.refusals import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from matoolkit.simulation.tenant.calls import Call
    from matoolkit.simulation.tenant.graph.properties import Schema

_LARGEST_PAGE = 999
_KNOWN = {"$select", "$filter", "$top", "$skiptoken", "$count", "$orderby", "$expand", "$search", "$skip", "$format"}
_SUPPORTED = {"$select", "$filter", "$top", "$skiptoken", "$count"}
_EQUAL = re.compile(r"(\w+)\s+eq\s+(?:'((?:[^']|'')*)'|(true|false))", re.IGNORECASE)
_STARTS = re.compile(r"startswith\(\s*(\w+)\s*,\s*'((?:[^']|'')*)'\s*\)", re.IGNORECASE)
_FILTERABLE = {
    "accountEnabled",
    "displayName",
    "givenName",
    "id",
    "mail",
    "mailNickname",
    "surname",
    "userPrincipalName",
    "userType",
    "employeeId",
    "department",
    "externalUserState",
}


def check_options(query: Mapping[str, str]) -> None:
    """Refuse options that are unknown or not simulated, rather than pass over them."""
    for name in query:
        if not name.startswith("$"):
            continue
        if name not in _KNOWN:
            raise bad_request(f"The query parameter '{name}' is not supported.", code="BadRequest")
        if name not in _SUPPORTED:
            raise bad_request("Unsupported Query.", code="Request_UnsupportedQuery")


def selected(query: Mapping[str, str], schema: Schema, default: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the properties asked for."""
    wanted = query.get("$select")
    if wanted is None:
        return default
    names = []
    for each in wanted.split(","):
        name = schema.find(each.strip())
        if name is None:
            raise bad_request(
                "Parsing OData Select and Expand failed: Could not find a property named"
                f" '{each.strip()}' on type '{schema.name}'.",
                code="BadRequest",
            )
        names.append(name)
    return tuple(dict.fromkeys(names))


def filtered(query: Mapping[str, str], schema: Schema) -> Callable[[Mapping[str, Any]], bool]:
    """Whether an object passes `$filter`: comparisons for equality and beginnings, joined by `and`."""
    text = query.get("$filter")
    if text is None:
        return lambda _: True
    tests: list[Callable[[Mapping[str, Any]], bool]] = []
    rest = text.strip()
    while True:
        if found := _EQUAL.match(rest):
            name = _filterable(found[1], schema)
            wanted: object = found[3].lower() == "true" if found[3] else found[2].replace("''", "'").casefold()
            tests.append(lambda each, name=name, wanted=wanted: _folded(each.get(name)) == wanted)  # type: ignore[misc] # mypy cannot infer lambdas with defaults
        elif found := _STARTS.match(rest):
            name = _filterable(found[1], schema)
            start = found[2].replace("''", "'").casefold()
            tests.append(lambda each, name=name, start=start: str(_folded(each.get(name)) or "").startswith(start))  # type: ignore[misc] # the same
        else:
            raise bad_request("Invalid filter clause", code="BadRequest")
        rest = rest[found.end() :].strip()
        if not rest:
            return lambda each: all(test(each) for test in tests)
        if not rest[:4].lower() == "and ":
            raise bad_request("Unsupported Query.", code="Request_UnsupportedQuery")
        rest = rest[4:].strip()


def _filterable(name: str, schema: Schema) -> str:
    known = schema.find(name)
    if known is None:
        raise bad_request(f"Could not find a property named '{name}' on type '{schema.name}'.", code="BadRequest")
    if known not in _FILTERABLE:
        raise bad_request(
            f"Unsupported or invalid query filter clause specified for property '{known}' of resource"
            f" '{schema.name.rpartition('.')[2].capitalize()}'.",
            code="Request_UnsupportedQuery",
        )
    return known


def _folded(value: object) -> object:
    return value.casefold() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Page:
    """A page's objects, and where the next one begins."""

    objects: list[Any]
    next_link: str | None


def page_of(call: Call, query: Mapping[str, str], numbered: Iterable[tuple[int, Any]], *, default: int = 100) -> Page:
    """The page asked for of objects with growing numbers."""
    try:
        size = int(query.get("$top", default))
    except ValueError as error:
        raise bad_request(f"Invalid page size specified: '{query['$top']}'.") from error
    if not 1 <= size <= _LARGEST_PAGE:
        raise bad_request(f"Invalid page size specified: '{size}'. Must be between 1 and {_LARGEST_PAGE} inclusive.")
    after = _read_token(query["$skiptoken"]) if "$skiptoken" in query else 0
    objects: list[Any] = []
    last = 0
    for number, each in numbered:
        if number <= after:
            continue
        if len(objects) == size:
            return Page(objects, _next_link(call, query, last))
        objects.append(each)
        last = number
    return Page(objects, None)


def _next_link(call: Call, query: Mapping[str, str], last: int) -> str:
    token = base64.urlsafe_b64encode(f"after:{last}".encode()).decode().rstrip("=")
    options = {**{name: value for name, value in query.items() if name != "$skiptoken"}, "$skiptoken": token}
    text = "&".join(f"{quote(name, safe='$')}={quote(value)}" for name, value in options.items())
    return f"{call.origin}{call.raw_path}?{text}"


def _read_token(token: str) -> int:
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        return int(text.removeprefix("after:"))
    except ValueError as error:
        raise bad_request("Skip token is not valid.", code="Directory_ExpiredPageToken") from error
