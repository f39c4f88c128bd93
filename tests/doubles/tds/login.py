"""What a client says about itself before and while it signs in."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_FEDERATED = 0x02


@dataclass(frozen=True)
class Login:
    """The fields of a sign-in that tests ask for."""

    host: str
    user: str
    password: str
    application: str
    server: str
    database: str
    token: str | None
    read_only: bool
    packet_size: int


def read_login(content: bytes) -> Login:
    def text(place: int) -> str:
        offset, length = struct.unpack_from("<HH", content, place)
        return content[offset : offset + length * 2].decode("utf-16-le")

    def hidden(place: int) -> str:
        offset, length = struct.unpack_from("<HH", content, place)
        data = bytes(((byte ^ 0xA5) << 4 | (byte ^ 0xA5) >> 4) & 0xFF for byte in content[offset : offset + length * 2])
        return data.decode("utf-16-le")

    extended = content[27] & 0x10
    return Login(
        host=text(36),
        user=text(40),
        password=hidden(44),
        application=text(48),
        server=text(52),
        database=text(68),
        token=_token(content) if extended else None,
        read_only=bool(content[26] & 0x20),
        packet_size=struct.unpack_from("<I", content, 8)[0],
    )


def _token(content: bytes) -> str | None:
    """The access token among the features that the client asks for."""
    (where,) = struct.unpack_from("<H", content, 56)
    (place,) = struct.unpack_from("<I", content, where)
    while content[place] != 0xFF:
        feature, size = struct.unpack_from("<BI", content, place)
        data = content[place + 5 : place + 5 + size]
        if feature == _FEDERATED:
            (length,) = struct.unpack_from("<I", data, 1)
            return data[5 : 5 + length].decode("utf-16-le")
        place += 5 + size
    return None


def prelogin_reply(encryption: int, *, federated: bool) -> bytes:
    options = [(0x00, bytes((16, 0, 0, 0, 0, 0))), (0x01, bytes([encryption])), (0x04, b"\x00")]
    if federated:
        options.append((0x06, b"\x01"))
    place = 5 * len(options) + 1
    head, body = bytearray(), bytearray()
    for kind, value in options:
        head += struct.pack(">BHH", kind, place + len(body), len(value))
        body += value
    return bytes(head) + b"\xff" + bytes(body)


def prelogin_options(content: bytes) -> dict[int, bytes]:
    options, place = {}, 0
    while content[place] != 0xFF:
        kind, offset, length = struct.unpack_from(">BHH", content, place)
        options[kind] = content[offset : offset + length]
        place += 5
    return options
