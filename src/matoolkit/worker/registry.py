"""Which functions a worker may run, and what each of them takes: nothing that is not registered can be called."""

from __future__ import annotations

import inspect
import re
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from matoolkit.worker.context import FunctionContext
from matoolkit.worker.errors import FunctionNotAllowed, ValidationError, WorkerFailure
from matoolkit.worker.parameters import Form, Unfit, UnsupportedAnnotation, form_of, is_given, may_be_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*")
_MARK: Final = "__matoolkit_functions__"
_CONTEXT: Final = "ctx"

Code = TypeVar("Code", bound="Callable[..., Any]")


class BadFunction(WorkerFailure):
    """A function cannot be registered as it is written."""


class NameTaken(WorkerFailure):
    """Two functions have the same name."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a function takes under one name."""

    name: str
    form: Form
    mandatory: bool
    default: Any
    allows_none: bool
    secret: bool

    @property
    def words(self) -> str:
        """What it wants, for people."""
        return self.form.words


@dataclass(frozen=True, slots=True)
class Function:
    """What can be called under a name."""

    name: str
    code: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    is_coroutine: bool
    takes_context: bool
    takes_others: bool
    repeatable: bool
    """Whether doing it again does no harm; else a job that may have been done before is answered `OutcomeUnknown`."""
    summary: str

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the function is called with; `ValidationError` names everything that is wrong with what was given."""
        values, problems = self._sorted_out(given)
        arguments: dict[str, Any] = {}
        for parameter in self.parameters:
            value = values.pop(parameter.name, None)
            if is_given(value):
                try:
                    arguments[parameter.name] = parameter.form.convert(value)
                except Unfit:
                    problems.append(f"{parameter.name} is not what is wanted: {parameter.words}")
            elif not parameter.mandatory:
                arguments[parameter.name] = parameter.default
            elif parameter.allows_none and parameter.name in _named(given, parameter.name):
                arguments[parameter.name] = None
            else:
                problems.append(f"{parameter.name} is missing")
        if problems:
            raise ValidationError(f"{self.name}: {'; '.join(problems)}")
        return arguments | values

    def secret_values(self, given: Mapping[str, Any]) -> Iterator[str]:
        """The values of parameters that nobody is to see."""
        secret = {parameter.name.casefold() for parameter in self.parameters if parameter.secret}
        if secret:
            for name, value in given.items():
                if name.casefold() in secret and is_given(value):
                    yield from _texts(value)

    def _sorted_out(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What was given, by the names that the function has for it; and what it has no name for."""
        known = {parameter.name.casefold(): parameter.name for parameter in self.parameters}
        values: dict[str, Any] = {}
        problems = []
        for name, value in given.items():
            found = known.get(name.casefold())
            if found is None and self.takes_others:
                found = name
            if found is None:
                problems.append(f"there is no parameter {name}")
            elif found in values:
                problems.append(f"{found} is given twice")
            else:
                values[found] = value
        return values, problems


def function(name: str, *, secrets: Iterable[str] = (), repeatable: bool = True) -> Callable[[Code], Code]:
    """Make a coroutine function or a plain one callable by jobs, under a name.

    `secrets` names the parameters whose values are nowhere to be seen. A function with `repeatable=False` is never run
    for a job that may have been done before. What is decorated stays what it was, so that tests can call it.
    """

    def mark(code: Code) -> Code:
        declared = (*getattr(code, _MARK, ()), described(name, code, secrets=secrets, repeatable=repeatable))
        setattr(code, _MARK, declared)
        return code

    return mark


