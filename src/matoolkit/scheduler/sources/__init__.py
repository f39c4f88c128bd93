"""Where members are found: one small port, and one file for each type of source."""

from matoolkit.scheduler.sources.errors import (
    BadConnection,
    ExtraNotInstalled,
    NothingToRead,
    QueryRefused,
    RowCapExceeded,
    SignInRefused,
    SourceError,
    SourceNotConfigured,
    SourceUnavailable,
    TimeLimitExceeded,
    VariableNotAllowed,
    VariableNotSet,
)
from matoolkit.scheduler.sources.opening import open_source
from matoolkit.scheduler.sources.port import Alarm, Chunk, Source, Tokens
from matoolkit.scheduler.sources.settings import ALLOWED_VARIABLES, SourceSettings

__all__ = [
    "ALLOWED_VARIABLES",
    "Alarm",
    "BadConnection",
    "Chunk",
    "ExtraNotInstalled",
    "NothingToRead",
    "QueryRefused",
    "RowCapExceeded",
    "SignInRefused",
    "Source",
    "SourceError",
    "SourceNotConfigured",
    "SourceSettings",
    "SourceUnavailable",
    "TimeLimitExceeded",
    "Tokens",
    "VariableNotAllowed",
    "VariableNotSet",
    "open_source",
]
