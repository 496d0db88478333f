"""The command line of the learner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.allocator import keep_freed_memory
from common.channels import Network
from common.cli import Program
from common.component import Component
from common.config import Settings
from common.devices import learner_thread_count
from common.ids import Role
from common.process import Work, run_process
from common.ranks import place_among_ranks
from common.resume import find_resume
from common.run_config import with_absolute_folder, write_config
from common.run_paths import RunPaths

PROGRAM = Program(
    name="python -m learner",
    description="""Train on batches, broadcast weights, write checkpoints and metrics.

Goes on from the newest valid checkpoint of the run, if there is one.

Examples:
  python -m learner --config runs/first/config.json
  python -m learner --run by-hand --device cpu --max-agent-steps 100000
  torchrun --nproc-per-node 2 -m learner --config runs/first/config.json
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

    @property
    def role(self) -> Role:
        return "learner"

    @property
    def index(self) -> int:
        """The rank; there is one without torchrun."""
        return place_among_ranks(os.environ).rank


def main(argv: Sequence[str] | None = None) -> int:
    return run_process(PROGRAM, lambda s: LearnerArgs(settings=s), _plan, argv)


def _plan(args: LearnerArgs) -> Work:
    place = place_among_ranks(os.environ)
    threads = learner_thread_count(args.settings.learner.learner_threads, place.local_ranks)

    def build_learner(network: Network) -> Component:
        # Here, because `--help` should not wait for torch.
        from learner.assembly import build  # noqa: PLC0415
        from learner.rank_assembly import build_rank  # noqa: PLC0415

        keep_freed_memory()
        if place.is_first:
            describe_run(args.settings)
        # Rank 0 decides where the run goes on, for all.
        resume = resume_path(args) if place.is_first else None
        if place.ranks > 1:
            return build_rank(args.settings, network, place, resume=resume, threads=threads)
        return build(args.settings, network, resume=resume, threads=threads)

    return Work(build=build_learner, threads=threads, finish_deadline_s=FINISH_DEADLINE_S)


def describe_run(settings: Settings) -> None:
    """Without a launcher nobody else writes the file that says how a run is reached."""
    paths = RunPaths.of(settings.run)
    if not paths.config.exists():
        write_config(paths, with_absolute_folder(settings, paths))


def resume_path(args: LearnerArgs) -> Path | None:
    if args.resume == "none":
        return None
    explicit = None if args.resume == "auto" else Path(args.resume)
    point = find_resume(RunPaths.of(args.settings.run).root, explicit=explicit)
    return None if point is None else point.path
