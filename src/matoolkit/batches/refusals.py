"""What an operator asks of a batch and cannot have as things are."""

from __future__ import annotations

from matoolkit.errors import MatoolkitError


class Refusal(MatoolkitError):
    """It cannot be done as things are."""


class NoSuchBatch(Refusal):
    """There is no such batch."""


class NoSuchMember(Refusal):
    """There is no such member in the batch."""


class WrongState(Refusal):
    """The batch or the member is in a state that does not allow it."""


class NotYet(Refusal):
    """Something else has to end first."""
