"""The root of every error the product raises on purpose; its subclasses' docstrings say what went wrong."""

from __future__ import annotations


class MatoolkitError(Exception):
    """Something the product knows how to name went wrong."""

    retryable: bool = False
    """Whether doing the same thing again later may succeed."""

    def __str__(self) -> str:
        """The message, or the first line of the class's docstring when there is none."""
        message = super().__str__()
        return message or (type(self).__doc__ or type(self).__name__).strip().partition("\n")[0]
