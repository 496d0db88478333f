"""The benchmark `pipeline`: a whole run of real processes, its speed and where its time goes.

The reference is Stable-Baselines3's DQN with the same batch and the same samples per agent step, on
nes_py, as its users have it; it is also given our network, and our native core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from common.config import Settings
from common.errors import ConfigError
from launch.benchmarks.extras import missing_note
from launch.benchmarks.measure import Effort, Result, Row, against_first, figure
from launch.benchmarks.runs import RunFigures, require_figures, watch_run
from launch.benchmarks.scene import Talker, open_scene

SB3 = "Stable-Baselines3 DQN, 8 SubprocVecEnv"
REFERENCES = {SB3: False, f"{SB3}, our network nature": True}
"""Whether it has our network; its own has one stream of 512 units and no quantiles."""
SPEED = "agent step/s"
SHARE = "share of time"
START_DEADLINE_S = 300.0
PARTS = ("actors", "replay", "learner")
EIGHT = ("--actors", "2", "--envs-per-actor", "4", "--block-steps", "32")
"""Environments, as the reference has."""
NATURE = ("--network", "nature", *EIGHT)
HALF = ("--mixed-precision", "bfloat16")
CONTENDERS: Mapping[str, Sequence[str]] = {
    "ours, network nature": NATURE,
    "ours, network nature, bfloat16": (*NATURE, *HALF),
    "ours, network nature, bfloat16, one thread": (*NATURE, *HALF, "--learner-threads", "1"),
    "ours, preset laptop": ("--preset", "laptop"),
}
"""Flags of `launch/local.py`."""
REFERENCE_CORE = "nes_py"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    cores: Sequence[str] = (REFERENCE_CORE,)
    """All play on each; the first is that of the reference."""
    seconds: float = 60.0
    """That each contender is watched."""
    settle_s: float = 15.0
    """From the first update of ours until then."""
    rounds: int = 3
    learning_starts: int = 1_000
    slack_agent_steps: int = 2_000
    references: Mapping[str, bool] = field(default_factory=lambda: REFERENCES)
    contenders: Mapping[str, Sequence[str]] = field(default_factory=lambda: CONTENDERS)

    def words(self, core: str) -> tuple[str, ...]:
        """Flags of all our runs on this core."""
        return (
            *("--core", core, "--evaluators", "0"),
            *("--learning-starts", str(self.learning_starts)),
            # At first the actors fill it, which a short window would take for speed.
            *("--balance-slack-agent-steps", str(self.slack_agent_steps)),
            *("--metrics-interval-s", str(min(1.0, self.seconds / 4))),
        )

    def watch(self, words: Sequence[str], core: str) -> RunFigures:
        return watch_run([*words, *self.words(core)], self.seconds, settle_s=self.settle_s)


def run(effort: Effort) -> Result:
    plan = PipelinePlan(
        cores=choose_cores(effort),
        seconds=effort.seconds(40.0, 6.0),
        settle_s=effort.seconds(15.0, 0.0),
        rounds=effort.turns(3, 1),
        learning_starts=300 if effort.quick else 1_000,
        slack_agent_steps=1_024 if effort.quick else 2_000,
        references={SB3: False} if effort.quick else REFERENCES,
        contenders=dict(list(CONTENDERS.items())[-1:]) if effort.quick else CONTENDERS,
    )
    result, shares = run_pipeline(plan)
    if effort.picture:
        draw(shares, effort.picture)
        result = Result(result.rows, (*result.notes, f"wrote {effort.picture}"))
    return result


def choose_cores(effort: Effort) -> tuple[str, ...]:
    """Both where nothing is asked for and both are there; one when it has to be quick."""
    chosen = str(import_module("actor.env.core_choice").choose_core(effort.core).name)
    is_one = effort.quick or effort.core != "auto" or chosen == REFERENCE_CORE
    return (chosen,) if is_one else (REFERENCE_CORE, chosen)


Shares = Mapping[str, Mapping[str, Sequence[float]]]
"""Of every part of a run, and of every phase of that, in all its heartbeats."""


def run_pipeline(plan: PipelinePlan) -> tuple[Result, dict[str, Shares]]:
    """All contenders in turn; the shares are those of the last run of each of ours."""
    is_missing = bool(plan.references) and find_spec("stable_baselines3") is None
    notes = (missing_note("Stable-Baselines3"),) if is_missing else ()
    references = {} if is_missing else plan.references
    speeds: dict[str, list[float]] = defaultdict(list)
    cores: dict[str, list[float]] = defaultdict(list)
    shares: dict[str, Shares] = {}
    for core in [core for _ in range(plan.rounds) for core in plan.cores]:
        for name, our_network in references.items():
            speed = reference_speed(plan, core, our_network=our_network)
            speeds[f"{name}, {core}"].append(speed)
        for name, words in plan.contenders.items():
            title = f"{name}, {core}"
            figures = require_figures(plan.watch(words, core), name)
            speeds[title].append(figures.per_second("global_step"))
            shares[title] = {part: figures.shares(part) for part in PARTS}
            for program, used in figures.cores.items():
                cores[f"{title}: processor of {program}"].append(used)
    rows = [figure(name, values, SPEED, group="speed") for name, values in speeds.items()]
    parts = [row for title, told in shares.items() for row in share_rows(title, told)]
    used_rows = [figure(name, values, "core") for name, values in cores.items()]
    return Result([*against_first(rows), *used_rows, *parts], notes), shares


def share_rows(title: str, shares: Shares) -> list[Row]:
    """Where the time of every part of a run went, in the order of its phases."""
    return [
        figure(f"{title}: {part}: {phase}", values, SHARE, group=f"{title}: {part}")
        for part, phases in shares.items()
        for phase, values in phases.items()
        if values
    ]


def reference_speed(plan: PipelinePlan, core: str, *, our_network: bool) -> float:
    settings = Settings()
    job = {
        "core": core,
        "our_network": our_network,
        "envs": 8,
        "seconds": plan.seconds,
        "batch_size": settings.learner.batch_size,
        "samples_per_insert": settings.replay.samples_per_insert,
        "learning_starts": plan.learning_starts,
        "capacity": 20_000,
    }
    with open_scene(settings) as scene:
        module = "launch.benchmarks.sb3_dqn"
        talker = Talker(scene, "sb3", module, job, threads=None)
        return float(talker.hear(START_DEADLINE_S + plan.seconds)["agent_steps_per_s"])


def draw(runs: Mapping[str, Shares], path: str) -> None:
    """For every run a panel, in it one bar for every part, divided into its phases."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    size = (12, 1 + 2.2 * len(runs))
    figure_, axes = pyplot.subplots(
        len(runs), figsize=size, sharex=True, squeeze=False, constrained_layout=True
    )
    told = [phases for shares in runs.values() for phases in shares.values()]
    names = list(dict.fromkeys(phase for phases in told for phase in phases))
    palette = [*pyplot.get_cmap("tab20").colors, *pyplot.get_cmap("tab20b").colors]
    colours = {**dict(zip(names, palette, strict=False)), "wait": "0.85", "other": "0.95"}
    for axis, (title, shares) in zip(axes[:, 0], runs.items(), strict=True):
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_yticks([])
        axis.set_xlim(0, 1)
        for row, (part, phases) in enumerate(shares.items()):
            axis.text(-0.01, row, part, ha="right", va="center")
            _draw_bar(axis, row, phases, colours)
    axes[-1, 0].set_xlabel("share of time, mean over processes and heartbeats")
    patches = [pyplot.Rectangle((0, 0), 1, 1, color=colours[name]) for name in names]
    figure_.legend(patches, names, loc="outside lower center", ncols=9, frameon=False)
    try:
        figure_.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write {path}: {error}") from error
    pyplot.close(figure_)


def _draw_bar(
    axis: Any, row: int, phases: Mapping[str, Sequence[float]], colours: Mapping[str, object]
) -> None:
    left = 0.0
    for phase, values in phases.items():
        width = sum(values) / len(values) if values else 0.0
        axis.barh(row, width, left=left, color=colours[phase])
        if width >= 0.04:  # noqa: PLR2004 - a narrower piece has no room for its name
            label = f"{phase}\n{width:.0%}"
            axis.text(left + width / 2, row, label, ha="center", va="center", fontsize=8)
        left += width
