"""What can be wrong with the rows that members are made from; no message quotes what stood in them."""

from __future__ import annotations

from matoolkit.errors import MatoolkitError


class UnusableColumns(MatoolkitError):
    """The columns cannot be used: one that is needed is missing, or several have the same name."""


class UnreadableRow(MatoolkitError):
    """A row cannot be read."""
