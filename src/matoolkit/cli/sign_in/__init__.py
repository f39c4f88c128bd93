"""How the command line signs in: with this machine's key, or to a tenant of Entra ID."""

from matoolkit.cli.sign_in.chosen import SignIn, chosen, claims_of
from matoolkit.cli.sign_in.errors import NoSignIn, NotSignedIn, SignInError, SignInFailed

__all__ = ["NoSignIn", "NotSignedIn", "SignIn", "SignInError", "SignInFailed", "chosen", "claims_of"]
