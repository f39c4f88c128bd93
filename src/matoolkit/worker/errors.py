"""How a function fails: what becomes of it in the result, and what it means for whoever may try again."""

from __future__ import annotations

from matoolkit.errors import MatoolkitError


class WorkerFailure(MatoolkitError):
    """The worker cannot do what it is there for."""


class FunctionError(MatoolkitError):
    """A function failed; its type and message are what the result says."""

    default_attempts: int = 1

    def __init__(
        self,
        message: str = "",
        *,
        type: str | None = None,  # noqa: A002 - what the result calls it
        is_throttled: bool = False,
        attempts: int | None = None,
    ) -> None:
        super().__init__(message)
        self.type = type or self.__class__.__name__
        """The tenant's own code where there is one, else the name of the class."""
        self.is_throttled = is_throttled
        self.attempts = self.default_attempts if attempts is None else attempts
        """How often the tenant was asked, so 0 says that nothing can have happened there."""

    @property
    def message(self) -> str:
        """What went wrong, for who reads the result."""
        return str(self)


class ValidationError(FunctionError):
    """The job or its parameters are not what the function takes; no tenant was reached."""

    default_attempts = 0


class FunctionNotAllowed(FunctionError):
    """No function is registered under this name, and nothing else can be called."""

    default_attempts = 0


class NotConfigured(FunctionError):
    """The function needs something of the worker that nobody configured."""

    default_attempts = 0


class Expired(FunctionError):
    """The job came after its time was over, and was not run."""

    default_attempts = 0


class OutcomeUnknown(FunctionError):
    """It may have been done, and cannot be done again without doing it twice: somebody has to look."""


class TimedOut(FunctionError):
    """The function was still running when its time was over, and was cancelled."""
