"""Settings: which of several counts, what is refused, and who can read them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from matoolkit.cli.configuration import SETTINGS, config_file
from matoolkit.cli.main import SUBCOMMANDS, main
from tests.cli.conftest import bad, good, good_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("nothing_set")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def shown(*arguments: str) -> dict[str, tuple[str | None, str]]:
    found = good_json(run("config", "show", "--output", "json", *arguments))
    return {key: (each["value"], each["source"]) for key, each in found.items()}


def test_option_then_variable_then_file_then_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown()["api-url"] == ("http://127.0.0.1:8080", "default")
    assert shown()["tenant-id"] == (None, "not set")
    good(run("config", "set", "api-url", "https://file.example/"))
    assert shown()["api-url"] == ("https://file.example", str(config_file()))
    monkeypatch.setenv("MATOOLKIT_API_URL", "https://variable.example")
    assert shown()["api-url"] == ("https://variable.example", "MATOOLKIT_API_URL")
    assert shown("-u", "https://option.example")["api-url"] == ("https://option.example", "option")
    monkeypatch.setenv("MATOOLKIT_API_URL", " ")
    assert shown()["api-url"][0] == "https://file.example"


def test_every_setting_can_be_set_by_file_and_by_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in SETTINGS:
        value = "https://one.example" if each.key.endswith("-url") else "one"
        good(run("config", "set", each.key, value))
        assert shown()[each.key] == (value, str(config_file()))
        monkeypatch.setenv(each.variable, value.replace("one", "two"))
        assert shown()[each.key] == (value.replace("one", "two"), each.variable)
        result = run("config", "set", each.key, "")
        assert good(result) == f"Took {each.key} out of {config_file()}.\n"
        assert result.stderr == f"Warning: {each.variable} is set, and counts for more than the file.\n"
        monkeypatch.delenv(each.variable)
        assert shown()[each.key][1] in {"default", "not set"}


def test_the_file_is_its_owners_alone(nothing_set: Path) -> None:
    (nothing_set / ".matoolkit").mkdir(mode=0o755)
    (nothing_set / ".matoolkit" / "config.json").write_text('{"tenant-id": "one"}')
    (nothing_set / ".matoolkit" / "config.json").chmod(0o644)
    assert good_json(run("config", "set", "client-id", "two", "--output", "json")) == {
        "key": "client-id",
        "value": "two",
        "file": str(config_file()),
    }
    assert stat.S_IMODE(config_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(config_file().parent.stat().st_mode) == 0o700
    assert json.loads(config_file().read_text()) == {"tenant-id": "one", "client-id": "two"}
    assert [each.name for each in config_file().parent.iterdir()] == ["config.json"]


def test_where_the_file_is(nothing_set: Path) -> None:
    assert good(run("config", "path")) == f"{nothing_set}/.matoolkit/config.json\n"
    assert good_json(run("config", "path", "--output", "json")) == {"file": f"{nothing_set}/.matoolkit/config.json"}
    assert not config_file().exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "is not a JSON object of texts"),
        ("[]", "is not a JSON object of texts"),
        ('{"api-url": 1}', "is not a JSON object of texts"),
        ('{"api-uri": "x"}', "has unknown keys: api-uri"),
        ('{"api-url": "ftp://x"}', "'ftp://x' is no address"),
        ("[" * 100_000, "is not a JSON object of texts"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(text: str, expected: str) -> None:
    config_file().parent.mkdir()
    config_file().write_text(text)
    for command in (["config", "show"], ["batch", "list"], ["auth", "status"]):
        said = bad(run(*command))
        assert str(config_file()) in said
        assert expected in said


def test_a_file_that_is_none() -> None:
    config_file().mkdir(parents=True)
    assert "cannot be read: Is a directory" in bad(run("config", "show"))
    config_file().rmdir()
    config_file().write_bytes(b"\xff\xfe")
    assert "cannot be read: it is not text" in bad(run("config", "show"))


@pytest.mark.parametrize(
    "value",
    ["waves.example", "ftp://x", "https://", "http://user:secret@x", "https://x?y=1", "https://x#y", "http://x:99999",
     "http://x:0", "http://[::1", "https://x\x1b"],
)  # fmt: skip
def test_addresses_that_are_none(value: str) -> None:
    said = bad(run("config", "set", "api-url", value))
    assert "\x1b" not in said
    assert not config_file().exists()
    assert bad(run("batch", "list", "-u", value))


def test_keys_that_are_none() -> None:
    assert "'api-url'" in bad(run("config", "set", "api-uri", "x"), 2)


def test_shown_as_a_table() -> None:
    lines = good(run("config", "show")).splitlines()
    assert lines[0].split() == ["SETTING", "VALUE", "FROM"]
    assert lines[1].split() == ["api-url", "http://127.0.0.1:8080", "default"]


# Completion ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = good(run("completion", shell))
    assert "_MATOOLKIT_COMPLETE" in script
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert good(run("completion")) == script
    assert f"matoolkit completion {shell} > " in good(run("completion", "--how"))


def test_a_shell_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "name the shell: bash, zsh, fish" in bad(run("completion"), 2)
    assert bad(run("completion", "tcsh"), 2)


def completed(words: str, place: int) -> list[str]:
    environment = {
        **os.environ,
        "_MATOOLKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(place),
    }
    code = (
        "import sys; from matoolkit.cli.main import main\n"
        "try: main(prog_name='matoolkit')\n"
        "finally: print('heavy', sorted({'sqlalchemy', 'rich', 'requests', 'fastapi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    *lines, heavy = done.stdout.splitlines()
    assert heavy == "heavy []"
    return [line.partition(",")[2] for line in lines]


def test_commands_and_options_are_completed_without_loading_what_is_heavy() -> None:
    assert completed("matoolkit ", 1) == sorted(SUBCOMMANDS)
    assert completed("matoolkit ba", 1) == ["batch"]
    assert {"watch", "advance", "release-removals"} <= set(completed("matoolkit batch ", 2))
    assert completed("matoolkit batch list --sta", 3) == ["--status"]
    assert "cancelled" in completed("matoolkit batch list --status ", 4)
    assert completed("matoolkit config set ap", 3) == ["api-url", "api-scope"]
