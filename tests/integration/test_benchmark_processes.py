"""Benchmarks of real processes, with tiny sizes: what they promise to measure is there."""

from __future__ import annotations

import os

import psutil
import pytest

from common.config import EnvSettings, Settings
from common.devices import thread_environment
from common.phases import PHASES
from launch.benchmarks.actor_time import OVERHEAD, TimePlan, time_rows
from launch.benchmarks.gaps import GAPS, GapPlan, gap_rows
from launch.benchmarks.overlap import MODES, OverlapPlan, run_matrix
from launch.benchmarks.pipeline import PipelinePlan, run_pipeline
from launch.benchmarks.replay import fill, serve
from launch.benchmarks.replay_plan import ReplayPlan
from launch.benchmarks.scene import open_scene
from launch.benchmarks.startup import DEADLINE_S, StartPlan, bench_help, start_rows
from launch.benchmarks.threads import plain_update
from launch.benchmarks.watching import Look, WatchPlan, rows_of, take_turns
from launch.benchmarks.weights import WeightsPlan, publish_and_follow

pytestmark = [pytest.mark.integration, pytest.mark.slow]
CORRIDOR = ("--game", "corridor", "--size", "16", "--batch-size", "16", "--capacity", "5000")
SMALL = EnvSettings(size=16)


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_replay_server_takes_steps_and_gives_samples() -> None:
    plan = ReplayPlan(
        capacity=2_048, batch_size=16, senders=2, window_s=0.3, rounds=1, frame_side=16
    )

    result = serve(plan)

    rows = {row.contender: row for row in result.rows}
    promised = [
        "steps in: raw ZeroMQ, 2 senders",
        "steps in: replay server, 2 senders",
        "samples out: raw ZeroMQ",
        "samples out: memcpy",
        "samples out: shared, while 1,000 steps/s come in",
        "samples out: wire, while 1,000 steps/s come in",
        "memory per stored transition, blocks of 128",
    ]
    assert all(rows[name].median > 0 for name in promised)
    for transport in ("shared", "wire"):
        beside = rows[f"steps in: while samples go out, {transport}"]
        # Blocks are whole: in a second and a third more or less of them fit in.
        assert beside.ratio == pytest.approx(1.0, abs=0.6)
        assert beside.ratio == beside.median / 1_000
    assert rows["memory of the server between batches"].median > 20e6
    assert "--rounds 8" in result.notes[0]


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_the_memory_of_a_transition_is_measured_with_smaller_blocks_too() -> None:
    """A server that is filled with them by its senders; a block holds as many transitions."""
    plan = ReplayPlan(capacity=4_096, senders=2, window_s=0.2, frame_side=84, block_steps=64)

    row = fill(plan)

    assert row.contender == "memory per stored transition, blocks of 64"
    frame_bytes = 84 * 84
    assert row.median > frame_bytes


@pytest.mark.timeout(240)
def test_every_version_of_the_weights_is_serialised_once_and_used() -> None:
    plan = WeightsPlan(subscribers=2, versions=3, interval_s=0.5, settings=Settings(env=SMALL))

    rows = {
        row.contender.removesuffix(", cores otherwise idle"): row
        for row in publish_and_follow(plan).rows
    }

    assert rows["serialisations per version"].median == 1.0
    assert rows["versions that all 2 used"].median > 0
    assert rows["publish to use, all 2 actors"].median > 0
    assert 0 < rows["share of an actor's time, processor time"].median < 1
    assert 0 < rows["processor time of an actor per version"].median < 0.5


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_the_time_of_an_actor_is_that_of_a_process_with_its_sockets() -> None:
    corridor = EnvSettings(game="corridor", size=16)

    rows = time_rows(TimePlan(envs_of_actors=(2,), seconds=2.0, env=corridor))

    told = {row.contender.rpartition(": ")[2]: row.median for row in rows}
    sums = {"inference, encode and send", "all but playing", "all but playing and blocks"}
    assert told.keys() == {*OVERHEAD, *sums}
    # Blocks went out, answers and versions came in.
    assert all(told[name] > 0 for name in ("inference", "blocks", "encode", "send", "weights"))
    assert max(told.values()) == told["all but playing"] < 1


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_the_gaps_between_updates_are_measured_in_a_learner_process() -> None:
    rows = {
        row.contender.removesuffix(", float32"): row
        for row in gap_rows(GapPlan(seconds=3.0, env=SMALL))
    }

    assert {f"gap: {name}" for name in GAPS} < rows.keys()
    gaps = [rows[f"gap: {name}"] for name in GAPS]
    assert all(0 <= row.low_quartile <= row.high_quartile <= 1 for row in gaps)
    together = rows["gaps together"]
    assert max(row.low_quartile for row in gaps) <= together.high_quartile
    assert 0 < together.median < 1
    update, checkpoint = (
        rows["an update in the learner process"],
        rows["a checkpoint in the training thread"],
    )
    assert 0 < update.median < 0.5
    assert 0 < checkpoint.median < 0.5
    assert checkpoint.ratio == pytest.approx(checkpoint.median / update.median)


