"""What properties an object has, of which types, and which of them may be written: bodies are checked against this."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.simulation.tenant.graph.refusals import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.simulation.tenant.calls import Call


class Kind(StrEnum):
    """Types of properties."""

    STRING = "Edm.String"
    BOOLEAN = "Edm.Boolean"
    TIME = "Edm.DateTimeOffset"
    STRINGS = "Collection(Edm.String)"
    OBJECT = "object"
    OBJECTS = "Collection(object)"


@dataclass(frozen=True, slots=True)
class Property:
    """One property."""

    kind: Kind
    writable: bool = True
    inner: Schema | None = None
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """The properties of a type."""

    name: str
    """`microsoft.graph.user`"""
    properties: Mapping[str, Property]
    extensions: bool = False
    """Whether directory extensions (`extension_{app}_{name}`) are properties too."""
    _folded: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._folded.update((name.casefold(), name) for name in self.properties)

    def find(self, name: str) -> str | None:
        """A property's name as it is written, whatever the case it was asked in."""
        if self.extensions and re.fullmatch(r"extension_[0-9a-f]{32}_\w+", name, re.IGNORECASE):
            return name
        return self._folded.get(name.casefold())

    def read(self, call: Call) -> dict[str, Any]:
        """The body of a request, when it is what the type accepts."""
        media = call.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            raise bad_request(
                "Write requests (excluding DELETE) must contain the Content-Type header declaration.",
            )
        try:
            body = msgspec.json.decode(call.body)
        except msgspec.DecodeError as error:
            raise bad_request(
                "Unable to read JSON request payload. Please ensure Content-Type header is set and"
                " payload is of valid JSON format.",
                code="BadRequest",
            ) from error
        if not isinstance(body, dict):
            raise bad_request(
                "A null value or a value that is not an object was found in the request payload.", code="BadRequest"
            )
        return self.check(body)

    def check(self, body: dict[str, Any]) -> dict[str, Any]:
        """The values, when all of them are what the type accepts."""
        checked: dict[str, Any] = {}
        for name, value in body.items():
            if name.startswith("@odata."):
                continue
            known = self._exact(name)
            if known is None:
                raise bad_request(
                    f"The property '{name}' does not exist on type '{self.name}'. Make sure to only use property"
                    " names that are defined by the type."
                )
            if not known.writable:
                raise bad_request(f"Property '{name}' is read-only and cannot be set.", target=name, detail="ReadOnly")
            checked[name] = _converted(known, name, value)
        return checked

    def _exact(self, name: str) -> Property | None:
        known = self.properties.get(name)
        if known is None and self.find(name) == name:
            return _TEXT
        return known


_TEXT = Property(Kind.STRING)


def require(body: Mapping[str, Any], names: tuple[str, ...], resource: str) -> None:
    """Refuse a body that lacks one of the properties."""
    for name in names:
        if body.get(name) is None or body[name] == "":
            raise bad_request(
                f"A value is required for property '{name}' of resource '{resource}'.",
                target=name,
                detail="MissingValue",
            )


def _converted(known: Property, name: str, value: Any) -> Any:
    if value is None:
        if not known.nullable:
            raise bad_request(
                f"A null value was found for the property named '{name}', which has the expected type"
                f" '{known.kind}[Nullable=False]'. The expected type '{known.kind}[Nullable=False]' does not allow"
                " null values."
            )
        return None
    match known.kind:
        case Kind.STRING:
            if not isinstance(value, str):
                raise _not_a(value, known.kind)
        case Kind.BOOLEAN:
            if not isinstance(value, bool):
                raise _not_a(value, known.kind)
        case Kind.TIME:
            if not isinstance(value, str) or not _is_time(value):
                raise _not_a(value, known.kind)
        case Kind.STRINGS | Kind.OBJECTS:
            if not isinstance(value, list):
                raise _unexpected(value, "StartArray")
            for each in value:
                wanted = str if known.kind is Kind.STRINGS else dict
                if not isinstance(each, wanted):
                    raise _not_a(each, "Edm.String") if wanted is str else _unexpected(each, "StartObject")
        case Kind.OBJECT:
            if not isinstance(value, dict):
                raise _unexpected(value, "StartObject")
            if known.inner:
                return known.inner.check(value)
    return value


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _not_a(value: object, kind: str) -> Exception:
    if isinstance(value, (dict, list)):
        return _unexpected(value, "PrimitiveValue")
    if kind == Kind.STRING:
        return bad_request(
            f"Cannot convert a primitive value to the expected type '{kind}'. See the inner exception for more details."
        )
    return bad_request(f"Cannot convert the literal '{value}' to the expected type '{kind}'.")


def _unexpected(value: object, expected: str) -> Exception:
    found = "StartObject" if isinstance(value, dict) else "StartArray" if isinstance(value, list) else "PrimitiveValue"
    return bad_request(
        f"An unexpected '{found}' node was found when reading from the JSON reader. A '{expected}' node was expected."
    )
