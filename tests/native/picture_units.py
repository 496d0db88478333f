"""The reference picture unit and two native ones, driven alike and compared."""

from __future__ import annotations

import random

import numpy as np

from actor.env.native._console import Console
from tests.native.console_trio import differing, picture_of, ppu_fields, reference_picture
from tests.native.picture_scenes import Access, write_scene
from tests.native.reference_console import ReferenceConsole
from tests.native.reference_ppu import DOTS_PER_LINE, LAST_LINE
from tests.native.synthetic_cartridge import cartridge, random_chr


class PictureUnits:
    """The reference, a console that draws as much as it can at once, and one in small pieces."""

    def __init__(self, dice: random.Random, rom: bytes | None = None) -> None:
        self._dice = dice
        rom = rom or cartridge(b"", random_chr(dice), is_vertical=dice.random() < 0.5)
        self.reference = ReferenceConsole(rom).ppu
        self.at_once, self.in_pieces = Console(rom), Console(rom)

    def write(self, register: int, value: int) -> None:
        self.reference.write(register, value)
        self.at_once.write_ppu(register, value)
        self.in_pieces.write_ppu(register, value)

    def read(self, register: int) -> None:
        expected = self.reference.read(register)
        got = self.at_once.read_ppu(register), self.in_pieces.read_ppu(register)
        assert got == (expected, expected), f"register {register} at {self.reference.state()}"

    def run(self, dots: int) -> None:
        self.reference.run(dots)
        self.at_once.run_ppu(dots)
        while dots:
            piece = min(dots, self._dice.choice((1, 2, 3, self._dice.randrange(1, 700))))
            self.in_pieces.run_ppu(piece)
            dots -= piece

    def perform(self, access: Access) -> None:
        self.run(access.dots_before)
        if access.value is None:
            self.read(access.register)
        else:
            self.write(access.register, access.value)

    def run_to_the_frames_end(self) -> None:
        frame = self.reference.is_even_frame
        while self.reference.is_even_frame == frame:
            here = self.reference
            self.run(DOTS_PER_LINE * (LAST_LINE + 1 - here.line) + 1 - here.dot)

    def check_state(self, moment: str) -> None:
        expected = ppu_fields(self.reference.state())
        for name, console in self._consoles():
            assert ppu_fields(console.ppu_state()) == expected, f"{name}, {moment}"

    def check_memory(self, moment: str) -> None:
        for name, console in self._consoles():
            memory = differing("memory", self.reference.video_memory(), console.video_memory())
            assert memory == [], f"{name}, {moment}"

    def check_all(self, moment: str) -> None:
        self.check_state(moment)
        self.check_memory(moment)
        picture = reference_picture(self.reference)
        for name, console in self._consoles():
            wrong = np.argwhere(picture_of(console) != picture)
            assert len(wrong) == 0, f"{name}, {moment}: {len(wrong)} pixels, (y, x) {wrong[:3]}"

    def _consoles(self) -> tuple[tuple[str, Console], ...]:
        return ("at once", self.at_once), ("in pieces", self.in_pieces)


def units_with_a_scene(seed: int | str) -> tuple[PictureUnits, random.Random]:
    dice = random.Random(seed)
    units = PictureUnits(dice)
    write_scene(units.write, dice)
    return units, dice
