"""The extension as Python sees it: arguments, memory, threads; with a program that counts."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from actor.env.native import _console
from actor.env.native._console import STATE_BYTES, Console, step_all
from tests.native.synthetic_cartridge import CHR_BYTES, cartridge

_COUNT_FOR_EVER = bytes((0xE6, 0x10, 0x4C, 0x00, 0xC0))  # INC $10, JMP $C000
_VECTORS = (0xC000, 0xC000, 0xC000)
IMAGE = cartridge(_COUNT_FOR_EVER, bytes(CHR_BYTES), vectors=_VECTORS)


@pytest.fixture
def console() -> Console:
    return Console(IMAGE)


Case = tuple[Callable[[Any], object], type[Exception], str]
WRONG: dict[str, Case] = {
    "no buttons": (lambda c: c.step(), TypeError, "step() needs the argument 'buttons'"),
    "too many": (lambda c: c.step(0, 1, 0, 0), TypeError, "at most 3 arguments, got 4"),
    "twice": (lambda c: c.step(0, buttons=1), TypeError, "got 'buttons' twice"),
    "unknown": (lambda c: c.step(0, button=1), TypeError, "unexpected keyword argument 'button'"),
    "buttons": (lambda c: c.step(256), ValueError, "buttons must be from 0 to 255, got 256"),
    "negative": (lambda c: c.step(-1), ValueError, "buttons must be from 0 to 255, got -1"),
    "huge": (lambda c: c.step(2**70), ValueError, "buttons must be from 0 to 255, got 1180"),
    "float": (lambda c: c.step(1.0), TypeError, "float"),
    "frames": (lambda c: c.step(0, 0), ValueError, "frames must be from 1 to 1000000, got 0"),
    "look": (lambda c: c.step(0, 1, 3), ValueError, "look must be from 0 to 2, got 3"),
    "no buffer": (lambda c: c.rgb(None), TypeError, "bytes-like"),
    "read only": (lambda c: c.colours(bytes(61_440)), ValueError, "out must be contiguous bytes"),
    "colours": (lambda c: c.colours(bytearray(9)), ValueError, "must have 61440 items of 1 byte"),
    "rgb": (lambda c: c.rgb(bytearray(61_440)), ValueError, "must have 184320 items of 1 byte"),
    "gray": (lambda c: c.gray(bytearray(9), 2, 2), ValueError, "must have 4 items of 1 byte"),
    "height": (lambda c: c.gray(bytearray(9), 0, 2), ValueError, "height must be from 1 to 240"),
    "width": (lambda c: c.gray(bytearray(9), 1, 257), ValueError, "width must be from 1 to 256"),
    "crop": (lambda c: c.gray(bytearray(1), 1, 1, 240), ValueError, "crop_top must be from 0"),
    "enlarge": (lambda c: c.gray(bytearray(9), 9, 1, 232), ValueError, "cannot become"),
    "strided": (
        lambda c: c.gray(np.zeros((4, 4), np.uint8)[:, ::2], 4, 2),
        ValueError,
        "out must be contiguous bytes that can be written",
    ),
    "wide items": (lambda c: c.gray(np.zeros(2, np.int16), 2, 2), ValueError, "in items of 2"),
    "state": (lambda c: c.load(b"short"), ValueError, "not a save state"),
    "no state": (lambda c: c.load(7), TypeError, "bytes-like"),
    "register": (lambda c: c.read_ppu(8), ValueError, "register must be from 0 to 7, got 8"),
    "value": (lambda c: c.write_ppu(0, 256), ValueError, "value must be from 0 to 255, got 256"),
    "cycles": (lambda c: c.run_cycles(-1), ValueError, "cycles must be from 0"),
    "dots": (lambda c: c.run_ppu(-1), ValueError, "dots must be from 0"),
    "delete": (lambda c: delattr(c, "plain"), TypeError, "plain cannot be deleted"),
    "attribute": (lambda c: setattr(c, "speed", 2), AttributeError, "speed"),
    "missing": (lambda c: type(c)(), TypeError, "exactly 1 positional"),
    "text": (lambda c: type(c)("x"), TypeError, "bytes-like"),
    "fewer": (lambda c: step_all([c], b"", 1), ValueError, "one byte for each of 1 consoles"),
    "stranger": (lambda c: step_all((c, c.ram), b"12", 1), TypeError, "only Console objects"),
    "pair": (lambda c: step_all([c, c], b"12", 1), RuntimeError, "or given twice"),
}


@pytest.mark.parametrize(("call", "error", "words"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_refused_and_the_console_lives_on(
    console: Console, call: Callable[[Console], object], error: type[Exception], words: str
) -> None:
    before = console.save()

    with pytest.raises(error, match=re.escape(words)):
        call(console)

    assert console.save() == before
    console.step(0)


def test_arguments_by_name_mean_the_same(console: Console) -> None:
    other = Console(IMAGE)

    console.step(3, 2, _console.GRAY)
    other.step(look=_console.GRAY, frames=2, buttons=3)
    small, same = np.zeros((3, 5), np.uint8), bytearray(15)
    console.step(1, 3)
    other.step(1, frames=3)
    console.gray(small, 3, 5, 10)
    other.gray(crop_top=10, width=5, height=3, out=same)
    other.load(keep_controllers=False, state=other.save())

    assert console.save() == other.save()
    assert small.tobytes() == bytes(same)


def test_buffers_are_given_back(console: Console) -> None:
    picture, state = bytearray(4), bytearray(console.save())

    console.gray(picture, 2, 2)
    console.load(state)
    with pytest.raises(ValueError, match="must have 9 items"):
        console.gray(picture, 3, 3)

    # A bytearray cannot change its length while somebody holds its memory.
    picture.clear()
    state.clear()


def test_numbers_of_the_module() -> None:
    assert (_console.NOTHING, _console.GRAY, _console.COLOUR) == (0, 1, 2)
    assert _console.FRAME_CYCLES == 29_781
    assert len(Console(IMAGE).save()) == STATE_BYTES


def test_ram_is_live_writable_and_keeps_its_console(console: Console) -> None:
    ram = console.ram

    console.step(0)
    counted = ram[0x10]
    ram[0x10] = 77
    state_with_poke = console.save()
    del console
    gc.collect()

    assert counted > 0
    assert ram[0x10] == 77
    assert (ram.nbytes, ram.format, ram.readonly) == (2048, "B", False)
    other = Console(IMAGE)
    other.load(state_with_poke)
    assert other.ram[0x10] == 77


def test_nothing_is_leaked(console: Console) -> None:
    def use() -> None:
        made = Console(IMAGE)
        made.ram[0] = 1
        made.load(made.save())
        step_all([made, console], b"\0\0", 1)
        for wrong in (lambda: Console(b""), lambda: made.load(b""), lambda: made.step(-1)):
            with pytest.raises(ValueError, match=r"too short|not a save state|from 0 to 255"):
                wrong()

    use()
    before = (sys.getrefcount(console), sys.getrefcount(Console))
    for _ in range(50):
        use()

    assert (sys.getrefcount(console), sys.getrefcount(Console)) == before


def _run_long(console: Console) -> threading.Thread:
    """Returns when the console is really running in the other thread."""
    thread = threading.Thread(target=lambda: console.step(0, 10_000, _console.NOTHING))
    thread.start()
    while thread.is_alive():
        try:
            console.save()
        except RuntimeError:
            return thread
    raise AssertionError("the interpreter's lock was not released while the console ran")


def test_a_console_that_another_thread_runs_is_refused(console: Console) -> None:
    state, other = console.save(), Console(IMAGE)
    thread = _run_long(console)
    refused = 0
    calls: list[Callable[[], object]] = [
        lambda: console.step(0),
        lambda: console.load(state),
        lambda: console.gray(bytearray(1), 1, 1),
        lambda: console.rgb(bytearray(184_320)),
        lambda: step_all([other, console], b"\0\0", 1),
        lambda: setattr(console, "plain", True),
        console.power_on,
        console.frame_hash,
        console.registers,
        console.video_memory,
    ]

    for call in calls:
        with pytest.raises(RuntimeError, match="thread"):
            call()
        refused += thread.is_alive()
    thread.join()

    assert refused == len(calls), "the console stopped before all calls were made"
    for call in calls:
        call()


def test_stepping_many_equals_stepping_each() -> None:
    many, single = ([Console(IMAGE) for _ in range(3)] for _ in range(2))
    for place, console in enumerate((*many, *single)):
        console.ram[0x10] = place % 3

    step_all(many, b"\x01\x02\x03", 4, _console.GRAY)
    for console, buttons in zip(single, (1, 2, 3), strict=True):
        console.step(buttons, 4, _console.GRAY)

    assert [console.save() for console in many] == [console.save() for console in single]
    step_all([], b"", 1)
