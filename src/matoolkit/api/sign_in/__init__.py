"""Who is speaking: tokens checked against the keys of Entra ID, or against the key pair of this machine."""

from matoolkit.api.sign_in.entra import EntraKeys, EntraSettings, entra_sign_in
from matoolkit.api.sign_in.identity import Identity, Role
from matoolkit.api.sign_in.keys import KeySource, KeysUnavailable, LocalKeys, local_sign_in
from matoolkit.api.sign_in.tokens import Refused, SignIn, TokenRules

__all__ = [
    "EntraKeys",
    "EntraSettings",
    "Identity",
    "KeySource",
    "KeysUnavailable",
    "LocalKeys",
    "Refused",
    "Role",
    "SignIn",
    "TokenRules",
    "entra_sign_in",
    "local_sign_in",
]
