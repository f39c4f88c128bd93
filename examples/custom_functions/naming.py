"""Works out names the way the company wants them.

An example of a plain function: it waits for nothing, and its result becomes data of the member with `output_params`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from matoolkit.worker import FunctionError, function


@dataclass
class Names:
    """What a person is called in the target tenant."""

    Alias: str
    TargetUpn: str


@function("Get-TargetNames")
def get_target_names(GivenName: str, Surname: str, Domain: str, Number: int | None = None) -> Names:
    """Make an alias of plain letters, with a number where two people share a name."""
    letters = [_plain(each) for each in (GivenName, Surname)]
    if not all(letters):
        raise FunctionError("a name has no letters that an address can have", type="NoLetters")
    alias = f"{'.'.join(letters)}{'' if Number is None else Number}"
    return Names(Alias=alias, TargetUpn=f"{alias}@{Domain}")


def _plain(name: str) -> str:
    replaced = name.casefold().replace("æ", "ae").replace("ø", "o").replace("đ", "d")
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", replaced))
