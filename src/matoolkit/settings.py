"""What a service is told by its environment: declared once, read at once, and every mistake named in one message.

Pure: a mapping goes in, usually `os.environ` with what `.env` adds; hosts read both. Each setting has one name, as
operators know it (`Scheduler__SqlConnectionString`, `WORKER_ID`), and a plain form with a prefix of ours
(`MATOOLKIT_SCHEDULER_SQL_CONNECTION_STRING`, `MATOOLKIT_WORKER_ID`), which wins when both are there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, overload
from urllib.parse import urlsplit

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PREFIX: Final = "MATOOLKIT_"
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_TRUE: Final = frozenset({"true", "yes", "1", "on"})
_FALSE: Final = frozenset({"false", "no", "0", "off"})

Value = TypeVar("Value")


class BadSettings(MatoolkitError):
    """Settings are missing or cannot be used."""

    def __init__(self, service: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  {each}" for each in problems)
        super().__init__(f"the settings of {service} are not right:{listed}")


class Unusable(ValueError):
    """The text is no value of its setting; the message says what would be right, and never quotes the text."""


class Secret:
    """A text that nobody is to see: it is only had by asking for it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not to be written anywhere")


@dataclass(frozen=True, slots=True)
class Setting(Generic[Value]):
    """One setting: what it is called, what it is made into, and what it is when nobody says."""

    name: str
    convert: Callable[[str], Value]
    default: Value
    is_required: bool = False
    needed_for: str = ""
    """Added to the complaint when it is missing."""

    @property
    def plain_name(self) -> str:
        """The form with our prefix."""
        return plain_name(self.name)

    def text(self, environment: Mapping[str, str]) -> str | None:
        """What the environment says; empty is nothing."""
        for name in (self.plain_name, self.name):
            if value := environment.get(name, "").strip():
                return value
        return None

    @overload
    def __get__(self, instance: None, owner: type) -> Setting[Value]: ...
    @overload
    def __get__(self, instance: Settings, owner: type) -> Value: ...
    def __get__(self, instance: Settings | None, owner: type) -> Setting[Value] | Value:
        """The setting itself of the class, its value of what was read."""
        if instance is None:
            return self
        value: Value = instance.values[self.name]
        return value


def required(name: str, convert: Callable[[str], Value], needed_for: str = "") -> Setting[Value]:
    """A setting without which the service does not start."""
    nothing: Any = None
    return Setting(name, convert, nothing, is_required=True, needed_for=needed_for)


def optional(name: str, convert: Callable[[str], Value]) -> Setting[Value | None]:
    """A setting that may be absent."""
    return Setting(name, convert, None)


def defaulted(name: str, convert: Callable[[str], Value], default: Value) -> Setting[Value]:
    """A setting that has a value when nobody gives it one."""
    return Setting(name, convert, default)


@dataclass(frozen=True)
class Settings:
    """The settings of a service: a subclass declares them as attributes, and `read` makes one of an environment."""

    values: Mapping[str, Any] = field(repr=False)

    service: ClassVar[str] = "the service"

    @classmethod
    def declared(cls) -> list[Setting[Any]]:
        """All of them, in the order they are written."""
        return [value for base in reversed(cls.__mro__) for value in vars(base).values() if isinstance(value, Setting)]

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Any:
        """Read every setting, or raise `BadSettings` that names all that is wrong with them."""
        values: dict[str, Any] = {}
        problems: list[str] = []
        for setting in cls.declared():
            values[setting.name] = setting.default
            text = setting.text(environment)
            if text is None:
                if setting.is_required:
                    problems.append(f"{setting.name} is missing{setting.needed_for and f': {setting.needed_for}'}")
                continue
            try:
                values[setting.name] = setting.convert(text)
            except Unusable as error:
                problems.append(f"{setting.name} must be {error}")
        settings = cls(values)
        if not problems:
            problems = list(settings.contradictions())
        if problems:
            raise BadSettings(cls.service, problems)
        return settings

    def contradictions(self) -> Sequence[str]:
        """What is wrong with settings that are each right by themselves."""
        return ()


def plain_name(name: str) -> str:
    """`Scheduler__SqlConnectionString` is `MATOOLKIT_SCHEDULER_SQL_CONNECTION_STRING` in its plain form."""
    if name.startswith(PREFIX):
        return name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("__", "_"))
    return PREFIX + words.upper()


# What texts are made into ---------------------------------------------------------------------------------------------


def text(value: str) -> str:
    """Any text."""
    return value


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """A number without fractions, within bounds."""
    wanted = f"a whole number from {least} to {most}" if most is not None else f"a whole number, {least} or more"

    def convert(value: str) -> int:
        if not re.fullmatch(r"-?\d{1,9}", value):
            raise Unusable(wanted)
        number = int(value)
        if number < least or (most is not None and number > most):
            raise Unusable(wanted)
        return number

    return convert


def number(least: float, most: float | None = None) -> Callable[[str], float]:
    """A number, within bounds."""
    wanted = f"a number from {least:g} to {most:g}" if most is not None else f"a number, {least:g} or more"

    def convert(value: str) -> float:
        if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            raise Unusable(wanted)
        found = float(value)
        if found < least or (most is not None and found > most):
            raise Unusable(wanted)
        return found

    return convert


def truth(value: str) -> bool:
    """Whether or not."""
    if (word := value.lower()) not in _TRUE | _FALSE:
        raise Unusable("true or false")
    return word in _TRUE


def matching(pattern: str, wanted: str) -> Callable[[str], str]:
    """A text that has a form."""

    def convert(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise Unusable(wanted)
        return value

    return convert


guid = matching(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "a GUID, as in 12345678-90ab-cdef-1234-567890abcdef"
)


def https_address(value: str) -> str:
    """An address of a service, without a slash at its end; only of this machine may it be without TLS."""
    wanted = "an address that begins with https://, without user, query or fragment"
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise Unusable(wanted) from None
    secure = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL_HOSTS)
    if not secure or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise Unusable(wanted)
    return value.rstrip("/")


def names(value: str) -> tuple[str, ...]:
    """Names with commas or semicolons between them."""
    return tuple(each.strip() for each in re.split(r"[,;]", value) if each.strip())
