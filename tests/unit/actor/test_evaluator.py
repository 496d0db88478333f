from __future__ import annotations

from pathlib import Path

import pytest
import torch

from actor.env.corridor import JUMP, STAY, CorridorEnv
from actor.episode_player import EpisodePlayer
from actor.evaluator import Evaluator, EvaluatorParts, best_merit, due_checkpoint
from actor.film_crew import HELD_PICTURES, FilmCrew
from common.evaluation import EvaluationPlan
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import Incarnation
from common.jsonl import read_jsonl
from common.networks import QuantileNetwork, build_network
from common.resume import BEST_NAME, EVALUATING_NAME, read_pointer
from common.specs import DataSpec
from common.state_dicts import plain_state_dict
from common.trace_log import TraceLog
from learner.checkpoint import prune_checkpoints
from tests.checkpoint_factory import damage, write_playable_checkpoint
from tests.film_reading import read_film

SPEC = DataSpec(height=16, width=16, stack=4, num_actions=3, n_step=2)
IDENTITY = Identity(run_id="tiny", role="evaluator", index=0, incarnation=Incarnation(1))


@pytest.fixture(scope="module")
def network() -> QuantileNetwork:
    return build_network("small", SPEC, 2).eval()


def make_evaluator(folder: Path, network: QuantileNetwork, *, is_filmed: bool = False) -> Evaluator:
    (folder / "checkpoints").mkdir(exist_ok=True)
    player = EpisodePlayer(CorridorEnv(), network, SPEC, epsilon=0.0)
    videos, maps = folder / "videos", folder / "maps"
    return Evaluator(
        EvaluatorParts(
            peer="evaluator-0",
            player=player,
            crew=FilmCrew(player, videos=videos, maps=maps, keep=2, frame_skip=4)
            if is_filmed
            else None,
            network=network,
            plan=EvaluationPlan(stages=("1-1",), episodes=6, noop_max=0),
            interval_agent_steps=100,
            checkpoints=folder / "checkpoints",
            results=folder / "eval.jsonl",
            traces=TraceLog(folder / "traces.jsonl"),
            heartbeat=HeartbeatWriter(IDENTITY, folder / "beats.jsonl", 1_000.0),
        ),
        sleep=lambda _: None,
    )


def work(evaluator: Evaluator, ticks: int = 20) -> None:
    for _ in range(ticks):
        evaluator.tick()
    evaluator.finish(1.0)
    evaluator.close()


def test_a_checkpoint_is_evaluated_once_and_the_best_is_marked(
    tmp_path: Path, network: QuantileNetwork
) -> None:
    tensors = plain_state_dict(network)
    write_playable_checkpoint(tmp_path / "checkpoints", 130, tensors, updates=9)

    work(make_evaluator(tmp_path, network))

    (record,) = read_jsonl(tmp_path / "eval.jsonl")
    assert (record["global_step"], record["weight_version"], record["episodes"]) == (130, 9, 6)
    assert record["checkpoint"] == read_pointer(tmp_path / "checkpoints", BEST_NAME)


def test_a_restarted_evaluator_goes_on_where_it_was(
    tmp_path: Path, network: QuantileNetwork
) -> None:
    tensors = plain_state_dict(network)
    write_playable_checkpoint(tmp_path / "checkpoints", 130, tensors, updates=9)
    work(make_evaluator(tmp_path, network))

    again = make_evaluator(tmp_path, network)
    again.tick()
    write_playable_checkpoint(tmp_path / "checkpoints", 199, tensors, updates=10)
    again.tick()
    write_playable_checkpoint(tmp_path / "checkpoints", 210, tensors, updates=11)
    work(again)

    steps = [record["global_step"] for record in read_jsonl(tmp_path / "eval.jsonl")]
    assert steps == [130, 210]


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, network: QuantileNetwork) -> None:
    tensors = plain_state_dict(network)
    damage(write_playable_checkpoint(tmp_path / "checkpoints", 130, tensors, updates=9))
    evaluator = make_evaluator(tmp_path, network)

    evaluator.tick()
    write_playable_checkpoint(tmp_path / "checkpoints", 240, tensors, updates=9)
    work(evaluator)

    assert [record["global_step"] for record in read_jsonl(tmp_path / "eval.jsonl")] == [240]


@pytest.mark.parametrize(
    ("newest", "evaluated", "is_due"),
    [(99, 0, False), (100, 0, True), (199, 130, False), (200, 130, True), (150, 420, True)],
)
def test_evaluation_is_due_in_every_other_interval(
    newest: int, evaluated: int, is_due: bool
) -> None:
    path = Path(f"{newest:011}")

    assert due_checkpoint([path], evaluated, 100) == (path if is_due else None)


