from __future__ import annotations

import logging
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import cv2
import pytest
import torch

from actor.env.corridor import CorridorEnv
from actor.episode_player import EpisodePlayer
from actor.film_crew import HELD_PICTURES, FilmCrew, choose_takes
from common.evaluation import EpisodeResult, EpisodeTask
from common.film_pictures import FILM_HEIGHT, FILM_WIDTH
from common.films import Mp4Film
from common.networks import build_network
from common.specs import DataSpec
from tests.film_reading import read_film
from tests.small_disk import small_disk_at

SPEC = DataSpec(height=16, width=16, stack=4, num_actions=3, n_step=2)
TASK = EpisodeTask(stage="1-1", episode=0, seed=1, noop_frames=0)
STEPS = 130


@pytest.fixture
def player() -> EpisodePlayer:
    torch.manual_seed(3)
    network = build_network("small", SPEC, 2).eval()
    return EpisodePlayer(CorridorEnv(), network, SPEC, epsilon=0.0)


def make_crew(player: EpisodePlayer, folder: Path, keep: int = 3) -> FilmCrew:
    return FilmCrew(player, videos=folder / "videos", maps=folder / "maps", keep=keep, frame_skip=4)


def results(player: EpisodePlayer) -> list[EpisodeResult]:
    """Two episodes that are told apart by their starts; the corridor plays both alike."""
    first = player.play(TASK).result
    return [first, replace(first, noop_frames=5, distance=first.distance + 1)]


def work(crew: FilmCrew) -> None:
    for _ in range(1_000):
        if not crew.is_busy:
            return
        crew.advance(3)
    pytest.fail("the crew never ends")


def test_best_and_worst_are_filmed_with_their_contact_sheets(
    player: EpisodePlayer, tmp_path: Path
) -> None:
    played, crew = results(player), make_crew(player, tmp_path)

    crew.begin(played, STEPS)
    work(crew)

    names = sorted(path.name for path in (tmp_path / "videos").iterdir())
    stem = "eval-00000000130"
    assert names == [f"{stem}-{end}" for end in ("best.mp4", "best.png", "worst.mp4", "worst.png")]
    film = read_film(tmp_path / "videos" / f"{stem}-best.mp4")
    # The first picture shows the start, before any action.
    assert len(film.pictures) == 1 + played[0].agent_steps + HELD_PICTURES
    assert film.codec == "h264"
    assert film.pictures_per_s == 15.0
    assert film.pictures[0].shape == (FILM_HEIGHT, FILM_WIDTH, 3)
    assert cv2.imread(str(tmp_path / "videos" / f"{stem}-best.png")) is not None
    assert crew.films == 2


def test_the_episode_that_saw_most_of_a_level_is_looked_at_once_whatever_its_worth(
    player: EpisodePlayer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, crew, begin = results(player), make_crew(player, tmp_path), player.begin
    farthest = replace(played[0], noop_frames=9, max_x=played[0].max_x + 100)
    begun: list[int] = []

    def note(task: EpisodeTask) -> None:
        begun.append(task.noop_frames)
        begin(task)

    monkeypatch.setattr(player, "begin", note)
    for steps in (STEPS, STEPS + 1):
        crew.begin([*played, farthest], steps)
        work(crew)

    assert begun == [5, 0, 9, 5, 0]
    assert crew.films == 4


def test_only_the_films_of_the_newest_evaluations_stay(
    player: EpisodePlayer, tmp_path: Path
) -> None:
    played, crew = results(player), make_crew(player, tmp_path, keep=2)

    for steps in (100, 200, 300):
        crew.begin(played, steps)
        work(crew)

    kept = {path.name.split("-")[1] for path in (tmp_path / "videos").iterdir()}
    assert kept == {"00000000200", "00000000300"}


def test_a_full_disk_costs_the_films_only(
    player: EpisodePlayer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = results(player)
    with small_disk_at(tmp_path, 8_192), caplog.at_level(logging.WARNING):
        crew = make_crew(player, tmp_path)
        crew.begin(played, STEPS)
        work(crew)

        assert crew.films == 0
        assert list((tmp_path / "videos").glob(".tmp-*")) == []
    assert {record.getMessage() for record in caplog.records} == {"film not written"}


def test_an_encoder_that_fails_costs_the_film_only(
    player: EpisodePlayer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    odd = Mp4Film(pictures_per_s=Fraction(15), height=33, width=47)
    crew = make_crew(player, tmp_path)
    monkeypatch.setattr(crew, "_new_film", lambda: odd)

    with caplog.at_level(logging.WARNING):
        crew.begin(results(player)[:1], STEPS)
        work(crew)

    assert [record.getMessage() for record in caplog.records] == ["film not written"]
    assert not (tmp_path / "videos").exists()


def test_without_the_extra_one_line_is_said_and_nothing_is_filmed(
    player: EpisodePlayer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with caplog.at_level(logging.WARNING):
        crew = make_crew(player, tmp_path)
        for steps in (100, 200):
            crew.begin(results(player), steps)
            work(crew)

    assert [record.getMessage() for record in caplog.records] == ["evaluations are not filmed"]
    assert not (tmp_path / "videos").exists()


def result(noop_frames: int, *, cleared: bool, distance: int, seconds: float) -> EpisodeResult:
    return EpisodeResult(
        stage="1-1",
        episode=0,
        seed=1,
        noop_frames=noop_frames,
        cleared=cleared,
        truncated=False,
        agent_steps=10,
        episode_return=1.0,
        max_x=distance,
        distance=distance,
        seconds=seconds,
    )


def test_the_fastest_clear_is_the_best_and_the_shortest_way_the_worst() -> None:
    played = [
        result(1, cleared=True, distance=3_000, seconds=30.0),
        result(2, cleared=True, distance=2_990, seconds=20.0),
        result(3, cleared=False, distance=700, seconds=9.0),
        result(4, cleared=False, distance=900, seconds=5.0),
    ]

    takes = choose_takes(played, 7)

    assert [(take.name, take.result.noop_frames) for take in takes] == [
        ("eval-00000000007-best", 2),
        ("eval-00000000007-worst", 3),
    ]


def test_one_that_is_both_is_filmed_once() -> None:
    takes = choose_takes([result(1, cleared=True, distance=3_000, seconds=30.0)], 7)

    assert [take.name for take in takes] == ["eval-00000000007-best"]
