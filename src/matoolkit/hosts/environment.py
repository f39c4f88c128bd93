"""What the process is told from outside: its environment, and in local use the file `.env` beside it."""

from __future__ import annotations

import os
from pathlib import Path


def environment(folder: Path | None = None) -> dict[str, str]:
    """The variables of the process, and those of `.env` that it does not have."""
    from dotenv import dotenv_values

    file = (folder or Path()) / ".env"
    found = {name: value for name, value in dotenv_values(file).items() if value is not None} if file.is_file() else {}
    return found | os.environ
