"""The active runbooks, parsed once for each version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.runbooks import RunbookErrors, load_runbook

if TYPE_CHECKING:
    from matoolkit.runbooks import Runbook
    from matoolkit.store.runbooks import PublishedRunbook


class Library:
    """Published versions never change; of those that are no longer active nothing is kept."""

    def __init__(self) -> None:
        self._parsed: dict[int, Runbook | RunbookErrors] = {}

    def read(self, active: list[PublishedRunbook]) -> dict[int, Runbook | RunbookErrors]:
        """Every active version by id, or what is wrong with it."""
        self._parsed = {each.id: self._parsed.get(each.id) or _parsed(each) for each in active}
        return self._parsed


def _parsed(published: PublishedRunbook) -> Runbook | RunbookErrors:
    try:
        return load_runbook(published.yaml_content)
    except RunbookErrors as errors:
        return errors
