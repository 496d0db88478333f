"""The evaluator as a process, with the shipped model as the newest checkpoint of its run."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from safetensors.torch import load_file

from common.film_pictures import FILM_HEIGHT, FILM_WIDTH
from common.jsonl import read_jsonl
from tests.checkpoint_factory import write_playable_checkpoint
from tests.film_reading import read_film
from tests.processes import ROOT, end, start
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

MODEL = ROOT / "docs/models/1-1"
AGENT_STEPS = 800_032


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    (network,) = MODEL.glob("checkpoints/*/network.safetensors")
    checkpoints = tmp_path / "filmed" / "checkpoints"
    write_playable_checkpoint(checkpoints, AGENT_STEPS, load_file(network), updates=1)
    return tmp_path / "filmed"


def test_an_evaluation_leaves_films_contact_sheets_and_the_level(run_folder: Path) -> None:
    words = ("-m", "actor", "--evaluate", "--config", str(MODEL / "config.json"))
    place = ("--runs-dir", str(run_folder.parent), "--run", run_folder.name)
    process = start(*words, *place, "--core", "native", "--eval-episodes", "3")
    videos, level = run_folder / "videos", run_folder / "maps" / "1-1.json"
    try:
        wait_until("films and the level", level.exists, 90)
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=20)
    finally:
        end(process)

    ends = ("best.mp4", "best.png", "worst.mp4", "worst.png")
    names = sorted(path.name for path in videos.iterdir())
    assert code == 143
    assert names == [f"eval-{AGENT_STEPS:011}-{end}" for end in ends]
    (evaluated,) = read_jsonl(run_folder / "eval.jsonl")
    film = read_film(videos / names[0])
    assert film.pictures[0].shape == (FILM_HEIGHT, FILM_WIDTH, 3)
    assert evaluated["clears"] == 3
    facts = json.loads(level.read_text())
    assert facts["covered"] == [[0, facts["width"]]]
    assert facts["width"] > 3_100
