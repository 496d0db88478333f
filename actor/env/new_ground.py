"""How far an episode has come: ground that was new, counted through pipes, warps and mazes.

Nothing here knows a stage. An area is named by the address of its map; in it only ground beyond
the farthest point so far counts, so a maze that sends Mario back pays nothing twice.
"""

from __future__ import annotations

import copy
from typing import Final

from actor.env import ram as memory
from actor.env.ram import AreaKey, Ram

# The game sends Mario back by four pages; walking never moves him by more than a few pixels.
_LOOP_BACK_PIXELS: Final = 3 * 0x100
# More than this between two looks is a pipe, a vine or a warp: a new place, not distance.
_LEAP_PIXELS: Final = 0x80


class NewGround:
    """The ground of one episode; call `note` after every agent step with the console's RAM."""

    def __init__(self, ram: Ram) -> None:
        self.distance_pixels = 0
        """Of new ground so far."""
        self.loop_backs = 0
        """How often a maze sent Mario back."""
        self._area: AreaKey = memory.area_key(ram)
        self._x = memory.x_position(ram)
        self._farthest = {self._area: self._x}

    @property
    def area(self) -> int:
        """The address of the map that Mario is on."""
        return self._area[-1]

    def copy(self) -> NewGround:
        twin = copy.copy(self)
        twin._farthest = dict(self._farthest)
        return twin

    def note(self, ram: Ram) -> bool:
        """Whether there was anything new: ground, or an area not seen in this episode."""
        area, x = memory.area_key(ram), memory.x_position(ram)
        if area != self._area or abs(x - self._x) > _LEAP_PIXELS:
            is_new = area not in self._farthest
            self.loop_backs += area == self._area and self._x - x >= _LOOP_BACK_PIXELS
            self._farthest[area] = max(self._farthest.get(area, x), x)
        else:
            gained = x - self._farthest[area]
            is_new = gained > 0
            if is_new:
                self.distance_pixels += gained
                self._farthest[area] = x
        self._area, self._x = area, x
        return is_new
