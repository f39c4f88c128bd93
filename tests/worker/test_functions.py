"""How functions are described, and what their parameters make of what jobs give."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest

from matoolkit.worker import FunctionContext, FunctionNotAllowed, ValidationError, function
from matoolkit.worker.registry import BadFunction, NameTaken, Registry, described


class Colour(Enum):
    RED = "red"


def converted(annotation: Any, value: Any) -> Any:
    def do(X: Any) -> None: ...  # noqa: N803 - as runbooks write it

    do.__annotations__["X"] = annotation
    return described("Do-It", do).arguments({"X": value})["X"]


@pytest.mark.parametrize(
    ("annotation", "given", "value"),
    [
        (str, "Ada", "Ada"),
        (str, 42, "42"),
        (str, True, "true"),
        (int, " 42 ", 42),
        (int, -7, -7),
        (int, 3.0, 3),
        (float, "1e3", 1000.0),
        (Decimal, "0.10", Decimal("0.10")),
        (bool, "True", True),
        (bool, "no", False),
        (bool, 1, True),
        (bool, "$false", False),
        (list[str], ["a", "b"], ["a", "b"]),
        (list[str], "a; b", ["a; b"]),
        (list[int], '["1", 2]', [1, 2]),
        (list, [1, "x"], [1, "x"]),
        (tuple[str, ...], ["a"], ("a",)),
        (dict[str, Any], '{"a": 1}', {"a": 1}),
        (datetime, "2026-03-01T12:00:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (datetime, "2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (date, "2026-03-01", date(2026, 3, 1)),
        (UUID, "12345678-90ab-cdef-1234-567890abcdef", UUID("12345678-90ab-cdef-1234-567890abcdef")),
        (int | None, "3", 3),
        (int | str, "three", "three"),
        (Literal["Guest", "Member"], "guest", "Guest"),
        (Colour, "RED", Colour.RED),
        (Any, {"a": [1]}, {"a": [1]}),
    ],
)
def test_text_is_converted_to_what_is_wanted(annotation: Any, given: Any, value: Any) -> None:
    assert converted(annotation, given) == value


@pytest.mark.parametrize(
    ("annotation", "given", "words"),
    [
        (str, ["Ada"], "text"),
        (str, {"a": 1}, "text"),
        (int, "4.5", "whole number"),
        (int, True, "whole number"),
        (int, "9" * 5000, "whole number"),
        (float, "nan", "number"),
        (float, [], "number"),
        (bool, "maybe", "true or false"),
        (bool, 2, "true or false"),
        (list[int], ["a"], "list of whole number"),
        (list[str], {"a": 1}, "list of text"),
        (list[str], "[1", "list of text"),
        (dict[str, Any], "x", "object"),
        (datetime, "soon", "date and time"),
        (datetime, 20260301, "date and time"),
        (UUID, "x", "GUID"),
        (Literal["Guest", "Member"], "Owner", "one of Guest, Member"),
        (int | None, "x", "whole number"),
    ],
)
def test_what_is_not_wanted_is_refused_in_words_and_not_quoted(annotation: Any, given: Any, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        converted(annotation, given)
    assert str(caught.value) == f"Do-It: X is not what is wanted: {words}"
    assert caught.value.attempts == 0


@pytest.mark.parametrize("nothing", [None, ""])
def test_nothing_and_empty_text_are_not_given(nothing: Any) -> None:
    def do(Must: str, May: int = 3, Empty: str | None = None) -> None: ...  # noqa: N803 - as runbooks write it

    found = described("Do-It", do)
    assert found.arguments({"Must": "x", "May": nothing, "Empty": nothing}) == {"Must": "x", "May": 3, "Empty": None}
    with pytest.raises(ValidationError, match="Must is missing"):
        found.arguments({"Must": nothing})


def test_a_parameter_that_may_be_none_has_to_be_named_nevertheless() -> None:
    def do(Manager: str | None) -> None: ...  # noqa: N803 - as runbooks write it

    found = described("Do-It", do)
    assert found.arguments({"manager": ""}) == {"Manager": None}
    with pytest.raises(ValidationError, match="Manager is missing"):
        found.arguments({})


def test_names_of_parameters_compare_without_case_and_are_given_once() -> None:
    def do(UserId: str) -> None: ...  # noqa: N803 - as runbooks write it

    found = described("Do-It", do)
    assert found.arguments({"userid": "1"}) == {"UserId": "1"}
    with pytest.raises(ValidationError, match="UserId is given twice"):
        found.arguments({"UserId": "1", "userid": "2"})


def test_a_function_may_take_whatever_else_is_given() -> None:
    def do(Name: str, **others: Any) -> None: ...  # noqa: N803 - as runbooks write it

    assert described("Do-It", do).arguments({"Name": "x", "City": "y"}) == {"Name": "x", "City": "y"}


def test_the_context_is_no_parameter_whatever_its_annotation() -> None:
    def do(ctx: Unknown) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - there for a type checker alone

    found = described("Do-It", do)
    assert (found.takes_context, found.parameters) == (True, ())
    with pytest.raises(ValidationError, match="there is no parameter ctx"):
        found.arguments({"ctx": "x"})


def with_positional(X: int, /) -> None: ...  # noqa: N803 - as runbooks write it
def with_any(*X: int) -> None: ...  # noqa: N803 - as runbooks write it
def with_other_name(context: FunctionContext) -> None: ...
def with_twins(Name: str, name: str) -> None: ...  # noqa: N803 - as runbooks write it
def with_unknown_type(X: Nothing) -> None: ...  # type: ignore[name-defined]  # noqa: F821, N803 - the point
def with_odd_type(X: set[int]) -> None: ...  # noqa: N803 - as runbooks write it


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (with_positional, "cannot be given by name"),
        (with_any, "cannot be given by name"),
        (with_other_name, "is called ctx"),
        (with_twins, "differ in case only"),
        (with_unknown_type, "name 'Nothing' is not defined"),
        (with_odd_type, "no type that a parameter can be converted to"),
    ],
)
def test_what_cannot_be_called_is_not_registered(code: Any, words: str) -> None:
    with pytest.raises(BadFunction, match=words):
        described("Do-It", code)


@pytest.mark.parametrize("name", ["", "Do It", "Do--It", "-Do", "Dö-It", "Do-It-"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(BadFunction, match="cannot name a function"):
        described(name, lambda: None)


def test_a_secret_has_to_be_a_parameter() -> None:
    with pytest.raises(BadFunction, match="no parameter is called apikey"):
        described("Do-It", lambda: None, secrets=["ApiKey"])


def test_a_decorated_function_stays_what_it_was() -> None:
    @function("Do-It", secrets=("Key",))
    def do(Key: str) -> str:  # noqa: N803 - as runbooks write it
        return Key

    assert do("x") == "x"


def test_two_functions_cannot_have_one_name() -> None:
    registry = Registry()
    registry.add([described("Do-It", lambda: None)], "standard")
    with pytest.raises(NameTaken, match=r"one of standard and one of mine\.py"):
        registry.add([described("DO-it", lambda: None)], "mine.py")
    assert len(registry) == 1
    with pytest.raises(FunctionNotAllowed):
        registry.find("Do-That")
