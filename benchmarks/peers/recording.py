"""Every single run is kept as it ends, so that a comparison that was interrupted goes on where it was."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Records:
    """A folder with a file for each run."""

    folder: Path

    def clear(self) -> None:
        """Forget all of them."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def get(self, name: str) -> dict[str, Any] | None:
        """What is known of a run."""
        path = self.folder / f"{name}.json"
        found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
        return found

    def once(self, name: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is known of a run, which is done now unless it has been."""
        known = self.get(name)
        if known is None:
            known = run()
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{name}.json"
            part = path.with_suffix(".part")
            part.write_text(json.dumps(known))
            part.rename(path)
        return known

    def takes(self, name: str) -> list[dict[str, Any]]:
        """What is known of the runs that are called `<name>-1` and so on."""
        found: list[dict[str, Any]] = []
        while (known := self.get(f"{name}-{len(found) + 1}")) is not None:
            found.append(known)
        return found
