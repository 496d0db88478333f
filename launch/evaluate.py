"""How well does it play? Greedy episodes from random starts: `python launch/evaluate.py RUN`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from common.checkpoint_files import PLAYABLE_FILES, WeightsChoice, load_state, updates_of
from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.config import CoreName
from common.errors import ConfigError, ExitCode, MarioError
from common.evaluation import EpisodeResult, EvaluationPlan, StageScore, score_all
from common.game import parse_stages
from common.models import ModelPlace, Which, find_model
from common.trace_log import Circumstances, TraceLog
from common.traces import trace_of_fields
from launch.tables import make_table
from launch.workers import run_workers, split, with_progress

PROGRAM = Program(
    name="python launch/evaluate.py",
    description="""Play a trained network greedily from random starts and count the flags.

The same seed gives the same episodes, whatever the number of processes. Examples:
  python launch/evaluate.py runs/first
  python launch/evaluate.py runs/first/checkpoints/00000606208 --episodes 200 --json
  python launch/evaluate.py runs/first --stages 1-1,1-2 --sticky 0.25 --traces clears.jsonl

Exit codes: 0 played, 2 wrong settings or nothing to play.""",
)
DEFAULT_EPSILON = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateArgs:
    """What to play, and how."""

    model: str = ""
    """A checkpoint or the folder of a run, as the first word or as a flag."""
    stages: str = ""
    """Stages such as 1-1,1-2, or all; by default those that the run trains."""
    episodes: int = 100
    """Episodes per stage."""
    noop_max: int = 30
    """Most frames without a button at the start of an episode."""
    sticky: float = 0.0
    """Probability that an agent step repeats the action before it."""
    mode: Literal["greedy", "epsilon"] = "greedy"
    """greedy: always the best action; epsilon: now and then a random one."""
    epsilon: float = DEFAULT_EPSILON
    """Probability of a random action with --mode epsilon."""
    seed: int = 1
    """Which starts are drawn."""
    which: Which = "best"
    """Of a run: its best checkpoint (by evaluation) or its latest."""
    weights: WeightsChoice = "average"
    """average: the mean of the weights where the run keeps one; online: as they are trained."""
    core: CoreName = "auto"
    """Emulator core; native and nes_py play the same game."""
    processes: int = 0
    """Processes that play at the same time; 0 means one per CPU core."""
    traces: str = ""
    """File for the clears, for launch/verify.py; by default among the traces of the run."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def __post_init__(self) -> None:
        if self.processes < 0:
            raise ConfigError(f"--processes must be at least 0, got {self.processes}")
        if self.traces and Path(self.traces).is_dir():
            raise ConfigError(f"--traces must be a file, got the folder {self.traces}")
        if self.mode == "greedy" and self.epsilon != DEFAULT_EPSILON:
            raise ConfigError(f"--epsilon {self.epsilon} needs --mode epsilon")

    def plan(self, place: ModelPlace) -> EvaluationPlan:
        stages = parse_stages(self.stages)
        if self.stages and not stages:
            raise ConfigError(f"--stages names no stage, got {self.stages!r}")
        return EvaluationPlan(
            stages=stages or place.settings.env.stage_names,
            episodes=self.episodes,
            noop_max=self.noop_max,
            sticky=self.sticky,
            epsilon=self.epsilon if self.mode == "epsilon" else 0.0,
            seed=self.seed,
        )


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--model")
    try:
        args = parse_args(PROGRAM, words, EvaluateArgs())
        if not args.model:
            raise ConfigError("which network? give a checkpoint or a run, for example runs/default")
        place = find_model(Path(args.model), args.which)
        report = evaluate(args, place)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        sys.stderr.write("stopped; nothing was counted\n")
        return int(ExitCode.INTERRUPTED)
    try:
        show(report, is_json=args.json)
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
    return int(ExitCode.DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An evaluation that has ended."""

    place: ModelPlace
    plan: EvaluationPlan
    scores: list[StageScore]
    duration_s: float
    weights: WeightsChoice
    weight_version: int
    core: CoreName
    traces: str
    """Where the clears are; empty without one."""

    def record(self) -> dict[str, object]:
        return {
            "checkpoint": str(self.place.checkpoint),
            "global_step": self.place.agent_steps,
            "weight_version": self.weight_version,
            "weights": self.weights,
            "core": self.core,
            **{key: value for key, value in asdict(self.plan).items() if key != "stages"},
            "duration_s": round(self.duration_s, 2),
            "traces": self.traces,
            "stages": [asdict(score) for score in self.scores],
        }


def evaluate(args: EvaluateArgs, place: ModelPlace) -> Report:
    """Play everything, with a progress bar where somebody watches."""
    began_s = time.monotonic()
    plan = args.plan(place)
    plays = plan.plays()
    trained_on = place.settings.env.core
    core = "fceumm" if args.core == "auto" and trained_on == "fceumm" else args.core
    processes = args.processes or os.cpu_count() or 1
    jobs = [
        {
            "checkpoint": str(place.checkpoint.resolve()),
            "core": core,
            "sticky": plan.sticky,
            "epsilon": plan.epsilon,
            "weights": args.weights,
            "tasks": [asdict(task) for task in part],  # type: ignore[call-overload] # of split
        }
        for part in split(plays, processes)
    ]
    answers = run_workers("actor.evaluation_worker", jobs)
    path = traces_path(args, place)
    traces = None if path is None else TraceLog(path)
    weight_version = updates_of(load_state(place.checkpoint, PLAYABLE_FILES))
    keeper = None if traces is None else _Keeper(traces, place.agent_steps, weight_version)
    results = _collect(with_progress(answers, len(plays), "episodes"), keeper)
    if traces is not None:
        traces.close()
    return Report(
        place=place,
        plan=plan,
        scores=score_all(plan.expand(results)),
        duration_s=time.monotonic() - began_s,
        weights=args.weights,
        weight_version=weight_version,
        core=core,
        traces=str(path) if traces is not None and traces.written else "",
    )


def traces_path(args: EvaluateArgs, place: ModelPlace) -> Path | None:
    """Beside the traces of the run, unless another file was named; a model is left as it is."""
    if args.traces:
        return Path(args.traces)
    root = place.checkpoint.resolve().parent.parent
    is_run = (root / "metrics.jsonl").exists()
    return root / "traces" / f"evaluation-{place.checkpoint.name}.jsonl" if is_run else None


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Writes the clears down; what it needs of the checkpoint it has from the beginning."""

    traces: TraceLog
    agent_steps: int
    weight_version: int

    def keep(self, fields: object, result: EpisodeResult) -> None:
        circumstances = Circumstances(
            peer="evaluate-0",
            agent_steps=self.agent_steps,
            weight_version=self.weight_version,
            episode_return=result.episode_return,
        )
        self.traces.write(trace_of_fields(fields), circumstances)


def _collect(answers: Iterator[dict[str, object]], keeper: _Keeper | None) -> list[EpisodeResult]:
    results = []
    for answer in answers:
        result = EpisodeResult(**answer["result"])  # type: ignore[arg-type] # our own worker
        results.append(result)
        if keeper is not None and answer["trace"] is not None:
            keeper.keep(answer["trace"], result)
    return results


def show(report: Report, *, is_json: bool) -> None:
    if is_json:
        print(json.dumps(report.record(), indent=2))
        return
    console = Console()
    titles = ("stage", "clears", "rate", "95 % interval", "x 10/50/90 %", "return", "seconds")
    console.print(make_table(titles, map(_cells, report.scores), texts=("stage",)))
    plan = report.plan
    if plan.is_determined:
        starts = max(score.distinct_starts for score in report.scores)
        console.print(f"greedy play from {starts} different starts, each played once per stage")
    console.print(
        f"{report.place.checkpoint} at {report.place.agent_steps:,} agent steps, "
        f"seed {plan.seed}, {report.duration_s:.0f} s",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if report.traces:
        console.print(f"clears: {report.traces}", markup=False, highlight=False, soft_wrap=True)


def _cells(score: StageScore) -> list[str]:
    seconds = score.clear_seconds_mean
    return [
        score.stage,
        f"{score.clears} of {score.episodes}",
        f"{100 * score.clear_rate:.1f} %",
        f"{100 * score.clear_rate_low:.1f} - {100 * score.clear_rate_high:.1f} %",
        f"{score.x_p10:.0f}/{score.x_p50:.0f}/{score.x_p90:.0f}",
        f"{score.return_mean:.1f}",
        "-" if seconds is None else f"{seconds:.1f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
