"""Hands the steps of a lane to its builder, and leaves out those that are not to be stored."""

from __future__ import annotations

from actor.block_builder import BlockBuilder, PlayedStep
from common.blocks import U8, StepBlock


class Recorder:
    """Call `begin` when an episode begins, then `record` with every step of it.

    Around scripted steps that are left out an episode has a gap: what came before is truncated
    there, what comes after begins with the frames that were seen.
    """

    def __init__(self, builder: BlockBuilder, *, stores_scripted: bool = True) -> None:
        self._builder = builder
        self._stores_scripted = stores_scripted
        self._is_open = False
        """Whether the builder has the step before this one."""
        self._first_frame: U8 | None = None

    def begin(self, first_frame: U8 | None) -> None:
        """An episode, by its first frame; without one it goes on from a moment of another."""
        self._is_open = False
        self._first_frame = first_frame

    def record(self, step: PlayedStep, next_frame: U8, *, seen: U8, prev_action: int) -> None:
        """A step with the frame that it led to, and the observation that it was taken on."""
        if step.scripted and not self._stores_scripted:
            self._interrupt()
            return
        if not self._is_open:
            self._open(seen, prev_action)
        self._builder.add_step(step, next_frame)

    def take_block(self) -> StepBlock | None:
        return self._builder.take_block()

    def flush(self) -> list[StepBlock]:
        return self._builder.flush()

    def _open(self, seen: U8, prev_action: int) -> None:
        if self._first_frame is not None:
            self._builder.begin_episode(self._first_frame)
        else:
            self._builder.begin_within_episode(seen, prev_action)
        self._is_open, self._first_frame = True, None

    def _interrupt(self) -> None:
        if self._is_open:
            self._builder.truncate()
        self._is_open, self._first_frame = False, None
