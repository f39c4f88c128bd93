"""`pytds`, with three things made right; each has a test that fails without it.

- Packets that are not full: numbers were read past the end of what had come, and silently became others.
- A reply that ends in the middle of a long value was read for ever.
- Host names: what checks them asks pyOpenSSL for what that no longer offers, and mistakes names in capitals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytds  # type: ignore[import-untyped]  # it has no types
import pytds.tls  # type: ignore[import-untyped]  # it has no types
from cryptography import x509
from pytds.tds_base import ClosedConnectionError, readall  # type: ignore[import-untyped]  # it has no types
from pytds.tds_reader import _TdsReader  # type: ignore[import-untyped]  # it has no types

if TYPE_CHECKING:
    from struct import Struct


def certificate_names(cert: Any, name: bytes) -> bool:
    """Whether a certificate is for this host, by the names it lists; a star stands for one label."""
    try:
        extension = cert.to_cryptography().extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return False
    wanted = name.decode("ascii").lower().rstrip(".")
    parent = wanted.partition(".")[2]
    names = [str(each).lower().rstrip(".") for each in extension.value.get_values_for_type(x509.DNSName)]
    return any(each == wanted or ("." in parent and each == f"*.{parent}") for each in names)


def _unpack(self: Any, struct: Struct) -> tuple[Any, ...]:
    """Numbers, wherever packets end."""
    start, end = self._pos, self._pos + struct.size
    if end <= self._size:
        self._pos = end
        return struct.unpack_from(self._buf, start)
    return struct.unpack(bytes(readall(self, struct.size)))


def _recv(self: Any, size: int) -> bytes:
    """Up to so many bytes of this reply, at least one."""
    while self._pos >= self._size:
        if self.stream_finished():
            raise ClosedConnectionError
        self._read_packet()
    start = self._pos
    self._pos += min(size, self._size - start)
    return bytes(self._buf[start : self._pos])


_TdsReader.unpack = _unpack
_TdsReader.recv = _recv
pytds.tls.validate_host = certificate_names

__all__ = ["certificate_names", "pytds"]
