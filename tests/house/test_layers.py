"""The layers of the source tree hold, and the tool that checks them would notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def house_with(folder: Path, **modules: str) -> Path:
    """A tree under our contracts, with the given modules in `src/matoolkit`."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    package = folder / "src" / "matoolkit"
    for name, text in {
        "__init__": "",
        "errors": "",
        "cli/__init__": "",
        "messages": "",
        "settings": "",
        "runbooks/__init__": "",
        **modules,
    }.items():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_an_empty_house_is_in_order(tmp_path: Path) -> None:
    result = lint_imports(house_with(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_box_may_not_import_another(tmp_path: Path) -> None:
    result = lint_imports(
        house_with(tmp_path, **{"scheduler/__init__": "import matoolkit.worker", "worker/__init__": ""})
    )
    assert result.returncode == 1
    assert "matoolkit.scheduler is not allowed to import matoolkit.worker" in " ".join(result.stdout.split())


def test_runbooks_may_not_read_the_clock(tmp_path: Path) -> None:
    result = lint_imports(house_with(tmp_path, **{"runbooks/offsets": "import time"}))
    assert result.returncode == 1
    assert "matoolkit.runbooks.offsets -> time" in " ".join(result.stdout.split())


def test_a_module_without_a_layer_is_noticed(tmp_path: Path) -> None:
    result = lint_imports(house_with(tmp_path, utils=""))
    assert result.returncode == 1
    assert "matoolkit.utils" in result.stdout
