"""What SQL Server's messages mean to us.

Microsoft's driver hands on the text of a message and not its number, so messages are known by their words, which are
English for every login that nobody told otherwise. Where another driver gives the number, that counts.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any, Final, NamedTuple


class Meaning(Enum):
    """What is to be done about a message."""

    AWAY = auto()
    """The database is not there now: it sleeps, moves, or has too much to do."""
    CONFLICT = auto()
    """Somebody else was in the way; try again."""
    TOO_LONG = auto()
    """Our own patience has ended."""
    FULL = auto()
    """There is no room."""
    RULE = auto()
    """A fault of the program."""
    REFUSED = auto()
    """Who signs in is not let in."""
    NO_DRIVER = auto()
    """Nothing was ever asked of the server."""


class Message(NamedTuple):
    """A message of the server's."""

    number: int
    words: str
    meaning: Meaning


# https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues and the server's own texts.
MESSAGES: Final = (
    Message(1205, "was deadlocked on", Meaning.CONFLICT),
    Message(1222, "Lock request time out period exceeded", Meaning.CONFLICT),
    Message(3960, "Snapshot isolation transaction aborted due to update conflict", Meaning.CONFLICT),
    Message(2601, "Cannot insert duplicate key row in object", Meaning.CONFLICT),
    Message(2627, "constraint '%'. Cannot insert duplicate key in object", Meaning.CONFLICT),
    Message(547, "conflicted with the FOREIGN KEY constraint", Meaning.CONFLICT),
    Message(547, "conflicted with the REFERENCE constraint", Meaning.CONFLICT),
    Message(547, "conflicted with the CHECK constraint", Meaning.RULE),
    Message(515, "Cannot insert the value NULL into column", Meaning.RULE),
    Message(2628, "String or binary data would be truncated", Meaning.RULE),
    Message(8152, "String or binary data would be truncated", Meaning.RULE),
    Message(1105, "Could not allocate space for object", Meaning.FULL),
    Message(9002, "The transaction log for database '%' is full", Meaning.FULL),
    Message(40544, "has reached its size quota", Meaning.FULL),
    Message(3906, "because the database is read-only", Meaning.AWAY),
    Message(40540, "aborted as database is moved to read-only mode", Meaning.AWAY),
    Message(4060, "requested by the login. The login failed", Meaning.AWAY),
    Message(4221, "Login to read-secondary failed due to long wait", Meaning.AWAY),
    Message(10928, "limit for the database is % and has been reached", Meaning.AWAY),
    Message(10929, "the server is currently too busy to support requests greater than", Meaning.AWAY),
    Message(10936, "Resource ID : %. The request limit for the elastic pool is", Meaning.AWAY),
    Message(40143, "The service has encountered an error processing your request", Meaning.AWAY),
    Message(40166, "Error code 40166", Meaning.AWAY),
    Message(40197, "The service has encountered an error processing your request", Meaning.AWAY),
    Message(40501, "The service is currently busy", Meaning.AWAY),
    Message(40549, "Session is terminated because you have a long-running transaction", Meaning.AWAY),
    Message(40550, "The session has been terminated because it has acquired too many locks", Meaning.AWAY),
    Message(40551, "The session has been terminated because of excessive TEMPDB usage", Meaning.AWAY),
    Message(40552, "because of excessive transaction log space usage", Meaning.AWAY),
    Message(40553, "The session has been terminated because of excessive memory usage", Meaning.AWAY),
    Message(40613, "is not currently available", Meaning.AWAY),
    Message(42108, "Can not connect to the SQL pool since it is paused", Meaning.AWAY),
    Message(42109, "The SQL pool is warming up", Meaning.AWAY),
    Message(49918, "Not enough resources to process request", Meaning.AWAY),
    Message(49919, "Too many create or update operations in progress", Meaning.AWAY),
    Message(49920, "Too many operations in progress for subscription", Meaning.AWAY),
    Message(64, "The specified network name is no longer available", Meaning.AWAY),
    Message(233, "no process is on the other end of the pipe", Meaning.AWAY),
    Message(10053, "aborted by the software in your host machine", Meaning.AWAY),
    Message(10054, "forcibly closed by the remote host", Meaning.AWAY),
    Message(10060, "did not properly respond after a period of time", Meaning.AWAY),
    Message(18456, "Login failed for user", Meaning.REFUSED),
    Message(18470, "The account is disabled", Meaning.REFUSED),
    Message(40532, "Cannot open server", Meaning.REFUSED),
    Message(40615, "is not allowed to access the server", Meaning.REFUSED),
    Message(47073, "Connection was denied since Deny Public Network Access is set to Yes", Meaning.REFUSED),
    Message(33134, "Principal '%' could not be found or this principal type is not supported", Meaning.REFUSED),
)
# The driver's own words for the standard's codes, where the server said nothing that is known.
_DRIVER: Final = {
    "Serialization failure": Meaning.CONFLICT,
    "Timeout expired": Meaning.TOO_LONG,
    "Integrity constraint violation": Meaning.CONFLICT,
    "Client unable to establish connection": Meaning.AWAY,
    "Server rejected the connection": Meaning.AWAY,
    "Communication link failure": Meaning.AWAY,
    "Connection failure during transaction": Meaning.AWAY,
    "Connection not open": Meaning.AWAY,
    "Connection timeout expired": Meaning.AWAY,
    "Disconnect error": Meaning.AWAY,
    "Transaction is rolled back": Meaning.AWAY,
    "Statement completion unknown": Meaning.AWAY,
    "Invalid authorization specification": Meaning.REFUSED,
}
_NOT_LOADED: Final = "Failed to load the driver"
_LOST: Final = re.compile(
    r"Connection closed|Connection is dead|[Cc]ommunication link|TCP Provider|Shared Memory Provider"
)
_PATTERNS: Final = [
    (re.compile(".*?".join(map(re.escape, each.words.split("%"))), re.IGNORECASE | re.DOTALL), each.meaning)
    for each in MESSAGES
]
# A number that means one thing or the other is told by its words.
_BY_NUMBER: Final = {
    each.number: each.meaning
    for each in MESSAGES
    if all(other.meaning is each.meaning for other in MESSAGES if other.number == each.number)
}
_TAGS: Final = re.compile(r"^(\[[^\]]*\])+\s*")
# What follows these words is what somebody wrote: a key, or a name.
_PEOPLES: Final = re.compile(r"\s*(The duplicate key value is|Truncated value:).*", re.DOTALL)


