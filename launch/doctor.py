"""Is a run sound? `python launch/doctor.py runs/NAME` reads all of it and says what is wrong."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from common.checkpoint_files import NUMBERED_NAME
from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.errors import ConfigError, ExitCode, MarioError
from common.run_paths import RunPaths
from common.saved_replay import cut_names
from launch.quarantine import Quarantine
from launch.run_dir import locked
from launch.run_health import (
    Finding,
    check_config,
    check_leftovers,
    check_lines,
    check_pointers,
    check_resume,
    check_saved_replay,
    check_traces,
    checkpoint_finding,
    checkpoints_of,
    line_files,
    required_files,
    traces_of,
    users_of,
)
from launch.verify import VerifyArgs, find_traces, verify
from launch.workers import run_workers, with_progress

PROGRAM = Program(
    name="python launch/doctor.py",
    description="""Verify the checkpoints, saved replays, settings, metrics and traces of a run.

Examples:
  python launch/doctor.py runs/first
  python launch/doctor.py runs/first --traces
  python launch/doctor.py runs/first --repair
  python launch/doctor.py runs/first --json

Every checkpoint is loaded as a resume would load it. A run may go on meanwhile, but not during
--repair, which moves what is damaged to quarantine/ inside the run and deletes nothing.

Exit codes: 0 healthy (or mended), 1 something is wrong, 2 wrong settings or no run.""",
)
WRONG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorArgs:
    """Which run, and what to do."""

    run: str = ""
    """The folder of a run, as the first word or as a flag."""
    repair: bool = False
    """Move what is damaged to quarantine/ inside the run and mend the pointers."""
    traces: bool = False
    """Also play the recorded clears again, as launch/verify.py does."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(slots=True, kw_only=True)
class Diagnosis:
    """What was read, and what was found."""

    paths: RunPaths
    users: list[str]
    checked: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    newest: Path | None = None
    """The newest checkpoint that can be used."""
    mended: set[Path] = field(default_factory=set)
    quarantine: Path | None = None

    @property
    def wrong(self) -> list[Finding]:
        """What is wrong and was not mended."""
        return [one for one in self.findings if one.is_wrong and one.path not in self.mended]


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--run")
    # What is logged on the way stands in the findings.
    logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        args = parse_args(PROGRAM, words, DoctorArgs())
        paths = find_run(args.run)
        with locked(paths) if args.repair else nullcontext():
            diagnosis = examine(paths, args)
            if args.repair:
                repair(diagnosis)
            diagnosis.findings += check_resume(paths)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except OSError as error:
        problem = f"cannot work on {error.filename}: {error.strerror}"
        return refuse(PROGRAM, ConfigError(problem))
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return int(ExitCode.INTERRUPTED)
    try:
        print(as_json(diagnosis) if args.json else as_lines(diagnosis), flush=True)
    except BrokenPipeError:
        abandon_stdout()
    except OSError as error:
        abandon_stdout()
        return refuse(PROGRAM, ConfigError(f"the report cannot be written: {error.strerror}"))
    return WRONG if diagnosis.wrong else int(ExitCode.DONE)


def find_run(place: str) -> RunPaths:
    if not place:
        raise ConfigError("which run? give its folder, for example runs/default")
    root = Path(place)
    if not root.is_dir():
        raise ConfigError(f"{root} is no folder; give the folder of a run")
    paths = RunPaths(root.resolve())
    if not any(os.path.lexists(one) for one in (paths.config, paths.checkpoints, paths.metrics)):
        raise ConfigError(
            f"{root} is no run: it has neither config.json nor checkpoints nor metrics.jsonl"
        )
    paths.refuse_links()
    return paths


def examine(paths: RunPaths, args: DoctorArgs) -> Diagnosis:
    """Everything is read once, with a bar where somebody watches."""
    users = users_of(paths)
    if args.repair:
        # The lock is ours now, so these are programs without a launcher.
        users = [user for user in users if not user.startswith("launcher")]
        if users:
            raise ConfigError(f"{paths.root} is in use by {', '.join(users)}; stop them first")
    diagnosis = Diagnosis(paths=paths, users=users)
    diagnosis.findings += check_config(paths)
    _examine_checkpoints(diagnosis)
    _examine_replay(diagnosis)
    diagnosis.findings += check_leftovers(paths)
    _examine_files(diagnosis)
    if args.traces and diagnosis.checked["traces"]:
        diagnosis.findings += _play_traces(paths)
    return diagnosis


