from __future__ import annotations

import json
from pathlib import Path

import cv2
import pytest

from launch import plot
from launch.plot import main
from launch.plot_style import COLOURS


def write_run(folder: Path, name: str, height: float) -> str:
    run = folder / name
    run.mkdir()
    metrics = [
        {
            "global_step": step,
            "run_time_s": step / 10,
            "avg_return": height,
            "env_mean_x_pos": 10 * height,
            "env_steps_per_sec": 10.0,
            "updates_per_sec": 1.0,
        }
        for step in range(0, 1_000, 100)
    ]
    evaluations = [
        {
            "stage": "1-1",
            "global_step": step,
            "clear_rate": 0.5,
            "clear_rate_low": 0.4,
            "clear_rate_high": 0.6,
            "x_p10": 1.0,
            "x_p50": height,
            "x_p90": 9.0,
        }
        for step in (200, 600)
    ]
    for file, lines in (("metrics.jsonl", metrics), ("eval.jsonl", evaluations)):
        (run / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(run)


@pytest.fixture
def seeds(tmp_path: Path) -> list[str]:
    return [write_run(tmp_path, f"seed{number}", float(number)) for number in (1, 2, 3)]


def test_by_default_the_background_is_clear(seeds: list[str], tmp_path: Path) -> None:
    output = tmp_path / "curves.png"

    assert main([*seeds, "-o", str(output)]) == 0

    picture = cv2.imread(str(output), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    assert picture.shape == (1100, 1320, 4)
    assert picture[2, 2, 3] == 0
    assert picture[..., 3].max() == 255


@pytest.mark.parametrize(("theme", "paper"), [("light", 255), ("dark", 13)])
def test_a_theme_has_its_own_paper(
    seeds: list[str], tmp_path: Path, theme: str, paper: int
) -> None:
    output = tmp_path / "curves.png"

    assert main([*seeds, "--theme", theme, "--x", "minutes", "-o", str(output)]) == 0

    picture = cv2.imread(str(output))
    assert picture is not None
    assert int(picture[2, 2, 2]) == paper


def test_seeds_of_a_group_share_a_colour_and_a_band(seeds: list[str], tmp_path: Path) -> None:
    output = tmp_path / "curves.svg"

    code = main([seeds[0], "--group", "new=" + ",".join(seeds), "-o", str(output)])

    text = output.read_text()
    assert code == 0
    assert "new, 3 seeds" in text
    assert ">seed1<" in text
    assert COLOURS[0] in text
    assert COLOURS[1] in text
    assert COLOURS[2] not in text


def luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [*COLOURS, "#768390"])
def test_every_colour_can_be_told_from_white_and_from_black(colour: str) -> None:
    """Contrast of at least 3, which WCAG asks of graphics."""
    assert 1.05 / (luminance(colour) + 0.05) >= 3
    assert (luminance(colour) + 0.05) / (luminance("#0d1117") + 0.05) >= 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "which runs?"),
        (["RUN", "--x", "hours"], "--x must be steps or minutes"),
        (["RUN", "-o", "curves.bmp"], "--output must end in .png or .svg"),
        (["--group", "RUN"], "--group must be NAME=RUN"),
        (["--group", "new="], "--group must be NAME=RUN"),
        (["--group", "new=nowhere"], "nowhere holds no metrics.jsonl"),
        (["RUN", "-o", "no/such/folder/curves.png"], "cannot write"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    seeds: list[str], words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main([seeds[0] if word == "RUN" else word for word in words])
    except SystemExit as error:
        code = int(str(error.code))

    said = capsys.readouterr().err
    assert code == 2
    assert expected in said
    assert said.count("\n") == 1


def test_a_line_that_lacks_its_place_is_left_out(seeds: list[str], tmp_path: Path) -> None:
    with (Path(seeds[0]) / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"avg_return": 3.0}\n{"global_step": null, "run_time_s": 1.0}\n')

    for axis in ("steps", "minutes"):
        assert main([seeds[0], "--x", axis, "-o", str(tmp_path / "curves.svg")]) == 0


def test_a_run_without_one_usable_line_is_refused(
    seeds: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(seeds[0]) / "metrics.jsonl").write_text('{"avg_return": 3.0}\n', encoding="utf-8")

    assert main([seeds[0]]) == 2
    assert "lines that tell global_step and run_time_s" in capsys.readouterr().err


def test_ctrl_c_ends_it_without_a_word(
    seeds: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(plot, "draw", interrupted)

    assert main(seeds) == 130
    assert capsys.readouterr() == ("", "")
