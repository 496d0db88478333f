"""Shows whether building environments works on this machine, time after time.

Builds, resets, plays and closes environments in real processes, one trial after the other, appends
one JSON line per trial to a report and prints a summary.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, NoReturn

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from common.config import CoreName, EnvSettings
from common.config_checks import require_wait
from common.errors import ConfigError, ExitCode
from common.game import construction_deadline_s
from common.jsonl import JsonlWriter
from launch.env_trials import Mode, TrialPlan, TrialResult, quantile, run_trial

_FAILED: Final = 1
_EXAMPLES: Final = """Build environments in real processes, again and again, and report.

Examples:
  python -m launch.env_regression                                   50 trials of 8, one at a time
  python -m launch.env_regression --mode concurrent                 all at once, without the lock
  python -m launch.env_regression --trials 5 --envs 4 --stage 8-4   a quick look at another stage

Exit codes: 0 all built, 1 some did not, 2 wrong settings, 130 stopped by Ctrl-C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionArgs:
    mode: Mode = "serial"
    """serial: under the construction lock, as actors build; concurrent: all at once."""
    trials: int = 50
    """Trials to run, one after the other."""
    envs: int = 8
    """Environments per trial, each in a process of its own."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("env_stability_report.jsonl")
    """Report to append to, one JSON object per trial."""
    timeout_s: float = 0.0
    """Seconds until all environments of a trial must be done; 0 means max(180, 60 x envs)."""
    game: Literal["mario", "corridor"] = "mario"
    """mario, or corridor: a tiny game without an emulator."""
    stage: str = "1-1"
    """World and level, 1-1 to 8-4."""
    core: CoreName = "nes_py"
    """nes_py, native, auto or fceumm."""

    def __post_init__(self) -> None:
        for name in ("trials", "envs"):
            if getattr(self, name) < 1:
                raise ConfigError(f"--{name} must be at least 1, got {getattr(self, name)}")
        require_wait(self, "timeout_s")
        EnvSettings(stage=self.stage, core=self.core)


def main() -> int:
    signal.signal(signal.SIGTERM, _stop_in_order)
    console = Console()
    try:
        args = tyro.cli(RegressionArgs, prog="launch.env_regression", description=_EXAMPLES)
    except ConfigError as exc:
        print(f"env_regression: {exc}", file=sys.stderr)
        return int(ExitCode.CONFIGURATION)
    results: list[TrialResult] = []
    exit_code = int(ExitCode.DONE)
    try:
        run_trials(args, results, console)
    except KeyboardInterrupt:
        console.print("stopped; the trial that was running is not in the report")
        exit_code = int(ExitCode.INTERRUPTED)
    print_summary(args, results, console)
    has_failures = any(result.count("ok") < args.envs for result in results)
    return exit_code or (_FAILED if has_failures else int(ExitCode.DONE))


def run_trials(args: RegressionArgs, results: list[TrialResult], console: Console) -> None:
    """Fill `results`, so that an interrupted run can still be summed up."""
    writer = JsonlWriter(args.output)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with (
        tempfile.TemporaryDirectory(prefix="warpzone-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        plan = TrialPlan(
            mode=args.mode,
            envs=args.envs,
            game=args.game,
            stage=args.stage,
            core=args.core,
            timeout_s=args.timeout_s or construction_deadline_s(args.envs),
            lock_path=Path(folder) / "construction.lock",
        )
        task = progress.add_task(f"{args.mode}, {args.envs} environments", total=args.trials)
        for trial in range(args.trials):
            result = run_trial(plan, trial)
            writer.write(result.record(plan))
            results.append(result)
            progress.advance(task)
    writer.close()


def print_summary(args: RegressionArgs, results: Sequence[TrialResult], console: Console) -> None:
    built = sum(result.count("ok") for result in results)
    timeouts = sum(result.count("timeout") for result in results)
    failures = sum(result.count("failed") for result in results)
    table = Table("seconds", "median", "95 %", "slowest", title="time to build")
    for label, stage in (("whole", "ready"), ("lock", "lock"), ("construct", "construct")):
        if values := _stage_seconds(results, stage):
            cells = [quantile(values, share) for share in (0.5, 0.95, 1.0)]
            table.add_row(label, *(f"{cell:.2f}" for cell in cells))
    if table.row_count:
        console.print(table)
    for error in _distinct_errors(results):
        console.print(error, style="red", markup=False)
    console.print(
        f"{args.mode}: {len(results)} trials, {built} of {len(results) * args.envs} environments "
        f"built, {timeouts} timeouts, {failures} failures; report: {args.output}",
        soft_wrap=True,
        highlight=False,
    )


def _stage_seconds(results: Sequence[TrialResult], stage: str) -> list[float]:
    children = [child for result in results for child in result.children]
    return [child.durations_s[stage] for child in children if stage in child.durations_s]


def _distinct_errors(results: Sequence[TrialResult]) -> list[str]:
    errors = {child.error.strip() for result in results for child in result.children}
    return sorted(error for error in errors if error)[:5]


def _stop_in_order(*_: object) -> NoReturn:
    # Children are ended on the way out, as for Ctrl-C.
    sys.exit(int(ExitCode.TERMINATED))


if __name__ == "__main__":
    sys.exit(main())
