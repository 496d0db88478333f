"""The actor's loop: take new weights, choose for all environments at once, play, hand over blocks.

Terms. A *lane* is one environment with its episode; an *agent step* is one action held for
`frame_skip` emulator frames; a *block* is what is sent. No zmq, no command line, no emulator here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from actor.block_builder import PlayedStep
from actor.lane import EpisodeSummary, Lane
from actor.lane_tools import tool_figures
from actor.level_notes import LevelNotes
from actor.policy import Decision, Policy
from actor.shaping import Shaping
from actor.showcase import Scene, Showcase
from actor.sink import BlockSink
from actor.slow_steps import SlowStepTrace
from actor.starts import Starts
from actor.weight_feed import WeightFeed
from common.blocks import F32, StepBlock
from common.channels import Pusher
from common.codec import encode
from common.controls import PlayControls
from common.heartbeat import HeartbeatWriter, Identity
from common.messages import BlockMessage, Episode, Scalar
from common.phases import PhaseTimer
from common.trace_log import Circumstances, TraceLog
from common.traces import Trace

WAIT_MS = 50
EpsilonOf = Callable[[int, int, PlayControls], float]
"""Epsilon of an environment: its index in the run, agent steps of the run so far, the controls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorParts:
    """What an actor is made of."""

    identity: Identity
    lanes: Sequence[Lane]
    policy: Policy
    sink: BlockSink
    feed: WeightFeed
    telemetry: Pusher
    heartbeat: HeartbeatWriter
    epsilon_of: EpsilonOf
    starts: Starts
    traces: TraceLog
    timer: PhaseTimer
    """Also that of the lanes."""
    shaping: Shaping
    """Also that of the lanes."""
    slow_steps: SlowStepTrace | None = None
    showcase: Showcase | None = None
    notes: LevelNotes | None = None
    """Also those of the lanes."""


