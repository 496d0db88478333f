from __future__ import annotations

import os
from pathlib import Path

from common.video_folder import film_name, prune_films


def write_films(folder: Path, agent_steps: int, written_s: int) -> None:
    for which in ("best", "worst"):
        for suffix in (".mp4", ".png"):
            path = folder / (film_name(agent_steps, which) + suffix)
            path.write_bytes(b"film")
            os.utime(path, (written_s, written_s))


def evaluations(folder: Path) -> set[str]:
    return {path.name.split("-")[1] for path in folder.glob("eval-*")}


def test_the_newest_evaluations_stay_also_after_going_back(tmp_path: Path) -> None:
    for written_s, agent_steps in enumerate((100, 200, 300, 150)):
        write_films(tmp_path, agent_steps, 1_000 + written_s)

    prune_films(tmp_path, 2)

    assert evaluations(tmp_path) == {"00000000300", "00000000150"}
    assert len(list(tmp_path.iterdir())) == 8


def test_only_films_are_removed_and_what_a_killed_writer_left(tmp_path: Path) -> None:
    for name in ("mine.mp4", "eval-best.mp4", "eval-1-best.mp4", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / ".tmp-eval-00000000100-best.mp4-77-abcd").touch()

    prune_films(tmp_path, 0)

    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["eval-1-best.mp4", "eval-best.mp4", "mine.mp4", "notes.txt"]


def test_a_folder_that_is_not_there_is_no_matter(tmp_path: Path) -> None:
    prune_films(tmp_path / "videos", 3)
