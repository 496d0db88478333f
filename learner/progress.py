"""Counters of the whole run, which never restart at zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from common.checkpoint_files import JsonObject
from learner.play_report import PlaySums


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """Kept in every checkpoint."""

    agent_steps: int = 0
    """Stored by any life of the replay server since the run began."""
    server_incarnation: int = -1
    inserted_total: int = 0
    """The server's own count when we last heard of it."""
    episodes: int = 0
    frontier_episodes: int = 0
    clears: int = 0
    best_x: int = 0
    requests: int = 0
    play: PlaySums = field(default_factory=PlaySums)

    def note_inserted(self, server_incarnation: int, inserted_total: int) -> None:
        """Add what the server has stored since we last heard of it; a new life counts from 0."""
        same_life = server_incarnation == self.server_incarnation
        before = self.inserted_total if same_life else 0
        self.agent_steps += max(inserted_total - before, 0)
        self.server_incarnation = server_incarnation
        self.inserted_total = max(inserted_total, before)

    def to_state(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RunProgress:
        progress = cls(play=PlaySums.from_state(state.get("play", {})))
        for counter in fields(cls):
            if counter.name != "play" and counter.name in state:
                setattr(progress, counter.name, int(str(state[counter.name])))
        return progress
