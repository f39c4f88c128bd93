"""The tenant's own certificate authority, and certificates for applications that sign in with one."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from matoolkit.simulation.tenant.archive import Archive

NAMES = ("localhost", "127.0.0.1", "::1")


class Authority:
    """Signs the server's certificate. Kept in the archive, so that clients go on trusting it after a restart."""

    def __init__(self, archive: Archive) -> None:
        kept = dict(archive.load("authority")).get("ca")
        if kept is None:
            self._ca = trustme.CA()
            pem, key = self._ca.cert_pem.bytes(), self._ca.private_key_pem.bytes()
            archive.put("authority", "ca", {"certificate": pem.decode(), "key": key.decode()})
        else:
            self._ca = trustme.CA.from_pem(kept["certificate"].encode(), kept["key"].encode())

    @property
    def pem(self) -> bytes:
        """What clients have to trust."""
        return self._ca.cert_pem.bytes()

    def server_context(self) -> ssl.SSLContext:
        """TLS for the server."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._ca.issue_cert(*NAMES).configure_cert(context)
        return context

    def client_context(self) -> ssl.SSLContext:
        """TLS for clients that trust this authority and no other."""
        return ssl.create_default_context(cadata=self.pem.decode())


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate that an application signs in with, and its key."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The public part: what is registered with the application."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def pem(self) -> bytes:
        """Key and certificate."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + self.certificate_pem

    def pfx(self, password: str = "") -> bytes:
        """Key and certificate as a PFX."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return pkcs12.serialize_key_and_certificates(b"matoolkit", self.key, self.certificate, None, encryption)


def make_client_certificate(*, days: int = 30) -> ClientCertificate:
    """A new, self-signed certificate."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "matoolkit worker")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    return ClientCertificate(certificate, key)
