"""How pictures of curves look, on white paper, on a dark page, or on both."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

ThemeName = Literal["both", "light", "dark"]
SUFFIXES: Final = (".png", ".svg")
"""Of the pictures that commands draw."""

COLOURS: Final = (
    "#2f81f7",
    "#e0730a",
    "#2da44e",
    "#d6409f",
    "#8f6be8",
    "#0f9ba8",
    "#b08800",
    "#d1453b",
)
"""Of middle brightness: each can be told from white and from black."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    ink: str
    paper: str
    """The word none leaves the background clear."""

    def settings(self) -> dict[Any, Any]:
        """For `matplotlib.rc_context`."""
        names = ("text", "axes.label", "axes.edge", "xtick", "ytick", "axes.title", "legend.label")
        inks = {
            name + ("color" if name.startswith(("axes", "legend")) else ".color"): self.ink
            for name in names
        }
        papers = dict.fromkeys(
            ("figure.facecolor", "axes.facecolor", "savefig.facecolor"), self.paper
        )
        # Text in an SVG stays text: it can be searched, and it is small.
        return {**inks, **papers, "svg.fonttype": "none", "legend.framealpha": 0.0}


THEMES: Final = MappingProxyType(
    {
        "both": Theme(ink="#768390", paper="none"),
        "light": Theme(ink="#1f2328", paper="#ffffff"),
        "dark": Theme(ink="#e6edf3", paper="#0d1117"),
    }
)
