"""The evaluator: greedy episodes on the newest checkpoint at fixed steps of training.

Its figures are the ones to quote. It reads checkpoints, never the broadcast, so that what it
judged can be kept; it sends nothing to the replay server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torch import nn

from actor.episode_player import EpisodePlayer, Played
from actor.film_crew import FilmCrew
from common.checkpoint_files import CheckpointData, list_numbered, load_checkpoint
from common.errors import CheckpointCorrupt
from common.evaluation import EpisodeTask, EvaluationPlan, Merit, merit, score_all
from common.heartbeat import HeartbeatWriter
from common.jsonl import JsonlWriter, read_jsonl
from common.resume import mark_best, mark_evaluating
from common.state_dicts import load_plain_state_dict
from common.trace_log import Circumstances, TraceLog

log = logging.getLogger(__name__)

AGENT_STEPS_PER_TICK = 32
FILMED_AGENT_STEPS_PER_TICK = 8
"""A picture takes longer to film than to play."""
LOOK_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorParts:
    peer: str
    player: EpisodePlayer
    network: nn.Module
    plan: EvaluationPlan
    interval_agent_steps: int
    checkpoints: Path
    results: Path
    traces: TraceLog
    heartbeat: HeartbeatWriter
    crew: FilmCrew | None = None
    """None where nobody wants films."""


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """One that is going on."""

    checkpoint: CheckpointData
    waiting: list[EpisodeTask]
    started_s: float
    played: list[Played] = field(default_factory=list)
    is_between_episodes: bool = True


class Evaluator:
    """Implements `common.component.Component`."""

    def __init__(
        self, parts: EvaluatorParts, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._parts = parts
        self._sleep = sleep
        self._results = JsonlWriter(parts.results)
        records = list(read_jsonl(parts.results))
        self._evaluated_steps = _steps_of(records[-1]) if records else 0
        self._best = best_merit(records, parts.plan.stages, parts.checkpoints)
        mark_evaluating(parts.checkpoints, None)
        self._current: Evaluation | None = None
        self._agent_steps = 0
        self._evaluations = 0

    @property
    def is_done(self) -> bool:
        """Only a signal ends it."""
        return False

    def waits_for(self) -> str | None:
        return None if self._is_working else "the next checkpoint to evaluate"

    @property
    def _is_working(self) -> bool:
        crew = self._parts.crew
        return self._current is not None or (crew is not None and crew.is_busy)

    def tick(self) -> bool:
        """Play a little of what goes on, an evaluation or its films, or look for a checkpoint."""
        if not self._is_working:
            self._current = self._next_evaluation()
        crew = self._parts.crew
        if self._current is not None:
            self._play(self._current)
        elif crew is not None and crew.is_busy:
            crew.advance(FILMED_AGENT_STEPS_PER_TICK)
            self._agent_steps += FILMED_AGENT_STEPS_PER_TICK
        else:
            self._sleep(LOOK_INTERVAL_S)
        if self._parts.heartbeat.due():
            self._beat()
        return self._is_working

    def finish(self, deadline_s: float) -> None:
        """Half an evaluation is none."""
        del deadline_s
        self._parts.heartbeat.beat(self._agent_steps, "stopped")

    def close(self) -> None:
        self._parts.player.close()
        self._parts.traces.close()
        self._results.close()
        self._parts.heartbeat.close()

    def _next_evaluation(self) -> Evaluation | None:
        path = due_checkpoint(
            list_numbered(self._parts.checkpoints),
            self._evaluated_steps,
            self._parts.interval_agent_steps,
        )
        if path is None:
            return None
        self._evaluated_steps = int(path.name)
        mark_evaluating(self._parts.checkpoints, path.name)
        try:
            checkpoint = load_checkpoint(path)
        except CheckpointCorrupt as error:
            # Pruned while we looked, or damaged; the next one will do.
            log.warning("checkpoint not evaluated", extra={"error": str(error)[:300]})
            return None
        load_plain_state_dict(
            self._parts.network, checkpoint.weights(), what=f"the checkpoint {path}"
        )
        return Evaluation(
            checkpoint=checkpoint, waiting=self._parts.plan.plays(), started_s=time.monotonic()
        )

    def _play(self, evaluation: Evaluation) -> None:
        player = self._parts.player
        if evaluation.is_between_episodes:
            player.begin(evaluation.waiting[0])
            evaluation.is_between_episodes = False
        played = player.advance(AGENT_STEPS_PER_TICK)
        self._agent_steps += AGENT_STEPS_PER_TICK
        if played is not None:
            self._keep_trace(played, evaluation)
            evaluation.played.append(played)
            evaluation.waiting.pop(0)
            evaluation.is_between_episodes = True
        if not evaluation.waiting:
            self._conclude(evaluation)
            self._current = None

    def _keep_trace(self, played: Played, evaluation: Evaluation) -> None:
        if played.trace is None:
            return
        circumstances = Circumstances(
            peer=self._parts.peer,
            agent_steps=evaluation.checkpoint.agent_steps,
            weight_version=evaluation.checkpoint.updates,
            episode_return=played.result.episode_return,
        )
        self._parts.traces.write(played.trace, circumstances)

    def _conclude(self, evaluation: Evaluation) -> None:
        """One line per stage, and the pointer to the best."""
        checkpoint, plan = evaluation.checkpoint, self._parts.plan
        results = plan.expand([one.result for one in evaluation.played])
        scores = [asdict(score) for score in score_all(results)]
        for score in scores:
            self._results.write(
                {
                    "time": time.time(),
                    "global_step": checkpoint.agent_steps,
                    "weight_version": evaluation.checkpoint.updates,
                    "checkpoint": checkpoint.path.name,
                    **score,
                    "noop_max": plan.noop_max,
                    "sticky": plan.sticky,
                    "epsilon": plan.epsilon,
                    "seed": plan.seed,
                    "duration_s": round(time.monotonic() - evaluation.started_s, 2),
                }
            )
        self._evaluations += 1
        reached = merit(scores)
        log.info(
            "evaluated",
            extra={"agent_steps": checkpoint.agent_steps, "clear_rate": round(reached[0], 4)},
        )
        self._consider(checkpoint.path, reached)
        if self._parts.crew is not None:
            played = [one.result for one in evaluation.played]
            self._parts.crew.begin(played, checkpoint.agent_steps)
        self._beat()

    def _consider(self, checkpoint: Path, reached: Merit) -> None:
        """Keep it as the best, perhaps; of equals the newest, which has learned for longer."""
        if self._best is None or reached >= self._best:
            if checkpoint.is_dir():
                self._best = reached
                mark_best(self._parts.checkpoints, checkpoint.name)
            else:
                log.warning("the best checkpoint is gone", extra={"path": checkpoint})
        mark_evaluating(self._parts.checkpoints, None)

    def _beat(self) -> None:
        current = self._current
        state = "filming" if self._is_working else f"waiting for {self.waits_for()}"
        if current is not None:
            done, total = len(current.played), len(current.played) + len(current.waiting)
            state = f"evaluating {current.checkpoint.path.name}, {done} of {total}"
        values = {"evaluations": self._evaluations, "traces": self._parts.traces.written}
        self._parts.heartbeat.beat(self._agent_steps, state, values)


def due_checkpoint(
    newest_first: Iterable[Path], evaluated_steps: int, interval_agent_steps: int
) -> Path | None:
    """The newest checkpoint, if it lies in another interval than the one evaluated last.

    Another, not a later one: a run may go back to an older checkpoint. Before the first interval
    has passed there is nothing to see.
    """
    newest = next(iter(newest_first), None)
    if newest is None:
        return None
    interval = int(newest.name) // interval_agent_steps
    return newest if interval not in (0, evaluated_steps // interval_agent_steps) else None


def best_merit(
    records: Iterable[dict[str, object]], stages: Sequence[str], checkpoints: Path
) -> Merit | None:
    """Of the evaluations in a results file that can be compared and whose checkpoint still stands.

    A run may be resumed with other stages, or go back and leave what came after it aside.
    """
    by_checkpoint: dict[str, dict[object, dict[str, object]]] = {}
    for record in records:
        if "clear_rate" in record and "distance_mean" in record:
            groups = by_checkpoint.setdefault(str(record.get("checkpoint")), {})
            groups[record.get("stage")] = record
    return max(
        (
            merit(list(group.values()))
            for name, group in by_checkpoint.items()
            if group.keys() == set(stages) and (checkpoints / name).is_dir()
        ),
        default=None,
    )


def _steps_of(record: dict[str, object]) -> int:
    steps = record.get("global_step")
    return steps if isinstance(steps, int) else 0
