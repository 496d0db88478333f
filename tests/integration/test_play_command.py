"""`launch/play.py` as a person uses it: in a terminal, with films, with keys."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from common.film_pictures import FILM_HEIGHT, FILM_WIDTH
from launch.half_blocks import UPPER_HALF
from launch.terminal import ENTER, LEAVE
from tests.film_reading import read_film
from tests.processes import run
from tests.pseudo_terminal import in_terminal

pytestmark = pytest.mark.integration

PLAY = "launch/play.py"
MODEL = "docs/models/1-1"
SHORT = ("--episodes", "1", "--speed", "50")


def test_a_trained_agent_is_watched_to_the_flag() -> None:
    with in_terminal(PLAY, MODEL, *SHORT) as terminal:
        code = terminal.wait()
        settings = terminal.settings()

    assert code == 0
    drawn, _, after = terminal.output.partition(LEAVE)
    assert drawn.startswith(ENTER)
    assert UPPER_HALF in drawn
    assert "stage 1-1" in drawn
    assert "right+A+B" in drawn
    assert re.fullmatch(r"1-1 after \d+ frames: flag in \d+\.\d s", after.strip())
    assert settings == terminal.before


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (None, 0)]
)
def test_however_it_ends_the_terminal_is_given_back(
    number: signal.Signals | None, code: int
) -> None:
    with in_terminal(PLAY, MODEL) as terminal:
        terminal.read_until("stage 1-1")
        changed = terminal.settings()
        if number is None:
            terminal.type("q")
        else:
            terminal.process.send_signal(number)
        ended = terminal.wait()
        restored = terminal.settings()

    assert ended == code
    assert changed != terminal.before
    assert restored == terminal.before
    assert LEAVE in terminal.output
    assert "Traceback" not in terminal.output


def test_a_person_plays_and_is_compared_with_the_agent() -> None:
    with in_terminal(PLAY, MODEL, *SHORT, "--human") as terminal:
        terminal.read_until("run: on, off")
        terminal.type("x\x1b[C")  # running into the first enemy
        code = terminal.wait()

    told = terminal.output.partition(LEAVE)[2].strip().splitlines()
    assert code == 0
    assert "right+B" in terminal.output
    assert re.fullmatch(
        r"1-1 after .* frames: lost at x 3\d\d .*; the agent: flag in .* s", told[0]
    )
    assert told[1] == "you were better in 0 of 1"


def test_a_film_of_the_agent(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"

    code, output = run(PLAY, MODEL, "--episodes", "1", "--video", str(film))

    read = read_film(film)
    assert code == 0, output
    assert f"wrote {film}" in output
    seconds = float(re.findall(r"flag in ([\d.]+) s", output)[0])
    assert read.codec == "h264"
    # The start, an agent step per picture, and the end held for a second.
    assert len(read.pictures) == pytest.approx(seconds * 15 + 1 + 15, abs=2)
    assert read.pictures[0].shape == (FILM_HEIGHT, FILM_WIDTH, 3)
    assert film.stat().st_size < 2_000_000
    assert film.with_suffix(".png").stat().st_size > 10_000


def test_a_gif_is_as_small_as_a_page_needs_it(tmp_path: Path) -> None:
    film = tmp_path / "film.gif"

    code, output = run(PLAY, MODEL, "--episodes", "1", "--speed", "2", "--video", str(film))

    assert code == 0, output
    assert film.stat().st_size < 2_000_000
    assert len(read_film(film).pictures) > 200


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "which network?"),
        (("no/such/run", "--video", "a.mp4"), "does not exist"),
        ((MODEL,), "use --video FILE.mp4"),
        ((MODEL, "--human"), "use --video FILE.mp4"),
        ((MODEL, "--video", "film.avi"), "--video must end in .mp4 or .gif"),
        ((MODEL, "--video", "no/such/folder/film.mp4"), "a folder that exists"),
        ((MODEL, "--video", "a.gif", "--speed", "10"), "lower --speed"),
        ((MODEL, "--stage", "9-9"), "unknown stage"),
        ((MODEL, "--episodes", "0"), "--episodes must be"),
        ((MODEL, "--speed", "0"), "--speed must be"),
        ((MODEL, "--human", "--video", "a.mp4"), "contradict"),
        ((MODEL, "--window", "--video", "a.mp4"), "contradict"),
    ],
)
def test_wrong_words_are_refused_in_one_line(words: tuple[str, ...], expected: str) -> None:
    code, output = run(PLAY, *words)

    assert code == 2
    assert expected in output
    assert output.count("\n") == 1


def test_a_terminal_that_is_too_small_is_told() -> None:
    with in_terminal(PLAY, MODEL, columns=30, rows=10) as terminal:
        code = terminal.wait()

    assert code == 2
    assert "at least 40 x 16 characters, got 30 x 10" in terminal.output