def test_without_a_checkpoint_nothing_is_due() -> None:
    assert due_checkpoint([], 0, 100) is None


def record(
    checkpoint: str, clear_rate: float, distance: float, stage: str = "1-1"
) -> dict[str, object]:
    return {
        "checkpoint": checkpoint,
        "stage": stage,
        "clear_rate": clear_rate,
        "distance_mean": distance,
    }


def test_the_best_is_by_clear_rate_then_by_distance(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    records = [record("a", 0.5, 10.0), record("b", 0.5, 30.0), record("c", 0.2, 90.0)]

    assert best_merit([*records, {"checkpoint": "torn"}], ("1-1",), tmp_path) == (0.5, 30.0)
    assert best_merit([], ("1-1",), tmp_path) is None


def test_what_cannot_be_compared_sets_no_bar(tmp_path: Path) -> None:
    for name in ("one-stage", "both"):
        (tmp_path / name).mkdir()
    records = [
        record("one-stage", 1.0, 90.0),
        record("both", 1.0, 90.0),
        record("both", 0.5, 70.0, stage="1-2"),
        record("gone", 1.0, 99.0),
        record("gone", 1.0, 99.0, stage="1-2"),
    ]

    assert best_merit(records, ("1-1", "1-2"), tmp_path) == (0.75, 80.0)
    assert best_merit(records, ("1-1",), tmp_path) == (1.0, 90.0)


def skilled_and_hopeless(network: QuantileNetwork) -> list[dict[str, torch.Tensor]]:
    """Weights that always jump and get somewhere, and weights that always stay."""
    found = []
    for action in (JUMP, STAY):
        tensors = {name: torch.zeros_like(t) for name, t in plain_state_dict(network).items()}
        tensors["advantage.bias"].view(SPEC.num_actions, -1)[action] = 1.0
        found.append(tensors)
    return found


def test_a_worse_checkpoint_does_not_replace_the_best_not_even_after_a_restart(
    tmp_path: Path, network: QuantileNetwork
) -> None:
    skilled, hopeless = skilled_and_hopeless(network)
    checkpoints = tmp_path / "checkpoints"
    write_playable_checkpoint(checkpoints, 130, skilled, updates=9)
    evaluator = make_evaluator(tmp_path, network)
    for _ in range(20):
        evaluator.tick()
    write_playable_checkpoint(checkpoints, 240, hopeless, updates=10)
    work(evaluator)
    write_playable_checkpoint(checkpoints, 350, hopeless, updates=11)
    work(make_evaluator(tmp_path, network))

    distances = [record["distance_mean"] for record in read_jsonl(tmp_path / "eval.jsonl")]
    assert distances == [6.0, 0.0, 0.0]
    assert read_pointer(checkpoints, BEST_NAME) == "00000000130"


def test_pruning_spares_what_is_being_evaluated(tmp_path: Path, network: QuantileNetwork) -> None:
    tensors = plain_state_dict(network)
    checkpoints = tmp_path / "checkpoints"
    write_playable_checkpoint(checkpoints, 130, tensors, updates=9)
    evaluator = make_evaluator(tmp_path, network)
    evaluator.tick()
    for steps in range(131, 137):
        write_playable_checkpoint(checkpoints, steps, tensors, updates=9)

    prune_checkpoints(checkpoints, keep=2)
    work(evaluator)

    assert read_pointer(checkpoints, BEST_NAME) == "00000000130"
    assert read_pointer(checkpoints, EVALUATING_NAME) is None


def test_an_evaluation_is_filmed_with_its_own_network_before_the_next_one(
    tmp_path: Path, network: QuantileNetwork
) -> None:
    skilled, hopeless = skilled_and_hopeless(network)
    checkpoints = tmp_path / "checkpoints"
    write_playable_checkpoint(checkpoints, 130, skilled, updates=9)
    evaluator = make_evaluator(tmp_path, network, is_filmed=True)
    evaluator.tick()
    write_playable_checkpoint(checkpoints, 240, hopeless, updates=10)
    work(evaluator, ticks=60)

    films = {path.name: len(read_film(path).pictures) for path in tmp_path.glob("videos/*.mp4")}
    jumps, stays = 3, 64  # until the pit in cell 6, and until the corridor's limit
    assert films == {
        "eval-00000000130-best.mp4": 1 + jumps + HELD_PICTURES,
        "eval-00000000240-best.mp4": 1 + stays + HELD_PICTURES,
    }
