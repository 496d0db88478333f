"""What whole runs are compared with; each fake run has rates of its own, so pairs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest

from launch.benchmarks import cluster, pipeline
from launch.benchmarks.cluster import ClusterPlan, run_both
from launch.benchmarks.measure import Row
from launch.benchmarks.overlap import ONE_THREAD, OverlapPlan, run_matrix
from launch.benchmarks.pipeline import SB3, SB3_TWIN, PipelinePlan, run_pipeline
from launch.benchmarks.runs import RunFigures
from launch.benchmarks.sb3_dqn import Window

LEARNER = {"share_wait": 0.1, "share_forward": 0.4, "share_backward": 0.3, "share_copy": 0.05}
OURS = {"ours": ("--ours",), "preset": ("--preset",)}


def fake_run(steps_per_s: float, updates_per_s: float = 5.0) -> RunFigures:
    """Of ten seconds."""
    return RunFigures(
        metrics=[
            {"time": 100.0, "global_step": 1_000, "updates": 10, "gap_share_learner": 0.1},
            {
                "gap_share_learner": 0.3,
                "time": 110.0,
                "global_step": 1_000 + 10 * steps_per_s,
                "updates": 10 + 10 * updates_per_s,
            },
        ],
        beats={"actors": [], "replay": [], "learner": [LEARNER]},
        duration_s=10.0,
        cores={"learner": steps_per_s / 1_000},
        batch_size=64,
    )


def fake_reference(steps_per_s: float) -> Mapping[str, float]:
    return {
        "agent_steps_per_s": steps_per_s,
        "updates_per_s": steps_per_s / 16,
        "samples_per_agent_step": 4.0,
        "cores": 1.5,
    }


def medians(rows: Sequence[Row]) -> dict[str, float]:
    return {row.contender: row.median for row in rows}


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What had its turn, in order; later turns are faster, on native all are ten times as fast."""
    turns: list[str] = []
    speeds = {SB3: 10.0, SB3_TWIN: 8.0, "--ours": 20.0, "--preset": 40.0}

    def speed(name: str, core: str) -> float:
        turns.append(f"{name}, {core}")
        is_second = turns.count(turns[-1]) > 1
        return speeds[name] * (10.0 if core == "native" else 1.0) * (2.0 if is_second else 1.0)

    def watch(words: Sequence[str], _seconds: float, *, settle_s: float) -> RunFigures:
        assert settle_s == 7.0
        steps_per_s = speed(words[0], words[words.index("--core") + 1])
        return fake_run(steps_per_s, steps_per_s / 16)

    def reference(_plan: PipelinePlan, core: str, *, our_network: bool) -> Mapping[str, float]:
        return fake_reference(speed(SB3_TWIN if our_network else SB3, core))

    monkeypatch.setattr(pipeline, "find_spec", lambda _name: object())
    monkeypatch.setattr(pipeline, "watch_run", watch)
    monkeypatch.setattr(pipeline, "reference_turn", reference)
    return turns


def test_the_references_play_on_each_core_and_every_second_round_is_reversed(
    played: list[str],
) -> None:
    names = (SB3, SB3_TWIN, "--ours", "--preset")
    first = [f"{name}, {core}" for core in ("nes_py", "native") for name in names]

    run_pipeline(PipelinePlan(rounds=2, cores=("nes_py", "native"), settle_s=7.0, contenders=OURS))

    assert played == [*first, *first[::-1]]


@pytest.mark.usefixtures("played")
def test_speeds_are_compared_with_the_reference_of_their_core() -> None:
    plan = PipelinePlan(rounds=2, cores=("nes_py", "native"), settle_s=7.0, contenders=OURS)

    rows = [row for row in run_pipeline(plan)[0].rows if row.group.startswith("speed")]

    assert {row.contender: (row.median, row.ratio) for row in rows} == {
        f"{SB3}, nes_py": (15.0, 1.0),
        f"{SB3_TWIN}, nes_py": (12.0, 0.8),
        "ours, nes_py": (30.0, 2.0),
        "preset, nes_py": (60.0, 4.0),
        f"{SB3}, native": (150.0, 1.0),
        f"{SB3_TWIN}, native": (120.0, 0.8),
        "ours, native": (300.0, 2.0),
        "preset, native": (600.0, 4.0),
    }


