"""What a learner's loop is made of, and the values that it follows."""

from __future__ import annotations

from dataclasses import dataclass

from common.heartbeat import HeartbeatWriter
from common.jsonl import JsonlWriter
from common.linear_schedule import LinearSchedule
from common.nvml import GpuWatch
from learner.archive import Archive
from learner.control_desk import ControlDesk
from learner.course import Course
from learner.inbox import TelemetryInbox
from learner.progress import RunProgress
from learner.publisher import WeightPublisher
from learner.ready_batch import BatchFeed
from learner.scalar_board import ScalarBoard
from learner.team import Team
from learner.update import Learner


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerParts:
    """What a learner is made of."""

    learner: Learner
    source: BatchFeed
    publisher: WeightPublisher
    inbox: TelemetryInbox
    course: Course
    desk: ControlDesk
    archive: Archive | None
    """None where nothing is to be written: in some tests."""
    heartbeat: HeartbeatWriter
    metrics: JsonlWriter | None
    episodes: JsonlWriter | None
    """One line per episode of training that began at the start of its stage."""
    stages: JsonlWriter | None
    """One line per stage and report; None where there is one stage."""
    board: ScalarBoard | None
    """For TensorBoard, where it was asked for."""
    gpus: GpuWatch | None
    team: Team | None
    """The other ranks; None where there are none."""
    progress: RunProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerPlan:
    """The values that the loop follows."""

    learning_rate: LinearSchedule
    beta: LinearSchedule
    uses: int
    """Updates per batch."""
    max_agent_steps: int
    """Of the whole run; 0: no limit."""
    max_minutes: float
    """Of this start; 0: no limit."""
    metrics_interval_s: float
    max_updates: int = 0
    """Of the whole run; 0: no limit."""
    saves_replay: bool = False
    is_overlapped: bool = True
    """While an update is computed other things are done; in lockstep one after the other."""

    def learning_rate_at(self, agent_steps: int, course: Course) -> float:
        return self.learning_rate.at(agent_steps) * course.controls.lr_scale