def is_ours(error: BaseException | None) -> bool:
    """Whether an error is Microsoft's driver's."""
    return hasattr(error, "driver_error")


def meaning(error: Any) -> Meaning | None:
    """What an error means, if it is known."""
    number = getattr(error, "number", None)
    if number in _BY_NUMBER:
        return _BY_NUMBER[number]
    text = str(getattr(error, "ddbc_error", error))
    if _NOT_LOADED in text:
        return Meaning.NO_DRIVER
    said = next((meaning for pattern, meaning in _PATTERNS if pattern.search(text)), None)
    if said is not None:
        return said
    if _LOST.search(text):
        return Meaning.AWAY
    return _DRIVER.get(getattr(error, "driver_error", ""))


def is_gone(error: Any) -> bool:
    """Whether the connection on which this was said is of no more use; of one that is away, no more is expected."""
    return is_ours(error) and meaning(error) is Meaning.AWAY


def shown(error: Any) -> str:
    """The message as people are told it: without the driver's tags, and without what somebody wrote."""
    if meaning(error) is Meaning.NO_DRIVER:
        return (
            "the ODBC driver of the package mssql-python-odbc cannot be loaded: install Debian's libltdl7, or set"
            " MSSQL_PYTHON_NATIVE_PROVIDER=mssql-odbc"
        )
    text = _TAGS.sub("", str(getattr(error, "ddbc_error", "") or error))
    return next((line.strip() for line in _PEOPLES.sub("", text).splitlines() if line.strip()), type(error).__name__)
