"""The key pair of an installation on one machine: made once in the data folder, signed with and checked against.

Whoever can read the file can sign in, so it is its owner's alone. The API checks tokens with the public half; the
command line, on the same machine and as the same user, signs its own.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

FILE_NAME = "signing-key.pem"
ALGORITHM = "ES256"
ISSUER = "matoolkit-local"
AUDIENCE = "matoolkit"


class LocalKeyError(MatoolkitError):
    """The key to sign in with on this machine cannot be used."""


@dataclass(frozen=True)
class LocalKey:
    """A key pair, of which the private half never leaves the process and its file."""

    private: EllipticCurvePrivateKey

    @cached_property
    def public(self) -> EllipticCurvePublicKey:
        """What tokens are checked with."""
        return self.private.public_key()

    @cached_property
    def key_id(self) -> str:
        """By which a token says that it was signed with this key."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        encoded = self.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return sha256(encoded).hexdigest()[:32]

    def token(self, name: str, roles: Sequence[str], now: datetime, lifetime: timedelta) -> str:
        """A token for somebody on this machine."""
        import jwt

        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": name,
            "preferred_username": name,
            "roles": list(roles),
            "iat": int(now.timestamp()),
            "nbf": int(now.timestamp()),
            "exp": int((now + lifetime).timestamp()),
        }
        return jwt.encode(claims, self.private, algorithm=ALGORITHM, headers={"kid": self.key_id})


def make_local_key(folder: Path) -> LocalKey:
    """The key of a data folder; it is made when there is none, and of two who make one the second takes the first's."""
    file = folder / FILE_NAME
    if not file.exists():
        _write(file, _new_pem())
    return load_local_key(folder)


def load_local_key(folder: Path) -> LocalKey:
    """The key of a data folder that is there."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    file = folder / FILE_NAME
    try:
        mode = file.stat().st_mode
        pem = file.read_bytes()
    except FileNotFoundError:
        raise LocalKeyError(
            f"there is no key in {folder}: is that the data folder, and was `up` started there?"
        ) from None
    except OSError as error:
        raise LocalKeyError(f"the key {file} cannot be read: {error.strerror}") from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise LocalKeyError(f"the key {file} can be read by others: run `chmod 600 {file}`, or delete it for a new one")
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, EllipticCurvePrivateKey) or not isinstance(private.curve, SECP256R1):
        raise LocalKeyError(f"{file} holds no key of ours: delete it, and a new one is made at the next start")
    return LocalKey(private)


def _new_pem() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, pem: bytes) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    draft = file.with_name(f".{file.name}.{token_hex(8)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(pem)
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    except OSError as error:
        raise LocalKeyError(f"the key {file} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink()
