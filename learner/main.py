"""The command line of the learner."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.cli import Program, parse_args, refuse, settings_from_config_flag
from common.component import run_component
from common.config import Settings
from common.devices import learner_thread_count, limit_torch_threads
from common.errors import ConfigError
from common.lifecycle import StopFlag, run_program
from common.logs import configure_logging
from common.resume import find_resume
from common.run_paths import RunPaths

PROGRAM = Program(
    name="python -m learner",
    description="""Train on batches, broadcast weights, write checkpoints and metrics.

Goes on from the newest valid checkpoint of the run, if there is one.

Examples:
  python -m learner --config runs/first/config.json
  python -m learner --run by-hand --device cpu --max-agent-steps 100000
""",
)
FINISH_DEADLINE_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerArgs:
    """The settings of the run, and what only this process needs."""

    settings: Settings = field(default_factory=Settings)
    config: str = ""
    """A config.json of a run or a TOML file; flags go over it."""
    resume: str = "auto"
    """auto (newest valid checkpoint of the run), none, or the path of a checkpoint or run."""
    log_file: str = ""
    """Where to log; stderr when empty."""


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        default = LearnerArgs(settings=settings_from_config_flag(words))
        args = parse_args(PROGRAM, words, default)
    except ConfigError as error:
        return refuse(PROGRAM, error)
    log_file = Path(args.log_file) if args.log_file else None
    configure_logging(args.settings.run.run, "learner", 0, log_file)
    stop = StopFlag.on_signals()
    return run_program("learner", lambda: _run(args, stop))


def _run(args: LearnerArgs, stop: StopFlag) -> int:
    # Here, because `--help` should not wait for torch.
    from common.transport import ZmqNetwork  # noqa: PLC0415
    from learner.assembly import build  # noqa: PLC0415

    limit_torch_threads(learner_thread_count(args.settings.learner.learner_threads))
    network = ZmqNetwork()
    try:
        learner = build(args.settings, network, resume=resume_path(args))
        return run_component(learner, stop, finish_deadline_s=FINISH_DEADLINE_S)
    finally:
        network.close()


def resume_path(args: LearnerArgs) -> Path | None:
    if args.resume == "none":
        return None
    explicit = None if args.resume == "auto" else Path(args.resume)
    point = find_resume(RunPaths.of(args.settings.run).root, explicit=explicit)
    return None if point is None else point.path
