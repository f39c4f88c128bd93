"""What a job gives, made into what a function takes: by the annotations of its parameters.

Parameters mostly arrive as text, since that is what templates make. Empty text and null mean that nothing was given,
as an empty column of a data source does.
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Union
from uuid import UUID

_INTEGER: Final = re.compile(r"[+-]?\d{1,18}")
_TRUE: Final = frozenset({"true", "yes", "1", "$true", "on"})
_FALSE: Final = frozenset({"false", "no", "0", "$false", "off"})

Convert = Callable[[Any], Any]


class Unfit(ValueError):
    """A value is not what is wanted; the message says what is, and never quotes the value."""


class UnsupportedAnnotation(TypeError):
    """No text can be made into this type."""


class Form(NamedTuple):
    """What a parameter wants."""

    words: str
    """For people: `text`, `whole number`."""
    convert: Convert


def form_of(annotation: Any) -> Form:
    """What an annotation asks for."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return form_of(arguments[0])
    if origin in (Union, types.UnionType):
        return _one_of([form_of(each) for each in arguments if each is not type(None)])
    if origin is Literal:
        return _choice({str(each): each for each in arguments})
    if annotation in (list, tuple) or origin in (list, tuple, Sequence):
        return _list_of(form_of(arguments[0] if arguments else Any), tuple if origin is tuple else list)
    if annotation is dict or origin in (dict, Mapping):
        return Form("object", _object)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice({str(each.value): each for each in annotation})
    raise UnsupportedAnnotation(f"{annotation!r} is no type that a parameter can be converted to")


def may_be_none(annotation: Any) -> bool:
    """Whether None is one of the values that an annotation allows."""
    return annotation is None or type(None) in typing.get_args(annotation)


def is_given(value: Any) -> bool:
    """Whether there is anything in it: null and empty text are nothing."""
    return value is not None and value != ""


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise Unfit


def _whole_number(value: Any) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Unfit


def _number(value: Any) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise Unfit from None
        if math.isfinite(number):
            return number
    raise Unfit


def _decimal(value: Any) -> Decimal:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = Decimal(str(value).strip())
        except InvalidOperation:
            raise Unfit from None
        if number.is_finite():
            return number
    raise Unfit


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str | int) and (word := str(value).strip().lower()) in _TRUE | _FALSE:
        return word in _TRUE
    raise Unfit


def _moment(value: Any) -> datetime:
    if not isinstance(value, str):
        raise Unfit
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        raise Unfit from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _day(value: Any) -> date:
    return _moment(value).date()


def _identifier(value: Any) -> UUID:
    if not isinstance(value, str):
        raise Unfit
    try:
        return UUID(value.strip())
    except ValueError:
        raise Unfit from None


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, dict):
        return value
    raise Unfit


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise Unfit from None


def _choice(choices: Mapping[str, Any]) -> Form:
    folded = {name.casefold(): value for name, value in choices.items()}

    def convert(value: Any) -> Any:
        if isinstance(value, str | int) and (name := _text(value).strip().casefold()) in folded:
            return folded[name]
        raise Unfit

    return Form(f"one of {', '.join(choices)}", convert)


def _list_of(inner: Form, make: Callable[[Any], Any]) -> Form:
    def convert(value: Any) -> Any:
        if isinstance(value, str):
            # A list that a template put into text is JSON; any other text is a list of one.
            value = _parsed(value) if value.lstrip().startswith("[") else [value]
        if not isinstance(value, list):
            raise Unfit
        return make([inner.convert(each) for each in value])

    return Form(f"list of {inner.words}", convert)


def _one_of(forms: Sequence[Form]) -> Form:
    if len(forms) == 1:
        return forms[0]

    def convert(value: Any) -> Any:
        for form in forms:
            try:
                return form.convert(value)
            except Unfit:
                continue
        raise Unfit

    return Form(" or ".join(form.words for form in forms), convert)


_ANYTHING: Final = Form("anything", lambda value: value)
_SIMPLE: Final[Mapping[Any, Form]] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    str: Form("text", _text),
    int: Form("whole number", _whole_number),
    float: Form("number", _number),
    Decimal: Form("number", _decimal),
    bool: Form("true or false", _truth),
    datetime: Form("date and time", _moment),
    date: Form("date", _day),
    UUID: Form("GUID", _identifier),
}