def described(name: str, code: Callable[..., Any], *, secrets: Iterable[str] = (), repeatable: bool = True) -> Function:
    """What there is to know about a function before it is called."""
    if not _NAME.fullmatch(name):
        raise BadFunction(
            f"{name!r} cannot name a function: letters and digits, with hyphens between them, as in Do-It"
        )
    wanted = {each.casefold() for each in secrets}
    signature = inspect.signature(code)
    hints = _hints(name, code, signature)
    takes_context = takes_others = False
    parameters = []
    for parameter in signature.parameters.values():
        annotation = hints.get(parameter.name, Any)
        if parameter.name == _CONTEXT or annotation is FunctionContext:
            if parameter.name != _CONTEXT:
                raise BadFunction(f"{name}: the parameter for the context is called ctx, not {parameter.name}")
            takes_context = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            takes_others = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise BadFunction(f"{name}: {parameter} cannot be given by name")
        else:
            parameters.append(_parameter(name, parameter, annotation, secret=parameter.name.casefold() in wanted))
    folded = [parameter.name.casefold() for parameter in parameters]
    if unknown := wanted.difference(folded):
        raise BadFunction(f"{name}: no parameter is called {', '.join(sorted(unknown))}, which `secrets` names")
    if len(set(folded)) != len(folded):
        raise BadFunction(f"{name}: two parameters differ in case only")
    return Function(
        name=name,
        code=code,
        parameters=tuple(parameters),
        is_coroutine=inspect.iscoroutinefunction(code),
        takes_context=takes_context,
        takes_others=takes_others,
        repeatable=repeatable,
        summary=(inspect.getdoc(code) or "").partition("\n")[0],
    )


def declared_in(module: ModuleType) -> list[Function]:
    """The functions that a module declares itself; what it imported from elsewhere is declared there."""
    return [
        each
        for value in vars(module).values()
        if inspect.isfunction(value) and value.__module__ == module.__name__
        for each in getattr(value, _MARK, ())
    ]


class Registry:
    """Functions by name; names compare without regard to case."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._origins: dict[str, str] = {}

    def add(self, functions: Iterable[Function], origin: str) -> None:
        """Register functions, all from one place; no name may be taken."""
        for each in functions:
            folded = each.name.casefold()
            if folded in self._functions:
                raise NameTaken(
                    f"two functions are called {each.name}: one of {self._origins[folded]} and one of {origin}; "
                    "give one of them another name"
                )
            self._functions[folded] = each
            self._origins[folded] = origin

    def find(self, name: str) -> Function:
        """The function of this name, or `FunctionNotAllowed`."""
        found = self._functions.get(name.casefold())
        if found is None:
            raise FunctionNotAllowed(f"no function is registered under the name {name!r}")
        return found

    def origin(self, name: str) -> str:
        """Where a function comes from: `standard`, or a file."""
        return self._origins[name.casefold()]

    def __iter__(self) -> Iterator[Function]:
        return iter(sorted(self._functions.values(), key=lambda each: each.name.casefold()))

    def __len__(self) -> int:
        return len(self._functions)


def _hints(name: str, code: Callable[..., Any], signature: inspect.Signature) -> dict[str, Any]:
    """The annotations of the parameters; `ctx` needs none, so one that is there for the type checker alone is fine."""
    annotations = {
        each.name: each.annotation
        for each in signature.parameters.values()
        if each.name != _CONTEXT and each.annotation is not each.empty
    }
    holder = type("Annotations", (), {"__annotations__": annotations})
    try:
        return typing.get_type_hints(holder, globalns=getattr(inspect.unwrap(code), "__globals__", {}))
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise BadFunction(f"{name}: the types of its parameters cannot be told: {error}") from error


def _parameter(function_name: str, parameter: inspect.Parameter, annotation: Any, *, secret: bool) -> Parameter:
    try:
        form = form_of(annotation)
    except UnsupportedAnnotation as error:
        raise BadFunction(f"{function_name}: {parameter.name}: {error}") from error
    mandatory = parameter.default is parameter.empty
    return Parameter(
        name=parameter.name,
        form=form,
        mandatory=mandatory,
        default=None if mandatory else parameter.default,
        allows_none=may_be_none(annotation),
        secret=secret,
    )


def _named(given: Mapping[str, Any], name: str) -> set[str]:
    return {name for each in given if each.casefold() == name.casefold()}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
