"""What a comparison writes: medians and ratios, the JSON for programs, tables between two marks, a picture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.peers.entries import Entry
from benchmarks.peers.own import own
from benchmarks.peers.picture import Bar, Group, picture
from benchmarks.peers.publishing import Publication
from benchmarks.peers.recording import Records
from benchmarks.peers.standings import promises, standing
from benchmarks.peers.stores import Store

if TYPE_CHECKING:
    from pathlib import Path

_OURS = Entry("matoolkit", Store.SQLITE, "durable", environment=None)
_HUEY = Entry("huey", Store.SQLITE, "fsync=True", suffix="fsync")
_REDIS = Entry("celery", Store.REDIS, "everysec")
_MACHINE = {"cpu": "a <fast> one", "cores": 2, "fsync_ms": 1.2345}
_TOLD = {"members": 20, "steps": 96, "times": 96, "errors": 2}
_CRASH = {"members": 1000, "runs_before": 2500, "lost": 3, "repeated": 7, "seconds": 1.25, "remark": "nothing moved"}


def _measured(name: str, steps: int, *seconds: float, **comparison: Any) -> dict[str, Any]:
    return {
        "name": name,
        "store": name.split("/")[1],
        "setting": "durable",
        "steps": steps,
        "seconds": list(seconds),
        "median_seconds": sorted(seconds)[len(seconds) // 2],
        "steps_per_second": steps / sorted(seconds)[len(seconds) // 2],
        "peak_mb": None,
        "comparisons": [comparison] if comparison else [],
    }


_SHORT = {"bound": 0.5, "ratio_to": None, "quantity": "milliseconds a step", "value": 0.75, "verdict": "SHORT"}
_OWN = own(
    {
        "measurements": [
            _measured("raw/sqlite/executemany", 5000, 0.25, 0.5, 1.0),
            _measured("raw/sqlite/lone member", 5, 0.01),
            _measured("engine/sqlite/1,000 members", 5000, 0.5),
            _measured("engine/sqlite/100,000 members", 500_000, 60.0, **_SHORT),
            _measured("engine/sqlite/100,000 members, longest transaction", 1, 0.1),
            _measured("engine/sqlite/lone member", 5, 0.015),
            _measured("tick/sqlite/1,000 members, unchanged", 1000, 0.02),
        ]
    }
)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    records = Records(tmp_path / "runs")
    for take, seconds in enumerate((0.5, 0.4, 1.0), 1):
        found = {"version": "1.0", "seconds": seconds, "steps": 5000, "peak_mb": 70.0 + take}
        records.once(f"{_OURS.key}-wave-{take}", lambda found=found: found)  # type: ignore[misc]
    records.once(f"{_OURS.key}-story", lambda: _TOLD)
    records.once(f"{_OURS.key}-crash", lambda: _CRASH)
    records.once(f"{_HUEY.key}-wave-1", lambda: {"version": "3", "seconds": 5.0, "steps": 5000, "peak_mb": None})
    records.once(f"{_REDIS.key}-wave-1", lambda: {"not_installable": "no Redis"})
    return records


@pytest.fixture
def publication(records: Records) -> Publication:
    standings = [standing(entry, records) for entry in (_OURS, _HUEY, _REDIS)]
    return Publication(_MACHINE, "2026-01-01", standings, _OWN)


def test_a_run_that_is_known_is_not_done_again(records: Records) -> None:
    assert records.once(f"{_OURS.key}-story", lambda: pytest.fail("done again")) == _TOLD
    records.clear()
    assert records.once(f"{_OURS.key}-story", lambda: {"new": 1}) == {"new": 1}


def test_the_median_of_the_takes_stands_for_an_entry_with_its_range(records: Records) -> None:
    found = standing(_OURS, records)
    assert (found.steps_per_s, found.rates[0], found.rates[-1]) == (10_000, 5_000, 12_500)
    assert (found.peak_mb, found.told, found.crash) == (72, _TOLD, _CRASH)


def test_ratios_are_of_medians_and_say_whether_they_are_held(publication: Publication) -> None:
    found = {each.against: each for each in promises(publication.standings, _OWN.rates)}
    assert (found["Huey with fsync"].found, found["Huey with fsync"].is_kept) == (10, True)
    assert (found["raw executemany"].found, found["raw executemany"].is_kept) == (1, True)
    assert (found["PGQueuer"].found, found["PGQueuer"].is_kept) == (None, None)


def test_the_json_lists_what_was_measured_and_never_a_zero(publication: Publication) -> None:
    document = json.loads(json.dumps(publication.document()))
    assert document["machine"] == _MACHINE
    ours, huey = document["results"]
    assert {key: ours[key] for key in ("engine", "version", "store", "setting", "members", "steps")} == {
        "engine": "matoolkit",
        "version": "1.0",
        "store": "sqlite",
        "setting": "durable",
        "members": 1000,
        "steps": 5,
    }
    assert (ours["steps_per_s"], ours["range"], ours["peak_mb"]) == (10_000, [5_000, 12_500], 72)
    assert (huey["steps_per_s"], huey["peak_mb"]) == (1_000, None)
    assert document["not_measured"] == [
        {"engine": "celery", "store": "redis", "reason": "not installable: no Redis"},
    ]
    assert document["raw_limits"] == [
        {
            "store": "sqlite",
            "style": "executemany",
            "setting": "durable",
            "steps_per_s": 10_000,
            "range": [5_000, 10_000, 20_000],
        }
    ]
    assert document["curves"] == {
        "a step, SQLite": [{"members": 1000, "ms": 0.1}, {"members": 100_000, "ms": 0.12}],
        "a tick without changes, SQLite": [{"members": 1000, "ms": 20.0}],
    }
    assert document["lone_member"] == {"sqlite": {"ms": 15.0, "raw_ms": 10.0}}
    assert document["short"] == ["engine/sqlite/100,000 members: 0.75, at most 0.5 milliseconds a step"]


def test_of_the_page_only_what_is_between_the_marks_is_written(publication: Publication, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n")
    publication.write(tmp_path)
    publication.write(tmp_path)
    text = page.read_text()
    assert text.startswith(
        "before\n<!-- measured: begin -->\nTaken 2026-01-01: cpu a <fast> one, cores 2, fsync ms 1.23."
    )
    assert text.endswith("<!-- measured: end -->\nafter\n")
    assert "| **matoolkit** 1.0 | SQLite | 10,000 | 5,000 to 12,500 | 72 | 1,000 | durable |" in text
    assert "| Celery | Redis | — | — | — | 1,000 | not installable: no Redis |" in text
    assert "| **matoolkit** | SQLite | 1,000 | 3 | 7 | never | lost for good |" in text
    assert "old" not in text
    assert json.loads((tmp_path / "benchmarks.json").read_text()) == json.loads(json.dumps(publication.document()))


def test_a_page_without_the_marks_is_refused(publication: Publication, tmp_path: Path) -> None:
    (tmp_path / "benchmarks.md").write_text("no marks")
    with pytest.raises(ValueError, match="has no place between"):
        publication.write(tmp_path)


def test_the_picture_is_well_formed_and_its_bars_are_to_scale(publication: Publication) -> None:
    root = ET.fromstring(publication.picture())  # noqa: S314 - our own
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert [bar.attrib["class"] for bar in bars] == ["own", "bar"]
    assert widths[0] == pytest.approx(10 * widths[1], rel=0.01)
    texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"matoolkit", "Huey (fsync)", "10,000", "1,000"} <= set(texts)
    assert any("a <fast> one" in text for text in texts)


def test_the_picture_follows_the_ground_it_is_on() -> None:
    drawn = picture("title", "caption", [Group("SQLite", [Bar("one", 2, 1, 3, is_own=True)])])
    assert "prefers-color-scheme: dark" in drawn