@pytest.mark.usefixtures("played")
def test_ours_is_compared_with_its_twin_and_with_what_users_have_round_by_round() -> None:
    plan = PipelinePlan(rounds=2, cores=("nes_py", "native"), settle_s=7.0, contenders=OURS)

    rows = [row for row in run_pipeline(plan)[0].rows if ": times " in row.contender]

    twin = "times Stable-Baselines3 on this core, our network nature"
    users = "times Stable-Baselines3 on nes_py, as its users have it"
    assert medians(rows) == {
        f"ours, nes_py: {twin}": 2.5,
        f"preset, nes_py: {twin}": 5.0,
        f"ours, native: {twin}": 2.5,
        f"ours, native: {users}": 20.0,
        f"preset, native: {twin}": 5.0,
        f"preset, native: {users}": 40.0,
    }
    # The machine was twice as fast in the second round, for both of a pair.
    assert all(row.low_quartile == row.high_quartile for row in rows)
    assert {row.unit for row in rows} == {"ratio"}


@pytest.mark.usefixtures("played")
def test_what_was_learned_and_used_meanwhile_is_told_of_all() -> None:
    found = medians(run_pipeline(PipelinePlan(rounds=1, settle_s=7.0, contenders=OURS))[0].rows)

    assert found["ours, nes_py: updates"] == 20.0 / 16
    assert found["ours, nes_py: samples per agent step"] == 4.0
    assert found["ours, nes_py: processor of learner"] == 0.02
    assert found["preset, nes_py: processor of learner"] == 0.04
    assert found[f"{SB3}, nes_py: updates"] == 10.0 / 16
    assert found[f"{SB3}, nes_py: samples per agent step"] == 4.0
    used = f"{SB3}, nes_py: processor of Stable-Baselines3 and its environments"
    assert found[used] == 1.5


@pytest.mark.usefixtures("played")
def test_gaps_of_the_learner_are_the_mean_of_each_run() -> None:
    result, shares = run_pipeline(PipelinePlan(rounds=1, settle_s=7.0, contenders=OURS))

    assert shares["ours, nes_py"]["learner"]["forward"] == [0.4]
    assert medians(result.rows)["ours, nes_py: gaps of the learner"] == pytest.approx(0.2)


def test_without_stable_baselines_a_note_says_what_to_install(
    played: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "find_spec", lambda _name: None)

    result, shares = run_pipeline(PipelinePlan(rounds=1, settle_s=7.0, contenders=OURS))

    assert "Stable-Baselines3 is not measured" in result.notes[0]
    assert played == ["--ours, nes_py", "--preset, nes_py"]
    assert list(shares) == ["ours, nes_py", "preset, nes_py"]
    assert not any(": times " in row.contender for row in result.rows)


def test_the_reference_is_measured_from_its_first_update_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = iter((0.0, 5.0, 10.0, 20.0, 30.0))
    worked = iter(({(1, "learner"): 3.0, (2, "environment"): 1.0}, {(1, "learner"): 11.0}))
    monkeypatch.setattr(
        "launch.benchmarks.sb3_dqn.time", SimpleNamespace(monotonic=seconds.__next__)
    )
    monkeypatch.setattr("launch.benchmarks.sb3_dqn.worked", lambda _pid: next(worked))
    window = Window(learning_starts=100, seconds=20.0, batch_size=64)

    def goes_on(agent_steps: int, updates: int) -> bool:
        model = SimpleNamespace(num_timesteps=agent_steps, _n_updates=updates)
        return window({"self": model}, {})

    assert [goes_on(8, 0), goes_on(100, 0), goes_on(108, 1), goes_on(208, 7)] == [True] * 4
    assert not goes_on(308, 13)

    assert window.told == {
        "agent_steps_per_s": 10.0,
        "updates_per_s": 0.6,
        "samples_per_agent_step": 12 * 64 / 200,
        "cores": pytest.approx(0.4),
    }