def _examine_checkpoints(diagnosis: Diagnosis) -> None:
    paths = diagnosis.paths
    checkpoints = checkpoints_of(paths)
    config = "" if any(one.path == paths.config for one in diagnosis.findings) else paths.config
    names = [str(path) for path in checkpoints]
    jobs = [{"config": str(config), "required": required_files(paths), "checkpoints": names}]
    answers = run_workers("learner.checkpoint_worker", jobs) if checkpoints else iter(())
    unusable = set()
    for answer in with_progress(answers, len(checkpoints), "checkpoints"):
        path = Path(str(answer["checkpoint"]))
        finding = checkpoint_finding(path, str(answer["problem"]), fits=bool(answer["fits"]))
        if finding is not None:
            diagnosis.findings.append(finding)
            if finding.mend:
                unusable.add(path)
    usable = [one for one in checkpoints if one not in unusable]
    numbered = (one for one in usable if NUMBERED_NAME.fullmatch(one.name))
    diagnosis.newest = next(numbered, None)
    diagnosis.checked["checkpoints"] = len(checkpoints)
    diagnosis.findings += check_pointers(paths, unusable, diagnosis.newest)


def _examine_replay(diagnosis: Diagnosis) -> None:
    roots = diagnosis.paths.replay_folders()
    cuts = [(root, name) for root in roots for name in cut_names(root)]
    for root, name in with_progress(cuts, len(cuts), "saved replays"):
        diagnosis.findings += check_saved_replay(root, name)
    if cuts:
        diagnosis.checked["saved replays"] = len(cuts)


def _examine_files(diagnosis: Diagnosis) -> None:
    paths, in_use = diagnosis.paths, bool(diagnosis.users)
    lines, traces = line_files(paths), traces_of(paths)
    for path in with_progress(lines, len(lines), "files"):
        diagnosis.findings += check_lines(path, in_use=in_use)
    for path in with_progress(traces, len(traces), "traces"):
        diagnosis.findings += check_traces(path, in_use=in_use)
    diagnosis.checked |= {"files": len(lines), "traces": len(traces)}


def _play_traces(paths: RunPaths) -> list[Finding]:
    found = [one for one in find_traces(str(paths.root), 0) if one.trace is not None]
    remedy = "compare with --core nes_py of launch/verify.py; the clear does not count"
    return [
        Finding(path=paths.traces, problem=problem, remedy=remedy)
        for problem in (verify(found, VerifyArgs()) if found else ())
    ]


def repair(diagnosis: Diagnosis) -> None:
    quarantine = Quarantine(diagnosis.paths)
    for finding in diagnosis.findings:
        # Two findings may be of one file, which can be moved only once.
        if finding.path not in diagnosis.mended and quarantine.mend(finding, diagnosis.newest):
            diagnosis.mended.add(finding.path)
    if quarantine.folder.exists():
        diagnosis.quarantine = quarantine.folder


def as_json(diagnosis: Diagnosis) -> str:
    findings = [
        {
            "path": _shown(diagnosis, finding.path),
            "problem": finding.problem,
            "remedy": finding.remedy,
            "wrong": finding.is_wrong,
            "mended": finding.path in diagnosis.mended,
        }
        for finding in diagnosis.findings
    ]
    record = {
        "run": str(diagnosis.paths.root),
        "healthy": not diagnosis.wrong,
        "in_use_by": diagnosis.users,
        "checked": diagnosis.checked,
        "findings": findings,
        "quarantine": str(diagnosis.quarantine) if diagnosis.quarantine else None,
    }
    return json.dumps(record, indent=2)


def as_lines(diagnosis: Diagnosis) -> str:
    lines = [f"in use by {user}: what it is writing now is not judged" for user in diagnosis.users]
    for finding in diagnosis.findings:
        is_mended = finding.path in diagnosis.mended
        word = "MENDED" if is_mended else "WRONG" if finding.is_wrong else "note"
        after = "" if is_mended else f"; {finding.remedy}"
        lines.append(f"{word} {_shown(diagnosis, finding.path)}: {finding.problem}{after}")
    if diagnosis.quarantine:
        lines.append(f"moved to {diagnosis.quarantine}")
    checked = ", ".join(f"{count} {name}" for name, count in diagnosis.checked.items())
    count = len(diagnosis.wrong)
    verdict = f"{count} thing{'s are' if count > 1 else ' is'} wrong" if count else "healthy"
    return "\n".join([*lines, f"{diagnosis.paths.root}: {verdict} ({checked} read)"])


def _shown(diagnosis: Diagnosis, path: Path) -> str:
    return str(path.relative_to(diagnosis.paths.root))


if __name__ == "__main__":
    sys.exit(main())
