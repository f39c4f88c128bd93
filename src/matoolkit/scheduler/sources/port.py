"""What a data source is to those who read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a result.

    Columns are named as the source names them, in its order, whether or not a name occurs twice. Values are `str`,
    `int`, `float`, `Decimal`, `bool`, `None`, `datetime`, `date`, `time`, lists and dicts of those, and nothing else;
    `values.py` says what becomes of the rest.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]


class Source(Protocol):
    """One query at one place."""

    def read(self) -> Generator[Chunk]:
        """Run the query and give its rows in chunks: at least one chunk, so that an empty result has columns too.

        Raises a `SourceError`. Whoever stops before the end closes the generator, which cancels the query.
        """


class Tokens(Protocol):
    """Signs in."""

    def __call__(self, scope: str, client_id: str | None = None) -> str:
        """An access token for a scope, as the managed identity of that client id when there is one."""


class Alarm(Protocol):
    """Sees to it that something is done later, on a thread of its own."""

    def __call__(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
        """Have the action done once so many seconds have passed; what is returned calls it off."""
