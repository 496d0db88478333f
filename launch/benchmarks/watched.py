"""What viewers got to see during a turn of the benchmark `watching`, and whether it was enough."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from launch.benchmarks.measure import Row, figure
from launch.benchmarks.viewer import LIVE_PERIOD_S, Viewer

LEAST_SHARE = 0.5
"""Who gets less than this of what is due is no crowd that looks: what it costs says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Events of all viewers, and frames of those with a live view; counts or rates of each."""

    events: float
    frames: float

    @classmethod
    def of(cls, viewers: Sequence[Viewer]) -> Seen:
        return cls(
            events=sum(one.events for one in viewers), frames=sum(one.frames for one in viewers)
        )

    def since(self, before: Seen, viewers: Sequence[Viewer], elapsed_s: float) -> Seen:
        """Per viewer, or actor in a live view, and second."""
        actors = sum(len(one.peers) for one in viewers)
        return Seen(
            events=(self.events - before.events) / max(len(viewers), 1) / elapsed_s,
            frames=(self.frames - before.frames) / max(actors, 1) / elapsed_s,
        )


def due(viewers: Sequence[Viewer]) -> Seen:
    """By the pauses of the control room and of the page, of a run in which all is always new."""
    streams = import_module("launch.control_room.event_stream").StreamCount()
    streams.open = len(viewers)
    is_live = any(one.peers for one in viewers)
    return Seen(
        events=1 / float(streams.pause_s) if viewers else 0.0,
        frames=1 / LIVE_PERIOD_S if is_live else 0.0,
    )


def shortfalls(look: str, seen: Sequence[Seen], wanted: Seen) -> list[str]:
    """What viewers got far too little of in most of their turns."""
    if not seen:
        return []
    told = {
        "events": ([one.events for one in seen], wanted.events),
        "live frames": ([one.frames for one in seen], wanted.frames),
    }
    return [
        f"{look}: a viewer got {got:.2f} {name} per second of {should:.2f}, so what looking cost "
        "says little; give the machine less to do"
        for name, (values, should) in told.items()
        if (got := statistics.median(values)) < LEAST_SHARE * should
    ]


def seen_rows(look: str, seen: Sequence[Seen]) -> list[Row]:
    """What looking costs is worth as much as what was seen for it."""
    if not seen:
        return []
    rows = [figure(f"events of a viewer: {look}", [one.events for one in seen], "event/s")]
    if any(one.frames for one in seen):
        frames = [one.frames for one in seen]
        rows.append(figure(f"live frames of a viewer: {look}", frames, "frame/s"))
    return rows
