"""Counters of the whole run, which never restart at zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from common.checkpoint_files import JsonObject
from learner.play_report import PlaySums


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCount:
    """A replay server when we last heard of it."""

    server_incarnation: int = -1
    inserted_total: int = 0


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """Kept in every checkpoint."""

    agent_steps: int = 0
    """Stored by any life of any replay server since the run began."""
    servers: dict[str, ServerCount] = field(default_factory=dict)
    """By the number of the server, as text: the state is JSON."""
    episodes: int = 0
    frontier_episodes: int = 0
    clears: int = 0
    best_x: int = 0
    requests: int = 0
    play: PlaySums = field(default_factory=PlaySums)

    def note_inserted(self, server_incarnation: int, inserted_total: int, shard: int = 0) -> None:
        """Add what the server has stored since we last heard of it; a new life counts from 0."""
        last = self.servers.get(str(shard), ServerCount())
        before = last.inserted_total if server_incarnation == last.server_incarnation else 0
        self.agent_steps += max(inserted_total - before, 0)
        self.servers[str(shard)] = ServerCount(
            server_incarnation=server_incarnation, inserted_total=max(inserted_total, before)
        )

    def to_state(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RunProgress:
        # A state with these two counters is older than shards: they are those of server 0.
        older = {"0": state} if "server_incarnation" in state else {}
        servers = state.get("servers", older)
        progress = cls(
            play=PlaySums.from_state(state.get("play", {})),
            servers={str(int(shard)): _server_count(saved) for shard, saved in servers.items()},
        )
        for counter in fields(cls):
            if counter.name not in ("play", "servers") and counter.name in state:
                setattr(progress, counter.name, int(str(state[counter.name])))
        return progress


def _server_count(saved: Mapping[str, Any]) -> ServerCount:
    names = (item.name for item in fields(ServerCount))
    return ServerCount(**{name: int(str(saved[name])) for name in names if name in saved})
