"""Finds a way through a stage: remembers places, returns to one of them, explores from there.

After Ecoffet et al., "First return, then explore" (2021): an archive of cells, each with the
shortest way that led there, here returned to by save states. Only buttons are used, so that the
way can be repeated on any core.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from actor.env import ram as memory
from actor.env.actions import action_bytes
from actor.env.native_core import NativeCore
from actor.env.stage_game import StageGame
from common.game import ACTION_SETS, parse_stage
from common.traces import Trace, ram_checksum
from tests.native.sticky_play import sticky

# Only this set enters pipes, which some stages need.
ACTION_SET: Final = "complex"
FRAME_SKIP: Final = 4
_ROLLOUT_AGENT_STEPS: Final = 40
_HOLDS_AGENT_STEPS: Final = (2, 6, 12)
_NEWEST_ROOMS_SHARE: Final = 0.6
_ROOMS_BACK: Final = 0.35
_CANDIDATES: Final = 4

_AREA_POINTER: Final = 0x0750
_Y_PIXEL: Final = 0x00CE
_MAZE_PARTS: Final = (0x06D9, 0x06DA)
_TILES: Final = slice(0x0500, 0x06A0)
# A block that was hit, also one that nobody could see before; 8-4 has one that is a step.
_USED_BLOCK: Final = 0xC4
_MOST_USED_BLOCKS: Final = 2
_BUCKET_PIXELS: Final = 32
# The ground is at 0xB0: whoever is lower has fallen off it.
_FALLEN_Y: Final = 0xC0

_EVERY: Final = tuple(range(len(ACTION_SETS[ACTION_SET])))
_RIGHTWARD: Final = tuple(range(1, len(ACTION_SETS["right_only"])))
_FAVOURED: Final = (_RIGHTWARD, _RIGHTWARD, _RIGHTWARD, ())

Room = tuple[int, int]
Place = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """The actions to a place, as a chain of pieces that many ways share."""

    before: Way | None
    actions: tuple[int, ...]
    agent_steps: int

    def longer(self, actions: tuple[int, ...]) -> Way:
        return Way(self, actions, self.agent_steps + len(actions))

    def whole(self) -> tuple[int, ...]:
        pieces = []
        way: Way | None = self
        while way is not None:
            pieces.append(way.actions)
            way = way.before
        return tuple(action for piece in reversed(pieces) for action in piece)


@dataclass(slots=True)
class Cell:
    state: bytes
    way: Way
    visits: int = 0


@dataclass(slots=True)
class Archive:
    """Cells by place, and rooms (a page of an area) in the order of their discovery."""

    cells: dict[Place, Cell] = field(default_factory=dict)
    rooms: dict[Room, list[Place]] = field(default_factory=dict)
    room_order: list[Room] = field(default_factory=list)

    def offer(self, core: NativeCore, way: Way) -> None:
        """Keep the present state if its place is new or was reached more slowly."""
        place = place_of(core.ram)
        cell = self.cells.get(place)
        if cell is not None:
            if way.agent_steps < cell.way.agent_steps:
                cell.state, cell.way = core.snapshot(), way
            return
        self.cells[place] = Cell(core.snapshot(), way)
        room = (place[0], place[1] * _BUCKET_PIXELS // 256)
        if room not in self.rooms:
            self.rooms[room] = []
            self.room_order.append(room)
        self.rooms[room].append(place)

    def choose(self, generator: random.Random) -> Cell:
        """Mostly a room found lately; in it a cell that was tried less often than others."""
        if generator.random() < _NEWEST_ROOMS_SHARE:
            back = int(generator.expovariate(_ROOMS_BACK))
            room = self.room_order[-1 - min(back, len(self.room_order) - 1)]
        else:
            room = generator.choice(self.room_order)
        candidates = (generator.choice(self.rooms[room]) for _ in range(_CANDIDATES))
        return min((self.cells[place] for place in candidates), key=lambda cell: cell.visits)


def place_of(ram: memoryview[int]) -> Place:
    x = memory.x_position(ram) // _BUCKET_PIXELS
    y = ram[_Y_PIXEL] // _BUCKET_PIXELS
    used_blocks = min(bytes(ram[_TILES]).count(_USED_BLOCK), _MOST_USED_BLOCKS)
    maze = (ram[address] for address in _MAZE_PARTS)
    return (ram[_AREA_POINTER], x, y, ram[memory.Y_VIEWPORT], used_blocks, *maze)


class ClearSearch:
    """One search, for as long as `explore` is called; its first cell is the stage's first frame."""

    def __init__(self, stage: str, seed: int) -> None:
        self.stage = stage
        self.agent_steps = 0
        self._seed = seed
        self._generator = random.Random(f"{stage} {seed}")
        self._core = NativeCore()
        self._game = StageGame(self._core, stage)
        self._buttons = action_bytes(ACTION_SET)
        self.archive = Archive()
        self.archive.offer(self._core, Way(None, (), 0))

    def explore(self) -> Trace | None:
        """Play on from one cell for some agent steps; the trace if that ends at the flag."""
        cell = self.archive.choose(self._generator)
        cell.visits += 1
        self._core.restore(cell.state)
        actions: list[int] = []
        for action in islice(self._choices(), _ROLLOUT_AGENT_STEPS):
            played = self._game.play(self._buttons[action], FRAME_SKIP)
            self.agent_steps += 1
            actions.append(action)
            way = cell.way.longer(tuple(actions))
            if played.info["flag_get"] and self._is_same_stage():
                return self._trace(way)
            if played.is_over or not self._is_same_stage():
                return None
            if self._core.ram[_Y_PIXEL] < _FALLEN_Y:
                self.archive.offer(self._core, way)
        return None

    def _choices(self) -> Iterator[int]:
        return sticky(
            self._generator,
            _EVERY,
            favoured=self._generator.choice(_FAVOURED),
            longest_hold=self._generator.choice(_HOLDS_AGENT_STEPS),
        )

    def _is_same_stage(self) -> bool:
        """A warp zone leads into another stage, whose flag is not ours."""
        ram = self._core.ram
        return (memory.world(ram), memory.stage(ram)) == parse_stage(self.stage)

    def _trace(self, way: Way) -> Trace:
        return Trace(
            stage=self.stage,
            seed=self._seed,
            noop_frames=0,
            frame_skip=FRAME_SKIP,
            action_set=ACTION_SET,
            actions=way.whole(),
            final_ram_sha256=ram_checksum(self._core.ram),
        )
