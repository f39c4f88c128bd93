"""What can go wrong with a scheduler's tick."""

from __future__ import annotations

from matoolkit.errors import MatoolkitError


class LeaseLost(MatoolkitError):
    """Another scheduler has taken over; this one changes nothing more until it leads again."""
