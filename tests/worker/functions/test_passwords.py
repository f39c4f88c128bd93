"""Passwords that nobody chose."""

from __future__ import annotations

import random
import re

import pytest

from matoolkit.worker.functions.passwords import LENGTH, random_password


@pytest.mark.parametrize("name", ["", "a@x.example", "jo@x.example", "jörg.müller-lüdenscheidt@x.example", "@x"])
def test_any_policy_is_content(name: str) -> None:
    chance = random.Random(7)
    several = {random_password(chance, name) for _ in range(300)}
    assert len(several) == 300
    local = name.partition("@")[0].casefold()
    for each in several:
        assert len(each) == LENGTH
        for kind in (r"[a-z]", r"[A-Z]", r"[0-9]", r"[^A-Za-z0-9]"):
            assert re.search(kind, each)
        assert not local or local not in each.casefold()
        assert not re.search(r"[\s\"'\\<>{}]", each)


def test_chance_is_handed_in() -> None:
    assert random_password(random.Random(1)) == random_password(random.Random(1))
    assert random_password(random.Random(1)) != random_password(random.Random(2))
