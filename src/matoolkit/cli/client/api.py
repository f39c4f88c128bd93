"""The admin API, one method for each route; what comes back is what the API said, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from matoolkit.cli.client.connection import ANSWER_SECONDS, Connection, decoded
from matoolkit.cli.client.errors import NotThere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

Answer = dict[str, Any]

_SLOWLY = 600.0
"""For what takes the server its time: a query's preview, a file of 50,000 people."""


class ApiClient:
    """Asks one server, as one person.

    `token` is a token, or gives one that is valid whenever it is asked; without one, only health can be asked for.
    """

    def __init__(self, base_url: str, token: str | Callable[[], str] | None, **others: Any) -> None:
        giving = (lambda: token) if isinstance(token, str) else token
        self.connection = Connection(base_url, giving, **others)

    @property
    def url(self) -> str:
        """Where the server is."""
        return self.connection.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what is open."""
        self.connection.close()

    def health(self) -> Answer:
        """Whether the server works."""
        return self._get(path("health"))

    # Runbooks --------------------------------------------------------------------------------------------------------

    def publish_runbook(
        self, name: str, yaml_content: str, *, overdue_behavior: str | None = None, rerun_init: bool = False
    ) -> Answer:
        """Make a text the next version of a runbook."""
        body = {"name": name, "yamlContent": yaml_content, "rerunInit": rerun_init}
        if overdue_behavior is not None:
            body["overdueBehavior"] = overdue_behavior
        return self._ask("POST", path("runbooks"), json=body)

    def runbooks(self, **page: Any) -> Answer:
        """Active runbooks."""
        return self._get(path("runbooks"), **page)

    def runbook(self, name: str, version: int | None = None) -> Answer:
        """The version in force, or another."""
        return self._get(path("runbooks", name) if version is None else path("runbooks", name, "versions", version))

    def versions(self, name: str) -> Answer:
        """All versions of a runbook."""
        return self._get(path("runbooks", name, "versions"))

    def delete_version(self, name: str, version: int) -> Answer:
        """Take a version out of force."""
        return self._ask("DELETE", path("runbooks", name, "versions", version))

    def automation(self, name: str) -> Answer:
        """Whether a runbook makes batches by itself."""
        return self._get(path("runbooks", name, "automation"))

    def switch_automation(self, name: str, *, enabled: bool) -> Answer:
        """Switch that on or off."""
        return self._ask("PUT", path("runbooks", name, "automation"), json={"enabled": enabled})

    def preview_query(self, name: str) -> Answer:
        """What a runbook's query gives now."""
        return self._ask("POST", path("runbooks", name, "query", "preview"), seconds=_SLOWLY)

    def template(self, name: str) -> bytes:
        """A CSV file to fill in."""
        return self.connection.ask("GET", path("runbooks", name, "template")).content

    # Batches ---------------------------------------------------------------------------------------------------------

    def batches(self, **page: Any) -> Answer:
        """Batches: `runbook`, `status` and `manual` choose among them."""
        return self._get(path("batches"), **page)

    def batch(self, batch_id: int) -> Answer:
        """A batch, its phases, its init."""
        return self._get(path("batches", batch_id))

    def create_batch(self, runbook: str, file_name: str, content: bytes) -> Answer:
        """Make a manual batch from a CSV file."""
        form = {"runbookName": runbook}
        return self._ask("POST", path("batches"), form=form, file=(file_name, content), seconds=_SLOWLY)

    def advance_batch(self, batch_id: int) -> Answer:
        """Begin a manual batch's init, or its next phase."""
        return self._ask("POST", path("batches", batch_id, "advance"))

    def cancel_batch(self, batch_id: int) -> Answer:
        """End a batch."""
        return self._ask("POST", path("batches", batch_id, "cancel"))

    def release_removals(self, batch_id: int) -> Answer:
        """Let go whose removal is held."""
        return self._ask("POST", path("batches", batch_id, "held-removals", "release"), seconds=_SLOWLY)

    def phases(self, batch_id: int, *, counts: bool = False) -> Answer:
        """A batch's phases."""
        return self._get(path("batches", batch_id, "phases"), counts=counts)

    def members(self, batch_id: int, **page: Any) -> Answer:
        """A batch's members: `status` and `member` choose among them."""
        return self._get(path("batches", batch_id, "members"), **page)

    def add_members(self, batch_id: int, file_name: str, content: bytes) -> Answer:
        """Add members from a CSV file."""
        members = path("batches", batch_id, "members")
        return self._ask("POST", members, file=(file_name, content), seconds=_SLOWLY)

    def remove_member(self, batch_id: int, member_id: int) -> Answer:
        """Take a member out."""
        return self._ask("DELETE", path("batches", batch_id, "members", member_id))

    def steps(self, batch_id: int, **page: Any) -> Answer:
        """The steps of a batch's members: `phase`, `status` and `member` choose among them."""
        return self._get(path("batches", batch_id, "steps"), **page)

    def member(self, batch_id: int, member_id: int) -> Answer:
        """A member with all that was done."""
        return self._get(path("batches", batch_id, "members", member_id))

    def failures(self, batch_id: int, **page: Any) -> Answer:
        """What went wrong in a batch, what is alike counted together."""
        return self._get(path("batches", batch_id, "failures"), **page)

    # Operations ------------------------------------------------------------------------------------------------------

    def status(self) -> Answer:
        """How all of it is, and what a person should look at."""
        return self._get(path("status"))

    def places(self, **page: Any) -> Answer:
        """Every batch in which the person with this `key` is or was."""
        return self._get(path("members"), **page)

    def dead_letters(self, **page: Any) -> Answer:
        """Messages that could not be handled."""
        return self._get(path("dead-letters"), **page)

    def resubmit(self, message_id: int) -> Answer:
        """Send one again."""
        return self._ask("POST", path("dead-letters", message_id, "resubmit"))

    def audit(self, **page: Any) -> Answer:
        """Who did what: `batchId`, `actor` and `since` choose among it."""
        return self._get(path("audit"), **page)

    def _get(self, where: str, **query: Any) -> Answer:
        return self._ask("GET", where, query=query)

    def _ask(self, method: str, where: str, *, seconds: float = ANSWER_SECONDS, **given: Any) -> Answer:
        return decoded(self.connection.ask(method, where, seconds=seconds, **given), self.url)


def all_pages(ask: Callable[..., Answer], **query: Any) -> Iterator[Answer]:
    """Page after page of a list, from where `query` begins to the end."""
    while True:
        page = ask(**query)
        yield page
        if page.get("nextCursor") is None:
            return
        query = {**query, "offset": None, "cursor": page["nextCursor"]}


def path(*parts: str | int) -> str:
    """The path of a route: whatever a name holds, it stays one part."""
    return "/api/" + "/".join(_part(each) for each in parts)


def _part(part: str | int) -> str:
    text = str(part)
    if text in {"", ".", ".."}:
        # However they are written, these are taken for steps within the path before they reach the server.
        raise NotThere(404, f"there is nothing of the name {text!r}")
    return quote(text, safe="", errors="replace")
