"""Telemetry of all processes as it reaches the learner: heartbeats to a file, episodes counted."""

from __future__ import annotations

import logging
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict

from common.channels import Puller
from common.codec import decode
from common.errors import BadMessage
from common.jsonl import JsonlWriter
from common.logs import RareLog
from common.messages import Episode, Heartbeat, Scalar
from common.reject_counts import RejectCounts
from learner.progress import RunProgress

log = logging.getLogger(__name__)

RECENT_EPISODES = 100
MAX_MESSAGES_PER_PUMP = 256
MAX_PEERS = 10_000


class TelemetryInbox:
    """Keeps the last heartbeat of every process and the last episodes."""

    def __init__(
        self,
        puller: Puller,
        run_id: str,
        progress: RunProgress,
        heartbeats: JsonlWriter | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._puller = puller
        self._run_id = run_id
        self._progress = progress
        self._file = heartbeats
        self._clock = clock
        self._rare = RareLog()
        self._recent: deque[Episode] = deque(maxlen=RECENT_EPISODES)
        self._interval: list[Episode] = []
        self.last_beats: dict[str, tuple[float, dict[str, Scalar]]] = {}
        """By peer: when it was heard, and what it said; who was heard last comes last."""
        self.bad = RejectCounts()

    def pump(self) -> list[Episode]:
        """Take what has arrived, never waiting; the episodes among it."""
        episodes: list[Episode] = []
        for _ in range(MAX_MESSAGES_PER_PUMP):
            frames = self._puller.receive(0)
            if frames is None:
                break
            try:
                message = self._note(decode(frames).message)
                if isinstance(message, Episode):
                    episodes.append(message)
            except BadMessage as error:
                self.bad.note(error.reason)
                if self._rare.allows(error.reason, self._clock()):
                    log.warning("bad telemetry", extra={"reason": str(error)[:200]})
        return episodes

    def beats_of(self, role: str, max_age_s: float) -> list[dict[str, Scalar]]:
        """In the order in which they came."""
        now = self._clock()
        return [
            record
            for heard_s, record in self.last_beats.values()
            if record.get("role") == role and now - heard_s <= max_age_s
        ]

    def take_metrics(self) -> dict[str, Scalar]:
        """Figures over the last episodes and over those since the last call."""
        interval, self._interval = self._interval, []
        return {
            "episodes_total": self._progress.episodes,
            "frontier_episodes_total": self._progress.frontier_episodes,
            "clears_total": self._progress.clears,
            "env_max_x_pos": self._progress.best_x,
            **_recent_metrics(self._recent),
            **_interval_metrics(interval),
        }

    def close(self) -> None:
        self._puller.close()
        if self._file is not None:
            self._file.close()

    def _note(self, message: object) -> Heartbeat | Episode:
        if not isinstance(message, Heartbeat | Episode):
            raise BadMessage("role", "not telemetry")
        if message.run_id != self._run_id:
            raise BadMessage("run_id", "telemetry of another run")
        if isinstance(message, Heartbeat):
            self.note_heartbeat(message.peer, message.record)
        else:
            self._note_episode(message)
        return message

    def note_heartbeat(self, peer: str, record: dict[str, Scalar]) -> None:
        if peer in self.last_beats or len(self.last_beats) < MAX_PEERS:
            self.last_beats.pop(peer, None)
            self.last_beats[peer] = (self._clock(), record)
        if record.get("role") == "actor":
            self._progress.play.note(peer, record)
        if self._file is not None:
            self._file.write(record)

    def _note_episode(self, episode: Episode) -> None:
        if not episode.from_start:
            # Half a stage says nothing about how well a whole one is played.
            self._progress.frontier_episodes += 1
            return
        self._progress.episodes += 1
        self._progress.clears += episode.cleared
        self._progress.best_x = max(self._progress.best_x, episode.max_x)
        self._recent.append(episode)
        self._interval.append(episode)


def episode_line(episode: Episode, agent_steps: int) -> dict[str, Scalar]:
    """One line of episodes.jsonl; `agent_steps` are those of the run."""
    values = asdict(episode)
    del values["run_id"]
    return {"time": time.time(), "global_step": agent_steps, **values}


def _quantile(ordered: Sequence[float], level: float) -> float:
    return ordered[min(int(level * len(ordered)), len(ordered) - 1)]


def _recent_metrics(episodes: Sequence[Episode]) -> dict[str, Scalar]:
    if not episodes:
        names = ("avg_return", "recent_return_p50", "recent_return_p90", "recent_return_p99")
        more = ("recent_clear_rate", "env_mean_x_pos", "episode_agent_steps_mean")
        return dict.fromkeys(names + more)
    returns = sorted(episode.episode_return for episode in episodes)
    return {
        "avg_return": statistics.fmean(returns),
        "recent_return_p50": _quantile(returns, 0.5),
        "recent_return_p90": _quantile(returns, 0.9),
        "recent_return_p99": _quantile(returns, 0.99),
        "recent_clear_rate": statistics.fmean(episode.cleared for episode in episodes),
        "env_mean_x_pos": statistics.fmean(episode.max_x for episode in episodes),
        "episode_agent_steps_mean": statistics.fmean(e.agent_steps for e in episodes),
    }


def _interval_metrics(episodes: Sequence[Episode]) -> dict[str, Scalar]:
    steps = sum(episode.agent_steps for episode in episodes)
    forward = sum(episode.positive_dx_agent_steps for episode in episodes)
    return {
        "env_distance_delta_sum": sum(episode.distance for episode in episodes),
        "env_positive_dx_ratio": forward / steps if steps else None,
    }
