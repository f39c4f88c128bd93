"""An environment for each peer, with the versions that `requirements/peers/` locks; kept for the next comparison."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent
LOCKS = _ROOT / "requirements" / "peers"
_INSTALL = ("install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:")
_LONGEST_INSTALL = 600
_LAST_LINES = 3


class NotInstallable(Exception):
    """A peer cannot be had on this machine; the sentence is the reason."""


@dataclass(frozen=True)
class Environments:
    """The folder they are in."""

    folder: Path

    def python(self, name: str | None) -> Path:
        """The Python of an environment, which is made unless it is there; None is the product's own."""
        if name is None:
            return Path(sys.executable)
        lock = LOCKS / f"{name}.txt"
        folder = self.folder / name
        python = folder / "bin" / "python"
        made = folder / ".locked"
        # Scripts name the folder they are in, so an environment that was moved is made anew.
        stamp = hashlib.sha256(f"{folder}\n{sys.version}\n{lock.read_text()}".encode()).hexdigest()
        if not (made.exists() and made.read_text() == stamp):
            _make(folder, python, lock)
            made.write_text(stamp)
        return python


def _make(folder: Path, python: Path, lock: Path) -> None:
    print(f"making the environment of {folder.name} ...", file=sys.stderr, flush=True)
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=True).create(folder)
    try:
        done = subprocess.run(
            [python, "-m", "pip", *_INSTALL, "--requirement", lock],
            capture_output=True,
            text=True,
            timeout=_LONGEST_INSTALL,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstallable(f"pip did not end within {_LONGEST_INSTALL} s") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise NotInstallable("; ".join(lines[:_LAST_LINES]) or f"pip ended {done.returncode}")