class ActorLoop:
    """Implements `common.component.Component`."""

    def __init__(self, parts: ActorParts) -> None:
        self._identity = parts.identity
        self._lanes = parts.lanes
        self._policy = parts.policy
        self._sink = parts.sink
        self._feed = parts.feed
        self._telemetry = parts.telemetry
        self._heartbeat = parts.heartbeat
        self._epsilon_of = parts.epsilon_of
        self._starts = parts.starts
        self._traces = parts.traces
        self._first_env = parts.identity.index * len(parts.lanes)
        self._timer = parts.timer
        self._shaping = parts.shaping
        self._slow_steps = parts.slow_steps
        self._showcase = parts.showcase
        self._notes = parts.notes
        self._epsilons: F32 = np.ones(len(parts.lanes), dtype=np.float32)
        self._agent_steps = 0
        self._has_told = False
        self._episodes_unsent = 0
        self._ready: list[tuple[int, StepBlock]] = []

    @property
    def is_done(self) -> bool:
        """Only a signal ends it."""
        return False

    def tick(self) -> bool:
        """Play one agent step in every lane, or wait a moment; True when it played."""
        with self._timer.phase("weights"):
            if self._feed.poll():
                self._policy.network.refresh()
                self._follow_weights()
        with self._timer.phase("send"):
            self._sink.pump()
        self._submit_ready()
        waits_for = self.waits_for()
        if waits_for is None:
            self._play()
        else:
            with self._timer.phase("wait"):
                self._sink.pump(WAIT_MS)
        if self._heartbeat.due() or self._has_news():
            self._beat("playing" if waits_for is None else f"waiting for {waits_for}")
            if self._notes is not None:
                self._notes.write_if_due()
        return waits_for is None

    def _has_news(self) -> bool:
        """The first block that was stored: the launcher asks for it when this life ends."""
        is_news = self._sink.counts.acked > 0 and not self._has_told
        self._has_told = self._has_told or is_news
        return is_news

    def waits_for(self) -> str | None:
        """Whom the actor waits for, in words, or None while it can play."""
        if self._feed.current is None:
            return "weights from the learner"
        if self._feed.is_stale():
            return "fresh weights from the learner"
        return self._sink.waits_for() if self._ready else None

    def finish(self, deadline_s: float) -> None:
        """Send what is left, as truncated episodes, and wait for acknowledgements a little."""
        for index, lane in enumerate(self._lanes):
            self._ready.extend((index, block) for block in lane.flush())
        self._sink.drain(deadline_s, refill=self._submit_ready)
        self._sink.drop_unsubmitted(len(self._ready))
        self._beat("stopped")

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
        if self._slow_steps is not None:
            self._slow_steps.close()
        self._traces.close()
        self._heartbeat.close()

    def _follow_weights(self) -> None:
        """Take over what the learner says besides the tensors."""
        header = self._feed.current
        if header is None:
            return
        self._starts.set_shares(header.stage_shares)
        self._shaping.follow(header.agent_steps, header.controls.distance_weight)
        if self._notes is not None:
            self._notes.run_agent_steps = header.agent_steps
        for index in range(len(self._lanes)):
            env_index = self._first_env + index
            self._epsilons[index] = self._epsilon_of(env_index, header.agent_steps, header.controls)

    def _play(self) -> None:
        with self._timer.phase("inference"):
            decision = self._policy.decide(
                np.stack([lane.observation for lane in self._lanes]),
                np.array([lane.prev_action for lane in self._lanes], dtype=np.int64),
                self._epsilons,
                forced=[lane.tools.guide.action for lane in self._lanes],
            )
        with self._timer.phase("blocks"):
            for index, lane in enumerate(self._lanes):
                finished = self._act(lane, _step_of(decision, index, lane))
                if finished is not None:
                    self._report(index, finished)
                    self._keep_trace(lane.trace, finished)
            self._agent_steps += len(self._lanes)
            self._collect_blocks()
        if self._showcase is not None and self._showcase.is_due():
            self._showcase.show(self._lanes[0].screen(), self._scene(decision))

    def _scene(self, decision: Decision) -> Scene:
        """What people see of the first environment."""
        lane = self._lanes[0]
        return Scene(
            env_index=self._first_env,
            stage=lane.stage,
            x=lane.summary.final_x,
            action=int(decision.actions[0]),
            action_labels=lane.action_labels,
            q_values=tuple(round(float(q), 4) for q in decision.quantiles[0].mean(axis=1)),
            epsilon=round(float(self._epsilons[0]), 4),
            was_random=bool(decision.explores[0]),
            agent_steps=self._agent_steps,
        )

    def _act(self, lane: Lane, step: PlayedStep) -> EpisodeSummary | None:
        if self._slow_steps is None:
            return lane.act(step)
        return self._slow_steps.watch(lambda: lane.act(step))

    def _collect_blocks(self) -> None:
        for index, lane in enumerate(self._lanes):
            while (block := lane.take_block()) is not None:
                self._ready.append((index, block))
        self._submit_ready()

    def _submit_ready(self) -> None:
        while self._ready and self._sink.may_submit():
            index, block = self._ready.pop(0)
            message = self._describe(index)
            with self._timer.phase("encode"):
                frames = encode(message, {name: getattr(block, name) for name in message.arrays})
            with self._timer.phase("send"):
                self._sink.submit(message, frames, block.num_items)

    def _describe(self, lane_index: int) -> BlockMessage:
        weights = self._feed.current
        return BlockMessage(
            incarnation=self._identity.incarnation,
            sequence=self._sink.next_sequence,
            env_index=self._first_env + lane_index,
            weight_generation=weights.generation if weights else 0,
            weight_version=weights.version if weights else 0,
            stage=self._lanes[lane_index].stage,
        )

    def _report(self, lane_index: int, summary: EpisodeSummary) -> None:
        weights = self._feed.current
        values = asdict(summary)
        del values["start_x"]
        episode = Episode(
            run_id=self._identity.run_id,
            peer=self._identity.peer,
            env_index=self._first_env + lane_index,
            epsilon=float(self._epsilons[lane_index]),
            weight_generation=weights.generation if weights else 0,
            weight_version=weights.version if weights else 0,
            **values,
        )
        self._episodes_unsent += not self._telemetry.send(encode(episode))

    def _keep_trace(self, trace: Trace | None, summary: EpisodeSummary) -> None:
        weights = self._feed.current
        if trace is None or weights is None:
            return
        circumstances = Circumstances(
            peer=self._identity.peer,
            agent_steps=weights.agent_steps,
            weight_version=weights.version,
            episode_return=round(summary.episode_return, 4),
        )
        self._traces.write(trace, circumstances)

    def _beat(self, state: str) -> None:
        weights = self._feed.current
        values: dict[str, Scalar] = {
            f"share_{name}": round(share, 4) for name, share in self._timer.shares().items()
        }
        values.update({f"blocks_{name}": n for name, n in asdict(self._sink.counts).items()})
        values["weight_generation"] = weights.generation if weights else None
        values["weight_version"] = weights.version if weights else None
        values["weight_age_s"] = round(self._feed.age_s(), 3) if weights else None
        values.update(self._feed.bad.told_as("weights_bad"))
        values["controls_revision"] = weights.controls.revision if weights else None
        values.update(self._sink.bad_answers())
        values["episodes_unsent"] = self._episodes_unsent
        values["max_x"] = max(lane.summary.max_x for lane in self._lanes)
        values.update(tool_figures(self._shaping, [lane.tools for lane in self._lanes]))
        values["slow_steps_total"] = self._slow_steps.total if self._slow_steps else 0
        self._heartbeat.beat(self._agent_steps, state, values)


def _step_of(decision: Decision, index: int, lane: Lane) -> PlayedStep:
    """What a lane is about to play, and what the network thinks of it."""
    return PlayedStep(
        action=int(decision.actions[index]),
        reward=0.0,
        flag=0,
        chosen_quantiles=decision.chosen_quantiles[index],
        greedy_quantiles=decision.greedy_quantiles[index],
        scripted=lane.tools.guide.action is not None,
    )
