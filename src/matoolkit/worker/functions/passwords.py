"""Passwords that nobody chose and nobody is told: for accounts whose owners get in another way, or reset it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

LENGTH: Final = 32
# Letters and digits that are taken for each other are left out.
_CLASSES: Final = ("abcdefghijkmnopqrstuvwxyz", "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789", "!#$%&*+-=?@_")
_SHORTEST_PART: Final = 3


def random_password(chance: Random, user_principal_name: str = "") -> str:
    """A password with every kind of character that a policy may ask for, and without the name in it.

    `chance` draws what nobody can foresee: `secrets.SystemRandom`.
    """
    name = user_principal_name.partition("@")[0].casefold()
    parts = {name, *name.replace("-", ".").replace("_", ".").split(".")}
    avoided = {each for each in parts if len(each) >= _SHORTEST_PART or each == name} - {""}
    everything = "".join(_CLASSES)
    while True:
        letters = [chance.choice(each) for each in _CLASSES]
        letters += [chance.choice(everything) for _ in range(LENGTH - len(letters))]
        chance.shuffle(letters)
        password = "".join(letters)
        if not any(each in password.casefold() for each in avoided):
            return password
