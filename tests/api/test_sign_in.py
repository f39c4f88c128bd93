"""Tokens: which are accepted, and the many that are not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as ec_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from matoolkit.api.sign_in import EntraSettings, KeysUnavailable, Refused, Role, SignIn, entra_sign_in, local_sign_in
from matoolkit.api.sign_in.identity import identity_of
from matoolkit.clock import ManualClock
from matoolkit.local_key import make_local_key
from tests.api.entra import CLIENT, SETTINGS, TENANT, V1, V2, Directory, claims, public, rsa_key, signed

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def directory() -> Directory:
    return Directory()


@pytest.fixture
def entra(clock: ManualClock, directory: Directory) -> SignIn:
    return entra_sign_in(SETTINGS, clock, directory.fetch)


def fresh(**changes: Any) -> dict[str, Any]:
    return claims(NOW, **changes)


def part(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def hmac_with_the_public_key() -> str:
    """The oldest trick: sign with what everybody knows, and call it a shared secret."""
    pem = rsa_key("first").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    text = f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': 'first'})}.{part(fresh())}"
    return f"{text}.{part(hmac.new(pem, text.encode(), hashlib.sha256).digest())}"


def unsigned(algorithm: str) -> str:
    return f"{part({'alg': algorithm, 'typ': 'JWT', 'kid': 'first'})}.{part(fresh())}."


def with_claims_changed() -> str:
    head, _, signature = signed(fresh(roles=["Reader"])).split(".")
    return f"{head}.{part(fresh(roles=['Admin']))}.{signature}"


def bringing_its_own_key() -> str:
    head = {"alg": "RS256", "kid": "mine", "jwk": public(rsa_key("mine")), "jku": "https://example.test/keys"}
    return f"{part(head)}.{signed(fresh(), key=rsa_key('mine')).partition('.')[2]}"


WRONG: dict[str, Any] = {
    "unsigned": lambda: unsigned("none"),
    "unsigned, in capitals": lambda: unsigned("NONE"),
    "said to be signed and not": lambda: unsigned("RS256"),
    "HS256 with the public key": hmac_with_the_public_key,
    "RS512": lambda: signed(fresh(), algorithm="RS512"),
    "PS256": lambda: signed(fresh(), algorithm="PS256"),
    "ES256": lambda: signed(fresh(), key=ec_key(SECP256R1()), algorithm="ES256"),
    "another key under the right id": lambda: signed(fresh(), key=rsa_key("other")),
    "an unknown key id": lambda: signed(fresh(), key=rsa_key("other"), kid="other"),
    "no key id": lambda: signed(fresh(), kid=None),
    "its own key": bringing_its_own_key,
    "claims changed": with_claims_changed,
    "another issuer": lambda: signed(fresh(iss="https://login.microsoftonline.com/someone-else/v2.0")),
    "the local issuer": lambda: signed(fresh(iss="matoolkit-local", aud="matoolkit")),
    "issuers": lambda: signed(fresh(iss=[V2])),
    "no issuer": lambda: signed(fresh(iss=None)),
    "another audience": lambda: signed(fresh(aud="https://graph.microsoft.com")),
    "no audience": lambda: signed(fresh(aud=None)),
    "expired": lambda: signed(fresh(exp=int(NOW.timestamp()) - 61)),
    "no expiry": lambda: signed(fresh(exp=None)),
    "an expiry that is no time": lambda: signed(fresh(exp="tomorrow")),
    "not yet valid": lambda: signed(fresh(nbf=int(NOW.timestamp()) + 61)),
    "issued in the future": lambda: signed(fresh(iat=int(NOW.timestamp()) + 61)),
    "huge": lambda: signed(fresh(groups=["x" * 40] * 400)),
    "empty parts": lambda: "..",
    "no token at all": lambda: "opensesame",
    "not base64": lambda: "§.§.§",
    "nested deeply": lambda: part(b"[" * 5_000) + ".e30.e30",
    "a header that is a list": lambda: part([]) + ".e30.e30",
    "claims that are a list": lambda: f"{part({'alg': 'RS256', 'kid': 'first'})}.{part([])}.e30",
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_refused(entra: SignIn, name: str) -> None:
    token = WRONG[name]()
    with pytest.raises(Refused) as refused:
        entra.check(token)
    assert "anna" not in str(refused.value)


def test_every_refusal_is_for_its_own_reason(entra: SignIn) -> None:
    """A token that is right in everything but one thing is right when that is."""
    assert entra.check(signed(fresh())).name == "anna@example.test"


@pytest.mark.parametrize("audience", [CLIENT, f"api://{CLIENT}", ["other", CLIENT]])
@pytest.mark.parametrize("issuer", [V1, V2])
def test_both_versions_of_tokens_are_accepted(entra: SignIn, issuer: str, audience: Any) -> None:
    assert entra.check(signed(fresh(iss=issuer, aud=audience))).roles == {Role.ADMIN}


def test_clocks_may_differ_by_a_minute(entra: SignIn, clock: ManualClock) -> None:
    token = signed(fresh())
    clock.set(NOW - timedelta(seconds=59))
    assert entra.check(token).name
    clock.set(NOW + timedelta(hours=1, seconds=59))
    assert entra.check(token).name


def test_a_sovereign_cloud_has_its_own_places() -> None:
    settings = EntraSettings(TENANT, CLIENT, "api://waves", "https://login.chinacloudapi.cn/")
    assert settings.keys_url == f"https://login.chinacloudapi.cn/{TENANT}/discovery/v2.0/keys"
    assert settings.rules.issuers == {
        f"https://login.chinacloudapi.cn/{TENANT}/v2.0",
        f"https://sts.chinacloudapi.cn/{TENANT}/",
    }
    assert settings.rules.audiences == {CLIENT, "api://waves"}


# Who it is ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"preferred_username": "a", "name": "b", "oid": "c"}, "a"),
        ({"preferred_username": "  ", "name": "b", "oid": "c"}, "b"),
        ({"preferred_username": ["x"], "oid": "c"}, "c"),
        ({}, "system"),
    ],
)
def test_who_did_it(given: dict[str, Any], name: str) -> None:
    assert identity_of(given).name == name


@pytest.mark.parametrize(
    ("roles", "known"),
    [
        (["Admin"], {"Admin"}),
        (["Reader", "Other"], {"Reader"}),
        (["admin"], set()),
        ("Admin", set()),
        ([["Admin"], None, {"Admin": 1}], set()),
        (None, set()),
    ],
)
def test_roles_are_as_they_were_issued(roles: Any, known: set[str]) -> None:
    assert identity_of({"roles": roles}).roles == known


# Keys -----------------------------------------------------------------------------------------------------------------


def test_keys_are_fetched_once_and_again_after_a_day(entra: SignIn, clock: ManualClock, directory: Directory) -> None:
    token = signed(fresh(exp=int(NOW.timestamp()) + 10**6))
    assert not entra.is_ready(token)
    entra.check(token)
    entra.check(token)
    assert (directory.asked, entra.is_ready(token)) == (1, True)
    clock.advance(hours=25)
    assert not entra.is_ready(token)
    entra.check(token)
    assert directory.asked == 2


def test_a_new_key_is_found_and_made_up_ones_do_not_make_us_ask(
    entra: SignIn, clock: ManualClock, directory: Directory
) -> None:
    entra.check(signed(fresh()))
    for number in range(20):
        with pytest.raises(Refused):
            entra.check(signed(fresh(), key=rsa_key("other"), kid=f"made-up-{number}"))
    assert directory.asked == 1
    directory.published = {"second": rsa_key("second")}
    rolled = signed(fresh(), key=rsa_key("second"), kid="second")
    clock.advance(minutes=5)
    assert entra.check(rolled).name
    with pytest.raises(Refused, match="key that is not known"):
        entra.check(signed(fresh()))
    assert directory.asked == 2


def test_when_keys_cannot_be_fetched_those_there_are_go_on(
    entra: SignIn, clock: ManualClock, directory: Directory
) -> None:
    token = signed(fresh(exp=int(NOW.timestamp()) + 10**6))
    directory.fails = True
    for _ in range(3):
        with pytest.raises(KeysUnavailable):
            entra.check(token)
    assert directory.asked == 1
    clock.advance(seconds=10)
    directory.fails = False
    entra.check(token)
    clock.advance(days=2)
    directory.fails = True
    assert entra.check(token).name == "anna@example.test"


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b"{}", b'{"keys": 3}', b'{"keys": [1, {}]}'])
def test_an_answer_that_holds_no_keys_is_no_answer(clock: ManualClock, answer: bytes) -> None:
    with pytest.raises(KeysUnavailable):
        entra_sign_in(SETTINGS, clock, lambda _url: answer).check(signed(fresh()))


def test_keys_that_are_weak_or_of_another_kind_are_left_alone(entra: SignIn, directory: Directory) -> None:
    directory.extra = [
        {**public(rsa_key("short", 1024)), "kid": "short", "use": "sig"},
        {**public(rsa_key("other")), "kid": "encrypting", "use": "enc"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "use": "sig"},
        {"kty": "RSA", "n": "!", "e": "AQAB", "kid": "broken"},
    ]
    entra.check(signed(fresh()))
    for kid in ("short", "encrypting", "shared", "broken"):
        with pytest.raises(Refused, match="not known"):
            entra.check(signed(fresh(), kid=kid))


def test_of_many_who_need_a_key_one_fetches_it(entra: SignIn, directory: Directory) -> None:
    directory.gate = threading.Event()
    token = signed(fresh())
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(entra.check(token).name)) for _ in range(5)]
    for each in threads:
        each.start()
    directory.gate.set()
    for each in threads:
        each.join(10)
    assert (len(found), directory.asked) == (5, 1)


def test_while_old_keys_are_fetched_anew_they_serve(entra: SignIn, clock: ManualClock, directory: Directory) -> None:
    token = signed(fresh(exp=int(NOW.timestamp()) + 10**6))
    entra.check(token)
    clock.advance(hours=25)
    directory.gate = threading.Event()
    fetching = threading.Thread(target=entra.check, args=(token,))
    fetching.start()
    assert directory.is_asked.wait(10)
    try:
        # Neither waits for the fetch that is under way.
        assert entra.is_ready(token)
        assert entra.check(token).name == entra.check(token, fetch=False).name == "anna@example.test"
    finally:
        directory.gate.set()
        fetching.join(10)
    assert directory.asked == 2


def test_told_not_to_it_fetches_nothing(entra: SignIn, directory: Directory) -> None:
    with pytest.raises(Refused, match="not known"):
        entra.check(signed(fresh()), fetch=False)
    assert directory.asked == 0


# This machine's own key -----------------------------------------------------------------------------------------------


def test_the_local_key_signs_in(tmp_path: Path, clock: ManualClock) -> None:
    key = make_local_key(tmp_path)
    who = local_sign_in(key, clock).check(key.token("anna", ["Admin"], NOW, timedelta(minutes=5)))
    assert (who.name, set(who.roles)) == ("anna", {Role.ADMIN})


def test_another_machines_key_does_not(tmp_path: Path, clock: ManualClock) -> None:
    ours, theirs = make_local_key(tmp_path / "ours"), make_local_key(tmp_path / "theirs")
    with pytest.raises(Refused):
        local_sign_in(ours, clock).check(theirs.token("anna", ["Admin"], NOW, timedelta(minutes=5)))


def test_the_two_ways_of_signing_in_know_nothing_of_each_other(
    tmp_path: Path, clock: ManualClock, entra: SignIn
) -> None:
    key = make_local_key(tmp_path)
    with pytest.raises(Refused):
        local_sign_in(key, clock).check(signed(fresh(iss="matoolkit-local", aud="matoolkit"), kid=key.key_id))
    with pytest.raises(Refused):
        entra.check(key.token("anna", ["Admin"], NOW, timedelta(minutes=5)))
