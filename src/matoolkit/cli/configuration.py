"""Where the admin API is and how to sign in: an option, else a variable, else the file, else a default."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_API_URL = "http://127.0.0.1:8080"


class BadConfiguration(MatoolkitError):
    """The configuration cannot be used."""


class Setting(NamedTuple):
    """Something that can be configured."""

    key: str
    """As it stands in the file, and as `config set` takes it."""
    variable: str
    summary: str


SETTINGS = (
    Setting("api-url", "MATOOLKIT_API_URL", f"Where the admin API is; {DEFAULT_API_URL} unless told otherwise."),
    Setting("tenant-id", "MATOOLKIT_TENANT_ID", "The Entra ID tenant that people sign in to."),
    Setting("client-id", "MATOOLKIT_CLIENT_ID", "The application that the command line signs in through."),
    Setting("api-scope", "MATOOLKIT_API_SCOPE", "What a token is asked for; api://CLIENT-ID/.default unless told."),
    Setting("authority-url", "MATOOLKIT_AUTHORITY_URL", "Where to sign in, for sovereign clouds."),
)
KEYS = tuple(each.key for each in SETTINGS)


class Found(NamedTuple):
    """A setting's value, and where it comes from."""

    value: str | None
    source: str
    """`option`, the variable's name, the file's path, `default`, or `not set`."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Every setting, with where it comes from."""

    found: Mapping[str, Found]

    def value(self, key: str) -> str | None:
        """What a setting is."""
        return self.found[key].value

    @property
    def api_url(self) -> str:
        """Where the admin API is."""
        return self.value("api-url") or DEFAULT_API_URL

    @property
    def uses_entra(self) -> bool:
        """Whether people sign in to a tenant, rather than with a key of this machine."""
        return bool(self.value("tenant-id") or self.value("client-id"))


def home() -> Path:
    """The folder of the configuration and of what is remembered of a sign-in."""
    return Path.home() / ".matoolkit"


def config_file() -> Path:
    """The configuration file."""
    return home() / "config.json"


def read_configuration(api_url: str | None, environment: Mapping[str, str]) -> Configuration:
    """What holds now; `api_url` is the option."""
    in_file = read_file(config_file())
    found = {}
    for each in SETTINGS:
        if each.key == "api-url" and api_url is not None:
            found[each.key] = Found(_checked(each.key, api_url, "--api-url"), "option")
        elif environment.get(each.variable, "").strip():
            value = environment[each.variable].strip()
            found[each.key] = Found(_checked(each.key, value, each.variable), each.variable)
        elif each.key in in_file:
            source = str(config_file())
            found[each.key] = Found(_checked(each.key, in_file[each.key], source), source)
        elif each.key == "api-url":
            found[each.key] = Found(DEFAULT_API_URL, "default")
        else:
            found[each.key] = Found(None, "not set")
    return Configuration(found)


def read_file(file: Path) -> dict[str, str]:
    """What the configuration file says."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadConfiguration(f"the configuration {file} cannot be read: {reason}") from error
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict) or not all(isinstance(each, str) for each in held.values()):
        raise BadConfiguration(
            f"the configuration {file} is not a JSON object of texts: mend it, or delete it and use `config set`"
        )
    if unknown := [each for each in held if each not in KEYS]:
        raise BadConfiguration(f"the configuration {file} has unknown keys: {', '.join(unknown)}")
    return {key: value for key, value in held.items() if value}


def set_value(file: Path, key: str, value: str) -> None:
    """Write one setting; an empty value takes it out."""
    held = read_file(file)
    if value:
        held[key] = _checked(key, value, "the value")
    else:
        held.pop(key, None)
    write_private(file, json.dumps(held, indent=2) + "\n")


def write_private(file: Path, text: str) -> None:
    """Whole or not at all, and never readable by others, nor the folder by anybody else."""
    draft = file.with_name(f".{file.name}.{token_hex(8)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix":
            file.parent.chmod(0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(text)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise BadConfiguration(f"{file} cannot be written: {error.strerror}") from error


def _checked(key: str, value: str, source: str) -> str:
    value = value.strip()
    if not value.isprintable():
        raise BadConfiguration(f"{source}: {key} holds characters that cannot be printed")
    if key.endswith("-url"):
        return _checked_url(key, value, source)
    return value


def _checked_url(key: str, value: str, source: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise BadConfiguration(f"{source}: {value!r} is no address; {key} is like {DEFAULT_API_URL} or https://host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadConfiguration(f"{source}: {key} is an address alone, without user, password, query or fragment")
    return value.rstrip("/")