@pytest.mark.timeout(240)
def test_the_plain_update_of_a_child_has_torchs_own_setting_of_threads() -> None:
    with open_scene(Settings()) as scene:
        child = plain_update(scene, "small", 2)
        child()
        child()
        environment = psutil.Process(scene.processes["plain-small"].pid).environ()

    ours = thread_environment(1)
    assert {name: environment.get(name) for name in ours} == {
        name: os.environ.get(name) for name in ours
    }


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_whole_run_says_where_its_time_goes() -> None:
    plan = PipelinePlan(
        cores=("nes_py",),
        seconds=1.0,
        settle_s=0.2,
        rounds=1,
        learning_starts=100,
        references={},
        contenders={"corridor": ("--actors", "1", "--block-steps", "16", *CORRIDOR)},
    )

    result, runs = run_pipeline(plan)

    assert result.rows[0].contender == "corridor, nes_py"
    assert result.rows[0].median > 0
    shares = runs["corridor, nes_py"]
    assert shares.keys() == PHASES.keys()
    assert all(shares[part]["wait"] for part in PHASES)
    assert max(shares["learner"]["forward"]) > 0
    assert max(shares["actors"]["emulator"]) > 0


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_lockstep_is_compared_with_parallel_processes() -> None:
    plan = OverlapPlan(actors=(1,), block_steps=(16,), seconds=1.0, words=CORRIDOR)

    result = run_matrix(plan)

    assert [line["mode"] for line in result.lines] == list(MODES)
    assert result.rows[0].median > 0
    assert all(float(str(line["updates_per_sec_mean"])) > 0 for line in result.lines)


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_looking_is_measured_in_a_run_that_goes_on() -> None:
    plan = WatchPlan(
        words=(
            *("--actors", "1", "--block-steps", "16", "--learning-starts", "100"),
            *("--metrics-interval-s", "0.2", "--evaluators", "0", *CORRIDOR),
        ),
        looks={"nobody": Look(), "three": Look(viewers=3, live=("actor-0",))},
        rounds=1,
        seconds=2.0,
        settle_s=0.5,
    )

    turns = take_turns(plan)

    rows = {row.contender: row for row in rows_of(turns)}
    assert [turn.look for turn in turns][1::2] == ["nobody", "three"]
    assert len({turn.look for turn in turns[::2]}) == 1
    assert all(rate > 0 for turn in turns for rate in turn.rates.values())
    assert rows["share of updates: three"].median > 0
    assert rows["processor of the room: three"].median > 0
    assert rows["memory of the room: nobody"].median > 10


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_starts_are_timed() -> None:
    plan = StartPlan(actors=1, rounds=1, words=(*CORRIDOR, "--learning-starts", "100"))

    stored, playing, cpu, memory = start_rows(plan)

    assert 0 < stored.median < DEADLINE_S
    assert 0 < playing.median < DEADLINE_S
    assert 0.1 < cpu.median < playing.median
    # A process that has imported torch, and no more than that.
    assert 100e6 < memory.median < 1e9
    bench = bench_help({"python launch/keys.py": ["launch/keys.py"]})
    bare = ["python -c pass", "python -c 'import torch'"]
    assert list(bench.contenders) == [*bare, "python launch/keys.py --help"]
