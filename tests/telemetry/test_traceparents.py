"""Where a message comes from, in W3C's form; and ids that follow from a name."""

from __future__ import annotations

import pytest

from matoolkit.telemetry.traceparents import Place, derived, read

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_what_is_written_is_read() -> None:
    place = Place(int(TRACE, 16), int(SPAN, 16), True)
    assert str(place) == f"00-{TRACE}-{SPAN}-01"
    assert read(str(place)) == place
    assert read(f"00-{TRACE}-{SPAN}-00") == place._replace(is_kept=False)


def test_later_versions_may_say_more() -> None:
    assert read(f"01-{TRACE}-{SPAN}-03-what-is-to-come") == Place(int(TRACE, 16), int(SPAN, 16), True)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "00",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01" + "-" + "x" * 1000,
        f"00-{TRACE}-{SPAN}",
        "\n",
    ],
)
def test_what_cannot_be_understood_is_nothing(text: str | None) -> None:
    assert read(text) is None


def test_the_same_origin_gives_the_same_ids_and_another_others() -> None:
    assert derived("wave/1/x/2") == derived("wave/1/x/2")
    found = {derived(f"wave/{batch}/x/{phase}") for batch in range(20) for phase in range(20)}
    assert len({trace for trace, _ in found}) == len({span for _, span in found}) == 400
    assert all(0 < trace < 2**128 and 0 < span < 2**64 for trace, span in found)