def test_cluster_compares_both_launchers_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    speeds = {"launch.local": 100.0, "launch.cluster": 90.0}

    def watch(_words: Sequence[str], _: float, *, settle_s: float, launcher: str) -> RunFigures:
        assert settle_s > 0
        started.append(launcher)
        # The machine is slower in the second round, for both.
        steps_per_s = speeds[launcher] * (0.5 if started.count(launcher) > 1 else 1.0)
        return fake_run(steps_per_s, steps_per_s / 10)

    monkeypatch.setattr(cluster, "watch_run", watch)
    monkeypatch.setattr(cluster, "find_spec", lambda _name: object())

    rows = run_both(ClusterPlan(words=(), rounds=2)).rows

    local, other = cluster.LAUNCHERS
    assert started == ["launch.local", "launch.cluster", "launch.cluster", "launch.local"]
    assert [(row.contender, row.unit, row.median, row.ratio) for row in rows] == [
        (local, "agent step/s", 75.0, 1.0),
        (other, "agent step/s", 67.5, 0.9),
        (local, "update/s", 7.5, 1.0),
        (other, "update/s", 6.75, 0.9),
        (f"agent step/s: share that {other} has", "share", 0.9, None),
        (f"update/s: share that {other} has", "share", 0.9, None),
        (f"{local}: processor of learner", "core", pytest.approx(0.075), None),
        (f"{other}: processor of learner", "core", pytest.approx(0.0675), None),
    ]
    # Told of each round, so the slower one does not spread them.
    assert rows[4].low_quartile == rows[4].high_quartile == 0.9
    monkeypatch.setattr(cluster, "find_spec", lambda _name: None)
    assert "'.[cluster]'" in run_both(ClusterPlan(words=())).notes[0]


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modes of overlap in the order in which they ran, each with a speed of its own."""
    modes: list[str] = []

    def watch(words: Sequence[str], _seconds: float) -> RunFigures:
        one_thread = "--learner-threads" in words
        mode = "lockstep" if "--lockstep" in words else ONE_THREAD if one_thread else "parallel"
        modes.append(mode)
        speeds = {"lockstep": 10.0, ONE_THREAD: 12.0, "parallel": 15.0}
        return fake_run(speeds[mode] * int(words[words.index("--actors") + 1]), 3.0)

    monkeypatch.setattr("launch.benchmarks.overlap.watch_run", watch)
    return modes


def test_overlap_compares_all_modes_with_lockstep_at_every_place(matrix: list[str]) -> None:
    result = run_matrix(OverlapPlan(actors=(1, 4), block_steps=(16, 32), rounds=2))

    places = [f"{actors} actors, blocks of {steps}" for actors in (1, 4) for steps in (16, 32)]
    assert [(row.contender, row.median, row.ratio) for row in result.rows] == [
        (f"{mode}: {place}", speed * int(place[0]), speed / 10)
        for place in places
        for mode, speed in (("lockstep", 10.0), (ONE_THREAD, 12.0), ("parallel", 15.0))
    ]
    assert len(matrix) == len(result.lines) == 3 * 4 * 2
    assert [line["mode"] for line in result.lines] == matrix


def test_overlap_turns_its_order_round_at_every_second_place_and_in_the_next_round(
    matrix: list[str],
) -> None:
    forth = ["lockstep", ONE_THREAD, "parallel"]

    run_matrix(OverlapPlan(actors=(1, 2), block_steps=(16, 32), rounds=2))

    back = forth[::-1]
    assert matrix == [*forth, *back, *back, *forth, *back, *forth, *forth, *back]
