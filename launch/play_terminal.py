"""Episodes in a terminal or a window, at the pace of the game: somebody watches, or plays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from common.checkpoint_files import WeightsChoice
from common.config import CoreName
from common.evaluation import EpisodeResult, EpisodeTask
from common.models import ModelPlace
from common.moments import Moment
from launch.game_keys import HELP, Controller, action_of, keys_in
from launch.play_view import lay_out
from launch.terminal import Terminal, opened_terminal

END_S: Final = 1.5
"""For which the end of an episode is shown, or fewer at a higher speed."""
END_AGENT_STEPS: Final = 22
LONG_AGO_S: Final = 0.25
QUIT: Final = "q"


class PlayedEpisode(Protocol):
    @property
    def result(self) -> EpisodeResult: ...


class Player(Protocol):
    """What `actor.show` builds."""

    def begin(self, task: EpisodeTask) -> None: ...

    def advance(self, agent_steps: int) -> PlayedEpisode | None: ...

    def step(self, action: int) -> PlayedEpisode | None: ...

    def play(self, task: EpisodeTask) -> PlayedEpisode: ...

    def look(self) -> Moment: ...

    def close(self) -> None: ...


class Builders(Protocol):
    """The module `actor.show`."""

    PERSONS_ACTIONS: str

    def agent_player(self, place: ModelPlace, core: CoreName, weights: WeightsChoice) -> Player: ...

    def person_player(self, place: ModelPlace, core: CoreName) -> Player: ...


@dataclass(slots=True, kw_only=True)
class Pace:
    """Says when the next agent step is due; after a long pause it does not hurry to catch up."""

    agent_step_s: float
    clock: Callable[[], float] = time.monotonic
    _due_s: float = field(default=0.0)

    def wait_s(self) -> float:
        """Seconds until the next agent step, which is then taken as done; 0 when it is late."""
        now = self.clock()
        if now - self._due_s > LONG_AGO_S:
            self._due_s = now
        wait = max(0.0, self._due_s - now)
        self._due_s += self.agent_step_s
        return wait


class Seat(Protocol):
    """Who decides what the next agent step is."""

    player: Player
    notes: Sequence[str]
    """Shown below the values of the actions."""
    waits_for_key: bool
    """Whether an episode begins when a key is pressed."""

    def begin(self, task: EpisodeTask) -> None: ...

    def step(self, keys: Sequence[str]) -> PlayedEpisode | None: ...


class AgentsSeat:
    """The network decides."""

    notes: Sequence[str] = ("q  end",)
    waits_for_key = False

    def __init__(self, player: Player) -> None:
        self.player = player

    def begin(self, task: EpisodeTask) -> None:
        self.player.begin(task)

    def step(self, keys: Sequence[str]) -> PlayedEpisode | None:
        del keys
        return self.player.advance(1)


class PersonsSeat:
    """The keys decide; every episode begins with none of them held."""

    notes: Sequence[str] = HELP
    waits_for_key = True

    def __init__(self, player: Player, action_set: str) -> None:
        self.player = player
        self._action_set = action_set
        self._controller = Controller()

    def begin(self, task: EpisodeTask) -> None:
        self._controller = Controller()
        self.player.begin(task)

    def step(self, keys: Sequence[str]) -> PlayedEpisode | None:
        for key in keys:
            self._controller.press(key)
        return self.player.step(action_of(self._controller.next_buttons(), self._action_set))


class Display(Protocol):
    """Where moments are drawn and keys are read."""

    def draw(self, moment: Moment, notes: Sequence[str]) -> None: ...

    def keys(self, wait_s: float = 0.0) -> list[str]:
        """Names of the keys that were pressed, waiting a while for the first of them."""
        ...


@dataclass(frozen=True, slots=True)
class TerminalDisplay:
    terminal: Terminal

    def draw(self, moment: Moment, notes: Sequence[str]) -> None:
        self.terminal.draw(lay_out(moment, self.terminal.area, notes))

    def keys(self, wait_s: float = 0.0) -> list[str]:
        return keys_in(self.terminal.keys(wait_s))


@contextmanager
def in_terminal() -> Iterator[Display]:
    with opened_terminal() as terminal:
        yield TerminalDisplay(terminal)


Opening = Callable[[], AbstractContextManager[Display]]


def show_episodes(
    seat: Seat, tasks: Sequence[EpisodeTask], pace: Pace, opening: Opening = in_terminal
) -> list[EpisodeResult]:
    """The episodes that were played to their end, until the person had enough."""
    results = []
    with opening() as display:
        for number, task in enumerate(tasks, start=1):
            seat.begin(task)
            screen = Screen(display, seat, f"episode {number} of {len(tasks)}")
            result = _show_one(screen, seat, pace)
            if result is None:
                break
            results.append(result)
    return results


@dataclass(frozen=True, slots=True)
class Screen:
    """An episode on a display."""

    display: Display
    seat: Seat
    title: str

    def draw(self) -> None:
        self.display.draw(self.seat.player.look(), (self.title, "", *self.seat.notes))

    def wait_for_keys(self) -> list[str]:
        while not (keys := self.display.keys(wait_s=1.0)):
            pass
        return keys


def _show_one(screen: Screen, seat: Seat, pace: Pace) -> EpisodeResult | None:
    """None when the person had enough. What is late is played but not drawn."""
    screen.draw()
    keys = screen.wait_for_keys() if seat.waits_for_key else []
    while QUIT not in keys:
        wait_s = pace.wait_s()
        time.sleep(wait_s)
        played = seat.step(keys)
        if wait_s or played is not None:
            screen.draw()
        if played is not None:
            time.sleep(min(END_S, END_AGENT_STEPS * pace.agent_step_s))
            return played.result
        keys = screen.display.keys()
    return None
