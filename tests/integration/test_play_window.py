"""`launch/play.py --window` on a display that nobody sees: Xvfb, whose picture lies in a file."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from common.film_pictures import FILM_HEIGHT, FILM_WIDTH
from launch.play_window import Window, as_ppm, in_window
from tests.processes import end, run, start
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

XVFB = Path("/usr/bin/Xvfb")
MODEL = "docs/models/1-1"
needs_display = pytest.mark.skipif(
    not XVFB.exists() or find_spec("_tkinter") is None,
    reason="needs Xvfb and a Python with Tk: apt-get install xvfb python3-tk",
)


@contextmanager
def hidden_display(folder: Path) -> Iterator[str]:
    """Its name for DISPLAY."""
    reading, writing = os.pipe()
    words = ("-displayfd", str(writing), "-screen", "0", "1024x768x24", "-fbdir", str(folder))
    server = subprocess.Popen(
        [str(XVFB), *words, "-nolisten", "tcp"], pass_fds=(writing,), stderr=subprocess.DEVNULL
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as told:
            yield f":{told.readline().strip()}"
    finally:
        server.terminate()
        server.wait(10)


def screen_of(folder: Path) -> NDArray[np.uint32]:
    """UInt32[height, width], from the XWD file that is the server's memory."""
    content = (folder / "Xvfb_screen0").read_bytes()
    header = struct.unpack(">25I", content[:100])
    height, line_bytes, colours = header[5], header[12], header[19]
    begin = header[0] + 12 * colours
    pixels = np.frombuffer(content, dtype=np.uint32, count=height * line_bytes // 4, offset=begin)
    return pixels.reshape(height, line_bytes // 4)


def game_in(screen: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Without a window manager a window is at the upper left; the game is its left part."""
    return screen[:FILM_HEIGHT, : FILM_HEIGHT * 256 // 240]


@needs_display
def test_the_game_is_seen_in_a_window_and_told_at_its_end(tmp_path: Path) -> None:
    with hidden_display(tmp_path) as display:
        words = ("launch/play.py", MODEL, "--window", "--episodes", "1", "--speed", "4")
        process = start(*words, env={"DISPLAY": display})
        try:
            wait_until("the game", lambda: len(np.unique(game_in(screen_of(tmp_path)))) > 5)
            before = screen_of(tmp_path)
            game = game_in(before)
            wait_until("it moves", lambda: bool(np.any(game_in(screen_of(tmp_path)) != game)))
            output, _ = process.communicate(timeout=60)
        finally:
            end(process)

    changed = np.argwhere(before != before[-1, -1])
    assert process.returncode == 0
    assert re.search(r"1-1 after \d+ frames: flag in \d+\.\d s", output)
    # As large as a film, and a line of notes below.
    height, width = np.ptp(changed, axis=0) + 1
    assert (FILM_HEIGHT < height < FILM_HEIGHT + 60, width) == (True, FILM_WIDTH)


@needs_display
def test_keys_and_closing_are_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hidden_display(tmp_path) as display:
        monkeypatch.setenv("DISPLAY", display)
        with in_window() as window:
            assert isinstance(window, Window)
            root = window._root
            root.focus_force()
            root.update()
            for key in ("Right", "x", "space"):
                root.event_generate(f"<Key-{key}>")
            pressed = window.keys(wait_s=5.0)
            root.tk.call(*root.protocol("WM_DELETE_WINDOW").split())

            assert pressed == ["right", "x", "space"]
            assert window.keys() == ["q"]


def test_without_a_display_it_is_refused_in_one_line() -> None:
    code, output = run("launch/play.py", MODEL, "--window", env={"DISPLAY": ""})

    assert code == 2
    assert "use --video FILE.mp4" in output
    assert output.count("\n") == 1


def test_a_python_without_tk_says_so(tmp_path: Path) -> None:
    (tmp_path / "tkinter.py").write_text("raise ImportError('No module named _tkinter')")

    path = os.pathsep.join([str(tmp_path), *sys.path])
    code, output = run("launch/play.py", MODEL, "--window", env={"PYTHONPATH": path})

    assert code == 2
    assert "this Python has no Tk (No module named _tkinter); leave out --window" in output


def test_pixels_are_told_in_rows_of_red_green_blue() -> None:
    picture = np.arange(12, dtype=np.uint8).reshape(1, 4, 3)

    assert as_ppm(picture) == b"P6 4 1 255\n" + bytes(range(12))
