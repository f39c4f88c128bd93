"""Why nobody could be signed in."""

from __future__ import annotations

from matoolkit.errors import MatoolkitError


class SignInError(MatoolkitError):
    """Signing in is not possible."""


class NotSignedIn(SignInError):
    """Nobody is signed in; run `matoolkit auth login`."""


class NoSignIn(SignInError):
    """It is not said how to sign in."""


class SignInFailed(SignInError):
    """Entra ID did not sign anybody in."""
