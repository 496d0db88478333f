"""The whole system in one process and one thread: the same parts over in-memory transport.

The packages are loaded by name, as their command lines are: launch does not import them.
Everything that decides what is learned follows from the seed, so two runs are equal bit by bit.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from common.component import Component
from common.config import Settings
from common.memory_transport import MemoryNetwork

TICK_S = 1e-4


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


class Lockstep:
    """Plays one agent step everywhere, then learns as far as the balance allows, and again."""

    def __init__(self, settings: Settings, *, resume: Path | None = None) -> None:
        network, clock = MemoryNetwork(), TickClock()
        self._replay = _builder("replay_server")(settings, network)
        self._learner = _builder("learner")(
            settings, network, resume=resume, clock=clock, watch_gpus=False
        )
        self._actors = [
            _builder("actor")(settings, network, index=index, clock=clock)
            for index in range(settings.actor.actors)
        ]

    @property
    def is_done(self) -> bool:
        return self._learner.is_done

    def tick(self) -> None:
        for actor in self._actors:
            actor.tick()
        self._settle()
        while self._learner.tick() and not self.is_done:
            self._settle()

    def run(self, should_stop: Callable[[], bool], each_tick: Callable[[], None]) -> None:
        """Until the budget of agent steps is used up or somebody wants it to end; then save."""
        try:
            while not (self.is_done or should_stop()):
                self.tick()
                each_tick()
            for component in (*self._actors, self._replay, self._learner):
                component.finish(1.0)
        finally:
            for component in (*self._actors, self._replay, self._learner):
                component.close()

    def _settle(self) -> None:
        while self._replay.tick():
            pass
