"""The key in the data folder is made once, is its owner's alone, and is never half there."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from matoolkit.local_key import FILE_NAME, LocalKeyError, load_local_key, make_local_key
from tests.api.entra import rsa_key

if TYPE_CHECKING:
    from pathlib import Path


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    key = make_local_key(folder)
    file = folder / FILE_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [each.name for each in folder.iterdir()] == [FILE_NAME]
    assert make_local_key(folder).key_id == load_local_key(folder).key_id == key.key_id


def test_of_many_who_make_it_all_have_the_same(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(make_local_key(tmp_path).key_id)) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    make_local_key(tmp_path)
    os.chmod(tmp_path / FILE_NAME, mode)  # noqa: PTH101 - pathlib's follows links no differently
    with pytest.raises(LocalKeyError, match="chmod 600"):
        load_local_key(tmp_path)


def pem_of_another_kind() -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return rsa_key("first").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("content", [b"", b"not a key", pem_of_another_kind()])
def test_what_is_no_key_of_ours_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / FILE_NAME
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(LocalKeyError, match="holds no key of ours"):
        make_local_key(tmp_path)


def test_without_a_key_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LocalKeyError, match="was `up` started there"):
        load_local_key(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalKeyError, match="cannot be written"):
        make_local_key(tmp_path / "file" / "data")
