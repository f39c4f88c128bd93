"""The customer's folder: loaded at the start, or the worker does not start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.worker.loading import BadModule, FolderNotFound, add_custom, gather
from matoolkit.worker.registry import NameTaken, Registry, described

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
from matoolkit.worker import function
@function("{name}")
def do(X: int = {default}) -> int: return X
"""


def loaded(folder: Path) -> Registry:
    registry = Registry()
    add_custom(registry, folder)
    return registry


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_every_module_is_loaded_and_may_use_the_others(tmp_path: Path) -> None:
    write(
        tmp_path,
        one=GOOD.format(name="Do-One", default=1),
        two="from ._shared import KIND\nfrom custom_functions.one import do\n"
        + GOOD.format(name="Do-Two", default="KIND"),
        _shared="KIND = 2",
    )
    package = tmp_path / "three"
    package.mkdir()
    write(package, __init__=GOOD.format(name="Do-Three", default=3))
    registry = loaded(tmp_path)
    assert [each.name for each in registry] == ["Do-One", "Do-Three", "Do-Two"]
    assert registry.find("do-two").arguments({}) == {"X": 2}
    assert registry.origin("Do-Three") == str(package / "__init__.py")


def test_another_folder_is_another_package(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, one=GOOD.format(name=f"Do-{name}", default=1))
    assert [each.name for each in loaded(tmp_path / "a")] == ["Do-a"]
    assert [each.name for each in loaded(tmp_path / "b")] == ["Do-b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def (", "line 1, cannot be loaded: SyntaxError"),
        ("\n\nimport nothing_like_this", "line 3, cannot be loaded: ModuleNotFoundError"),
        ("raise SystemExit(1)", "line 1, cannot be loaded: SystemExit"),
        (
            "from matoolkit.worker import function\n@function('A b')\ndef do(): ...",
            "line 2, cannot be loaded: BadFunction",
        ),
    ],
)
def test_a_module_that_fails_to_load_is_named(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, broken=text, fine=GOOD.format(name="Do-Fine", default=1))
    with pytest.raises(BadModule) as caught:
        loaded(tmp_path)
    assert f"{tmp_path / 'broken.py'}, {words}" in str(caught.value)


def test_names_cannot_be_taken_twice(tmp_path: Path) -> None:
    write(tmp_path, one=GOOD.format(name="Do-It", default=1), two=GOOD.format(name="do-it", default=1))
    with pytest.raises(NameTaken, match=r"one of .*one\.py and one of .*two\.py"):
        loaded(tmp_path)


def test_standard_names_cannot_be_taken(tmp_path: Path) -> None:
    registry = Registry()
    registry.add([described("New-EntraUser", lambda: None)], "standard")
    write(tmp_path, one=GOOD.format(name="new-entrauser", default=1))
    with pytest.raises(NameTaken, match="one of standard and one of"):
        add_custom(registry, tmp_path)


def test_a_module_without_functions_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, empty="X = 1")
    assert len(loaded(tmp_path)) == 0
    assert "declares no function" in caplog.text


def test_a_folder_that_somebody_named_has_to_be_there(tmp_path: Path) -> None:
    gather(tmp_path / "nowhere")
    with pytest.raises(FolderNotFound, match="CUSTOM_FUNCTIONS_PATH"):
        gather(tmp_path / "nowhere", insist=True)
