"""The benchmark `pipeline`: a whole run of real processes, its speed and where its time goes.

The reference is Stable-Baselines3's DQN with the same batch and the same samples per agent step, on
nes_py, as its users have it; it is also given our network, and our native core. Every second round
has the other order, so that a machine that becomes slower favours nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from common.config import Settings
from launch.benchmarks.extras import missing_note
from launch.benchmarks.measure import (
    Effort,
    Result,
    Row,
    against_first,
    figure,
    in_turn,
    turn_ratios,
)
from launch.benchmarks.runs import RunFigures, require_figures, watch_run
from launch.benchmarks.scene import Talker, open_scene
from launch.benchmarks.shares_picture import Shares, draw

SB3 = "Stable-Baselines3 DQN, 8 SubprocVecEnv"
SB3_TWIN = f"{SB3}, our network nature"
REFERENCES = {SB3: False, SB3_TWIN: True}
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
    rounds: int = 4
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
        rounds=effort.turns(4, 1),
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
    chosen = effort.core_name()
    is_one = effort.quick or effort.core != "auto" or chosen == REFERENCE_CORE
    return (chosen,) if is_one else (REFERENCE_CORE, chosen)


@dataclass(frozen=True, slots=True)
class Found:
    """A value for each turn, by contender and core in the order of the first round."""

    speeds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    beside: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """By name and unit: how much it learned from, and its processor time."""
    shares: dict[str, Shares] = field(default_factory=dict)
    """Of the last run of each of ours."""

    def add_reference(self, title: str, told: Mapping[str, float]) -> None:
        self.speeds[title].append(told["agent_steps_per_s"])
        self._add_learning(title, told["updates_per_s"], told["samples_per_agent_step"])
        program = "Stable-Baselines3 and its environments"
        self.beside[f"{title}: processor of {program}", "core"].append(told["cores"])

    def add_ours(self, title: str, figures: RunFigures) -> None:
        self.speeds[title].append(figures.per_second("global_step"))
        samples = figures.samples_per_agent_step()
        self._add_learning(title, figures.per_second("updates"), samples)
        self.shares[title] = {part: figures.shares(part) for part in PARTS}
        gaps = figures.mean("gap_share_learner")
        self.beside[f"{title}: gaps of the learner", SHARE].append(gaps)
        for program, used in figures.cores.items():
            self.beside[f"{title}: processor of {program}", "core"].append(used)

    def _add_learning(self, title: str, updates_per_s: float, samples: float) -> None:
        self.beside[f"{title}: updates", "update/s"].append(updates_per_s)
        self.beside[f"{title}: samples per agent step", "sample"].append(samples)


def run_pipeline(plan: PipelinePlan) -> tuple[Result, dict[str, Shares]]:
    """All contenders in turn; the shares are those of the last run of each of ours."""
    is_missing = bool(plan.references) and find_spec("stable_baselines3") is None
    notes = (missing_note("Stable-Baselines3"),) if is_missing else ()
    references = {} if is_missing else plan.references
    turns = [(core, name) for core in plan.cores for name in (*references, *plan.contenders)]
    found = Found()
    for number in range(plan.rounds):
        for core, name in in_turn(turns, number):
            title = f"{name}, {core}"
            if name in references:
                told = reference_turn(plan, core, our_network=references[name])
                found.add_reference(title, told)
            else:
                figures = require_figures(plan.watch(plan.contenders[name], core), name)
                found.add_ours(title, figures)
    return Result(rows_of(plan, found), notes), found.shares


def rows_of(plan: PipelinePlan, found: Found) -> list[Row]:
    speeds = [
        figure(f"{name}, {core}", found.speeds[f"{name}, {core}"], SPEED, group=f"speed, {core}")
        for core in plan.cores
        for name in (*plan.references, *plan.contenders)
        if f"{name}, {core}" in found.speeds
    ]
    beside = [figure(name, values, unit) for (name, unit), values in found.beside.items()]
    parts = [row for title, told in found.shares.items() for row in share_rows(title, told)]
    return [*against_first(speeds), *ratio_rows(plan, found.speeds), *beside, *parts]


def ratio_rows(plan: PipelinePlan, speeds: Mapping[str, Sequence[float]]) -> list[Row]:
    """Ours against what is most like it, and against what its users have; round by round."""
    rows = []
    for core in plan.cores:
        references = {"Stable-Baselines3 on this core, our network nature": f"{SB3_TWIN}, {core}"}
        if core != REFERENCE_CORE:
            as_it_comes = "Stable-Baselines3 on nes_py, as its users have it"
            references[as_it_comes] = f"{SB3}, {REFERENCE_CORE}"
        for name in plan.contenders:
            ours = f"{name}, {core}"
            rows += [
                figure(f"{ours}: times {words}", turn_ratios(speeds[ours], speeds[its]), "ratio")
                for words, its in references.items()
                if its in speeds
            ]
    return rows


def share_rows(title: str, shares: Shares) -> list[Row]:
    """Where the time of every part of a run went, in the order of its phases."""
    return [
        figure(f"{title}: {part}: {phase}", values, SHARE, group=f"{title}: {part}")
        for part, phases in shares.items()
        for phase, values in phases.items()
        if values
    ]


def reference_turn(plan: PipelinePlan, core: str, *, our_network: bool) -> Mapping[str, float]:
    """What `sb3_dqn.py` tells of itself."""
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
        return talker.hear(START_DEADLINE_S + plan.seconds)
