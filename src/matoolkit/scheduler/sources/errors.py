"""What can go wrong with a data source; each sentence names the thing and the fix, and quotes no credentials."""

from __future__ import annotations

from matoolkit.errors import MatoolkitError


class SourceError(MatoolkitError):
    """The data source could not be read."""


class SourceNotConfigured(SourceError):
    """What the runbook names is not set up on this machine."""


class VariableNotAllowed(SourceNotConfigured):
    """A runbook may not name this environment variable."""


class VariableNotSet(SourceNotConfigured):
    """The environment variable that the runbook names is not set."""


class BadConnection(SourceNotConfigured):
    """The environment variable's value cannot be used."""


class ExtraNotInstalled(SourceNotConfigured):
    """This type of source needs Python packages that are not installed."""


class SignInRefused(SourceError):
    """The source, or who issues its tokens, refused to let us in."""


class QueryRefused(SourceError):
    """The source does not run this query."""


class NothingToRead(QueryRefused):
    """The query ran and has no columns."""


class RowCapExceeded(SourceError):
    """The query returns more rows than a source may."""


class SourceUnavailable(SourceError):
    """The source cannot be reached, is busy, or broke off."""

    retryable = True


class TimeLimitExceeded(SourceError):
    """The query took longer than a source may."""

    retryable = True
