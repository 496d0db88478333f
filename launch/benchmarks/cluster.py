"""The benchmark `cluster`: the same run under `launch/cluster.py` and under `launch/local.py`.

Every second round has the other order, so that a machine that becomes slower favours neither.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from importlib.util import find_spec

from launch.benchmarks.extras import missing_note
from launch.benchmarks.measure import Effort, Result, against_first, figure, in_turn, turn_ratios
from launch.benchmarks.runs import require_figures, watch_run

LAUNCHERS = {
    "launch/local.py": "launch.local",
    "launch/cluster.py on a Ray of its own": "launch.cluster",
}
SPEEDS = {"global_step": "agent step/s", "updates": "update/s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    words: tuple[str, ...]
    """Flags of both."""
    seconds: float = 60.0
    """That each run is watched."""
    settle_s: float = 30.0
    """From its first update until then: actors that ran ahead wait until the balance is found."""
    rounds: int = 4


def run(effort: Effort) -> Result:
    core = effort.core_name()
    seconds = effort.seconds(60.0, 6.0)
    return run_both(
        ClusterPlan(
            words=(
                *("--preset", "laptop", "--device", "cpu", "--core", core, "--actors", "8"),
                *("--evaluators", "0", "--learning-starts", "300" if effort.quick else "1000"),
                *("--metrics-interval-s", str(min(1.0, seconds / 4))),
            ),
            seconds=seconds,
            settle_s=effort.seconds(30.0, 0.0),
            rounds=effort.turns(4, 1),
        )
    )


def run_both(plan: ClusterPlan) -> Result:
    """In turn, so that noise hits both alike; the shares are those of each round."""
    if find_spec("ray") is None:
        return Result([], (missing_note("Ray", "cluster"),))
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    cores: dict[str, list[float]] = defaultdict(list)
    for number in range(plan.rounds):
        for name, module in in_turn(LAUNCHERS.items(), number):
            told = watch_run(plan.words, plan.seconds, settle_s=plan.settle_s, launcher=module)
            figures = require_figures(told, name)
            for counter in SPEEDS:
                values[counter, name].append(figures.per_second(counter))
            for program, used in figures.cores.items():
                cores[f"{name}: processor of {program}"].append(used)
    rows = [
        figure(name, found, SPEEDS[counter], group=counter)
        for (counter, name), found in values.items()
    ]
    speeds = against_first(sorted(rows, key=lambda row: list(SPEEDS).index(row.group)))
    reference, other = LAUNCHERS
    shares = [
        figure(
            f"{unit}: share that {other} has",
            turn_ratios(values[counter, other], values[counter, reference]),
            "share",
        )
        for counter, unit in SPEEDS.items()
    ]
    used_rows = [figure(name, used, "core") for name, used in cores.items()]
    return Result([*speeds, *shares, *used_rows])
