"""The clears in `clears/`, one trace per stage."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from common.traces import Trace, read_trace

FOLDER: Final = Path(__file__).parent / "clears"


def clear_path(stage: str) -> Path:
    return FOLDER / f"{stage}.json"


def read_clears() -> tuple[Trace, ...]:
    return tuple(read_trace(path) for path in sorted(FOLDER.glob("*.json")))
