"""What a function returned, as a result carries it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from matoolkit.worker.errors import FunctionError

BOOLEAN, OBJECT = "Boolean", "Object"


class UnfitReturn(FunctionError):
    """What the function returned cannot be written as JSON."""


def shaped(returned: Any) -> tuple[str, Any]:
    """The result's type and value: truth stays truth, objects stay objects, and anything else becomes one."""
    if returned is None:
        return BOOLEAN, True
    if isinstance(returned, bool):
        return BOOLEAN, returned
    if isinstance(returned, Mapping):
        return OBJECT, plain({str(key): value for key, value in returned.items()})
    if isinstance(returned, msgspec.Struct) or (dataclasses.is_dataclass(returned) and not isinstance(returned, type)):
        return OBJECT, plain(returned)
    return OBJECT, plain({"Value": returned})


def plain(value: Any) -> Any:
    """The same in what JSON has: dates and identifiers as text, sets and tuples as lists."""
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_as_text)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UnfitReturn(f"the function returned what cannot be written as JSON: {error}") from error


def _as_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of the type {type(value).__name__}")
