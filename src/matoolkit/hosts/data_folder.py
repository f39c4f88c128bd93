"""The data folder of one `matoolkit up`: made for its owner alone, and held by one process at a time.

What holds it is a lock of the operating system, which ends with the process, however that ends: nothing is left behind
that somebody would have to remove.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

_LOCK = "up.lock"
_LONGEST_NOTE = 500


class FolderUnusable(MatoolkitError):
    """The data folder cannot be used."""


class FolderInUse(MatoolkitError):
    """Another process works on the data folder."""


class _Held:
    """A file whose lock is held until it is let go."""

    def __init__(self, file: Path, what: str, instead: str) -> None:
        self._descriptor = _open(file)
        try:
            _lock(self._descriptor)
        except OSError:
            held_by = _noted(self._descriptor)
            os.close(self._descriptor)
            who = f" ({held_by})" if held_by else ""
            raise FolderInUse(
                f"another `matoolkit up`{who} works on {what}: stop it first, or choose {instead}"
            ) from None

    def note(self, text: str) -> None:
        """What the next one who comes is told, while this one is here."""
        with suppress(OSError):  # it is only a courtesy
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, text.encode())

    def close(self) -> None:
        """Let somebody else have it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class DataFolder(_Held):
    """The folder."""

    def __init__(self, path: Path) -> None:
        _make(path)
        super().__init__(path / _LOCK, f"the data folder {path}", "another folder with --data")


class DatabaseFile(_Held):
    """A database that is a file elsewhere: whoever has another data folder may have been given the same one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.with_name(f"{path.name}.lock"), f"the database {path}", "another database")


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(f"the data folder {path} cannot be made: {error.strerror}") from error


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise FolderUnusable(
            f"the folder {file.parent} cannot be written to: {error.strerror}; choose another one"
        ) from error


def _noted(descriptor: int) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return os.read(descriptor, _LONGEST_NOTE).decode().strip()
    return ""


if os.name == "posix":
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
else:  # pragma: no cover - Windows
    import msvcrt

    def _lock(descriptor: int) -> None:
        # Far behind the note, which others read.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        os.lseek(descriptor, 0, os.SEEK_SET)
