"""The picture of a comparison: a bar for each engine, as SVG that reads well on light and on dark ground."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _LEFT, _RIGHT = 860, 250, 110
_ROW, _BAR, _HEAD, _GROUP, _FOOT = 26, 16, 62, 34, 30
_STYLE = """
  text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #24292f }
  .title { font-size: 16px; font-weight: 600 }
  .group { font-weight: 600 }
  .quiet { fill: #57606a; font-size: 12px }
  .bar { fill: #8c959f } .own { fill: #1f6feb } .mark { stroke: #57606a; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #9198a1 } .bar { fill: #6e7681 } .own { fill: #58a6ff }
    .mark { stroke: #9198a1 }
  }
"""


@dataclass(frozen=True)
class Bar:
    """One engine."""

    label: str
    value: float
    low: float
    high: float
    is_own: bool


@dataclass(frozen=True)
class Group:
    """Engines that are compared with each other."""

    title: str
    bars: Sequence[Bar]


def picture(title: str, caption: str, groups: Sequence[Group]) -> str:
    """The whole file; every group's bars are drawn to the same scale, longest first."""
    longest = max(bar.high for group in groups for bar in group.bars)
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    parts: list[str] = []
    y = _HEAD
    for group in groups:
        parts.append(_text(0, y + 14, group.title, "group"))
        y += _GROUP - 8
        for bar in sorted(group.bars, key=lambda bar: -bar.value):
            parts.append(_row(bar, y, scale))
            y += _ROW
        y += _GROUP - _ROW + 8
    height = y + _FOOT - 10
    parts.append(_text(0, height - 8, caption, "quiet"))
    spoken = "; ".join(f"{bar.label}: {bar.value:,.0f}" for group in groups for bar in group.bars)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 0 {_WIDTH + 20} {height}" width="{_WIDTH + 20}" '
        f'height="{height}" role="img" aria-labelledby="title description">\n'
        f'<title id="title">{escape(title)}</title>\n<desc id="description">{escape(spoken)}</desc>\n'
        f"<style>{_STYLE}</style>\n{_text(0, 24, title, 'title')}\n"
        + _text(0, 44, "steps a second, median; the line is the range of the takes", "quiet")
        + "\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _row(bar: Bar, y: int, scale: float) -> str:
    middle, width = y + _BAR / 2, max(bar.value * scale, 1)
    kind = "own" if bar.is_own else "bar"
    low, high = _LEFT + bar.low * scale, _LEFT + bar.high * scale
    ends = "".join(f"M{x:.1f} {middle - 4}v8" for x in (low, high))
    return "\n".join(
        (
            _text(_LEFT - 10, middle + 4.5, bar.label, "", "end"),
            f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>',
            f'<path class="mark" d="M{low:.1f} {middle}H{high:.1f}{ends}"/>',
            _text(max(high, _LEFT + width) + 8, middle + 4.5, f"{bar.value:,.0f}"),
        )
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "") -> str:
    classes = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{classes}{anchored}>{escape(words)}</text>'
