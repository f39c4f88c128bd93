"""What comes in and what goes out, without the network: everything behind the server speaks in these."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

import msgspec

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = "application/json; charset=utf-8"


class Api(StrEnum):
    """Which of the services a call is for."""

    SIGN_IN = "sign-in"
    GRAPH = "graph"
    EXCHANGE = "exchange"
    STEERING = "steering"


@dataclass(slots=True)
class Call:
    """One request; `operation` and `subject` are filled in by whoever understands it, for the records."""

    method: str
    raw_path: str
    raw_query: str
    headers: Mapping[str, str]
    body: bytes
    origin: str
    """How the client addressed the server: `https://localhost:1234`."""
    operation: str = ""
    subject: str = ""
    segments: list[str] = field(init=False)
    """The path's parts, each decoded by itself, so that a slash within an identifier stays one."""

    def __post_init__(self) -> None:
        self.segments = [unquote(part) for part in self.raw_path.split("/") if part]

    def describe(self) -> None:
        """Say what it is about as far as that can be told from the outside: whoever acts knows better."""
        match self.api:
            case Api.GRAPH:
                names = [
                    "{id}" if index % 2 and not part.startswith("$") else part
                    for index, part in enumerate(self.segments[1:])
                ]
                self.operation = f"{self.method} /{'/'.join(names)}"
                self.subject = self.segments[2] if len(names) > 1 else ""
            case Api.EXCHANGE:
                self.operation = self.headers.get("X-CmdletName", "InvokeCommand")
            case Api.SIGN_IN | Api.STEERING:
                self.operation = self.segments[-1] if self.segments else ""

    @property
    def query(self) -> dict[str, str]:
        """The parameters after the question mark."""
        return dict(parse_qsl(self.raw_query, keep_blank_values=True)) if self.raw_query else {}

    @property
    def form(self) -> dict[str, str]:
        """The body as a form."""
        return dict(parse_qsl(self.body.decode(errors="replace"), keep_blank_values=True))

    @property
    def bearer(self) -> str:
        """The bearer token, or nothing."""
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def api(self) -> Api:
        """The service, by the path."""
        match self.segments[0].lower() if self.segments else "":
            case "v1.0" | "beta":
                return Api.GRAPH
            case "adminapi":
                return Api.EXCHANGE
            case "simulation":
                return Api.STEERING
            case _:
                return Api.SIGN_IN


@dataclass(slots=True)
class Answer:
    """One response."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = JSON


def json_answer(status: int, value: Any, headers: dict[str, str] | None = None) -> Answer:
    """A response with JSON in it."""
    return Answer(status, msgspec.json.encode(value), headers or {})


def own_addresses(origin: str) -> set[str]:
    """Every way to address the server that was addressed like this: the names it has on loopback."""
    port = origin.rpartition(":")[2]
    return {origin, *(f"https://{host}:{port}" for host in ("localhost", "127.0.0.1", "[::1]"))}


class Refused(MatoolkitError):
    """The tenant answers with an error."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"refused with {answer.status}")
        self.answer = answer
