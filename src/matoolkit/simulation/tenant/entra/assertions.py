"""Signing in with a certificate: the assertion that the client signs is checked against what is registered."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa

from matoolkit.simulation.tenant.entra.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from matoolkit.simulation.tenant.calls import Refused
    from matoolkit.simulation.tenant.entra.identities import Application

KIND = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ALGORITHMS = ["RS256", "PS256"]
_TOLERATED_SECONDS = 300


def check_assertion(application: Application, assertion: str, audiences: Iterable[str], now: datetime) -> None:
    """Refuse an assertion that no registered certificate signed, or that is for somebody else or over."""
    certificate = _find(application, assertion)
    key = certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        raise _refused(700027, "The certificate's key is not an RSA key.")
    try:
        # What is claimed is looked at below, so that each mistake has an error of its own.
        claims = jwt.decode(
            assertion,
            key,
            _ALGORITHMS,
            options={
                "require": ["exp", "aud", "iss", "sub"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "verify_aud": False,
            },
        )
    except jwt.MissingRequiredClaimError as error:
        raise _refused(50027, f"JWT token is invalid or malformed. {error}.") from error
    except jwt.InvalidTokenError as error:
        raise _refused(
            700027,
            "Client assertion contains an invalid signature. [Reason - The key was not found or does not match.]",
        ) from error
    if claims["iss"] != application.client_id or claims["sub"] != application.client_id:
        raise _refused(700021, "Client assertion application identifier doesn't match 'client_id' parameter.")
    if claims["aud"] not in set(audiences):
        raise _refused(700023, "Client assertion audience claim does not match Realm issuer.")
    moment = now.timestamp()
    if claims["exp"] + _TOLERATED_SECONDS <= moment or claims.get("nbf", moment) > moment + _TOLERATED_SECONDS:
        raise _refused(
            700024, f"Client assertion is not within its valid time range. Current time: {now:%Y-%m-%dT%H:%M:%SZ}."
        )


def _find(application: Application, assertion: str) -> x509.Certificate:
    try:
        header = jwt.get_unverified_header(assertion)
    except jwt.InvalidTokenError as error:
        raise _refused(50027, "JWT token is invalid or malformed.") from error
    named = {str(header.get(name, "")).rstrip("=") for name in ("x5t", "x5t#S256")}
    for pem in application.certificates:
        certificate = x509.load_pem_x509_certificate(pem)
        if named & {_thumbprint(certificate, hashes.SHA1()), _thumbprint(certificate, hashes.SHA256())}:  # noqa: S303 - how Entra names certificates
            return certificate
    raise _refused(
        700027,
        "The certificate with identifier used to sign the client assertion is not registered on application."
        " [Reason - The key was not found.]",
    )


def _thumbprint(certificate: x509.Certificate, algorithm: hashes.HashAlgorithm) -> str:
    return base64.urlsafe_b64encode(certificate.fingerprint(algorithm)).decode().rstrip("=")


def _refused(code: int, message: str) -> Refused:
    return refused(code, message, error="invalid_client", status=401)
