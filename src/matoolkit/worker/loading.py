"""Gathers the functions a worker offers: the standard ones, and those of the customer's folder.

The folder is a package of its own, `custom_functions`, whatever it is called on disk: its modules may import each other
(`from custom_functions.shared import …`, or `from .shared import …`). A module whose name begins with an underscore is
imported only by others.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from matoolkit.worker.errors import WorkerFailure
from matoolkit.worker.registry import Registry, declared_in

log = logging.getLogger(__name__)

PACKAGE: Final = "custom_functions"
STANDARD: Final = "standard"
_STANDARD_PACKAGE: Final = "matoolkit.worker.functions"


class BadModule(WorkerFailure):
    """A module with functions cannot be loaded."""


class FolderNotFound(WorkerFailure):
    """The folder of custom functions is not there."""


def gather(folder: Path | None, *, insist: bool = False) -> Registry:
    """All functions there are; `insist` on the folder when somebody named it."""
    registry = Registry()
    add_standard(registry)
    if folder is not None and (insist or folder.exists()):
        add_custom(registry, folder)
    return registry


def add_standard(registry: Registry) -> None:
    """The functions that come with the product."""
    if find_spec(_STANDARD_PACKAGE) is None:
        return
    package = importlib.import_module(_STANDARD_PACKAGE)
    for found in pkgutil.iter_modules(package.__path__):
        registry.add(declared_in(importlib.import_module(f"{_STANDARD_PACKAGE}.{found.name}")), STANDARD)


def add_custom(registry: Registry, folder: Path) -> None:
    """The functions of every module of a folder."""
    if not folder.is_dir():
        raise FolderNotFound(f"CUSTOM_FUNCTIONS_PATH names {folder}, which is no folder")
    _begin_package(folder)
    for found in sorted(pkgutil.iter_modules([str(folder)]), key=lambda each: each.name):
        if found.name.startswith("_"):
            continue
        file = _file(folder, found)
        functions = declared_in(_load(found.name, file))
        if not functions:
            log.warning("%s declares no function; a module that others import is to begin with an underscore", file)
        registry.add(functions, str(file))


def _file(folder: Path, found: pkgutil.ModuleInfo) -> Path:
    return folder / found.name / "__init__.py" if found.ispkg else folder / f"{found.name}.py"


def _begin_package(folder: Path) -> None:
    for name in [each for each in sys.modules if each == PACKAGE or each.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    package = ModuleType(PACKAGE, "The customer's functions.")
    package.__path__ = [str(folder.resolve())]
    sys.modules[PACKAGE] = package
    importlib.invalidate_caches()


def _load(name: str, file: Path) -> ModuleType:
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = _line_in(file, error)
        raise BadModule(f"{file}{where} cannot be loaded: {type(error).__name__}: {error}") from error


def _line_in(file: Path, error: BaseException) -> str:
    """The last line of the module itself that the error came by."""
    line, step = None, error.__traceback__
    while step is not None:
        if Path(step.tb_frame.f_code.co_filename) == file.resolve():
            line = step.tb_lineno
        step = step.tb_next
    if line is None and isinstance(error, SyntaxError):
        line = error.lineno
    return "" if line is None else f", line {line},"
