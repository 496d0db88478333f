"""The whole system in one process and one thread: the same parts over in-memory transport.

The packages are loaded by name, as their command lines are: launch does not import them.
Everything that decides what is learned follows from the seed, so two runs are equal bit by bit.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from common.component import Component
from common.config import Settings
from common.memory_transport import MemoryNetwork
from common.run_paths import RunPaths
from common.saved_replay import cut_wanted
from common.seeds import seed_for

TICK_S = 1e-4
NEVER_S = 1e9


class TickClock:
    """Time as the number of questions asked: questions are then asked at the same points always."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += TICK_S
        return self._now_s


class Builder(Protocol):
    def __call__(self, settings: Settings, network: MemoryNetwork, **options: object) -> Component:
        """A package's `assembly.build`."""
        ...


def _builder(package: str) -> Builder:
    return cast(Builder, importlib.import_module(f"{package}.assembly").build)


class LockstepLearner(Component, Protocol):
    saved: Path | None
    after_cut_request: Callable[[], object]


class Lockstep:
    """Plays one agent step everywhere, then learns as far as the balance allows, and again.

    With `--checkpoint-replay` it goes on from each of its own checkpoints as a resumed run would:
    so a run that was killed and resumed is the same as one that was not.
    """

    def __init__(self, settings: Settings, *, resume: Path | None = None) -> None:
        self._saves_replay = settings.replay.checkpoint_replay
        if self._saves_replay:
            # Checkpoints by the clock would come at another step in every run.
            settings = replace(
                settings, learner=replace(settings.learner, checkpoint_interval_s=NEVER_S)
            )
        self._settings = settings
        self._build(resume)

    @property
    def is_done(self) -> bool:
        return self._learner.is_done

    def tick(self) -> None:
        for actor in self._actors:
            actor.tick()
        self._settle()
        while self._learner.tick() and not self.is_done:
            if self._saves_replay and self._learner.saved is not None:
                self._begin_again(self._learner.saved)
                return
            self._settle()

    def run(self, should_stop: Callable[[], bool], each_tick: Callable[[], None]) -> None:
        """Until the budget of agent steps is used up or somebody wants it to end; then save."""
        try:
            while not (self.is_done or should_stop()):
                self.tick()
                each_tick()
            for component in self._components():
                component.finish(1.0)
        finally:
            self._close()

    def _build(self, resume: Path | None) -> None:
        settings, network, clock = self._settings, MemoryNetwork(), TickClock()
        restores = self._saves_replay and resume is not None
        self._replay = _builder("replay_server")(
            settings,
            network,
            restore=cut_wanted(resume, RunPaths.of(settings.run).checkpoints),
            in_background=False,
        )
        learner = _builder("learner")(settings, network, resume=resume, clock=clock, is_alone=True)
        self._learner = cast(LockstepLearner, learner)
        self._learner.saved = None
        self._learner.after_cut_request = self._settle
        played = _for_actors(settings, resume) if restores else settings
        self._actors = [
            _builder("actor")(played, network, index=index, clock=clock)
            for index in range(settings.actor.actors)
        ]

    def _begin_again(self, checkpoint: Path) -> None:
        self._close()
        self._build(checkpoint)

    def _components(self) -> list[Component]:
        return [*self._actors, self._replay, self._learner]

    def _close(self) -> None:
        for component in self._components():
            component.close()

    def _settle(self) -> None:
        while self._replay.tick():
            pass


def _for_actors(settings: Settings, resume: Path | None) -> Settings:
    """Another seed after each checkpoint: otherwise all would begin with the same play."""
    seed = seed_for(settings.run.seed, "begun again", int(resume.name) if resume else 0)
    return replace(settings, run=replace(settings.run, seed=seed))
