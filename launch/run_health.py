"""What is wrong in the folder of a run: everything is read, nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Literal

import psutil

from common.abandoned import set_aside_in
from common.checkpoint_files import (
    MANIFEST_NAME,
    PLAYABLE_FILES,
    REQUIRED_FILES,
    list_numbered,
    read_manifest,
    verify_checkpoint,
)
from common.config_learning import MAX_SHARDS
from common.errors import CheckpointCorrupt, CheckpointMissing, ConfigError, TraceInvalid
from common.file_lock import lock_holder
from common.host import is_from_here
from common.ids import peer_id
from common.jsonl import last_record, line_problem
from common.leftovers import find_leftovers
from common.resume import (
    BEST_NAME,
    EVALUATING_NAME,
    LATEST_NAME,
    find_resume,
    read_pointer,
)
from common.role_lock import SOLE_ROLES
from common.run_paths import RunPaths
from common.saved_replay import check_cut, cut_leftovers, cuts_folder
from common.settings_files import load_settings
from common.trace_log import trace_line_problem
from common.traces import read_trace
from launch.verify import is_trace_log, trace_files

Mend = Literal["", "move", "lines", "latest"]
"""What `--repair` does: nothing, move it to quarantine, its damaged lines only, write `latest`."""
SHOWN_LINES = 5
POINTERS = (LATEST_NAME, BEST_NAME, EVALUATING_NAME)
MOVED = "--repair moves it to quarantine/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, or worth knowing."""

    path: Path
    problem: str
    remedy: str
    mend: Mend = ""
    is_wrong: bool = True


def checkpoints_of(paths: RunPaths) -> list[Path]:
    """All of them: numbered, abandoned, and those under another name that a pointer names."""
    folder = paths.checkpoints
    numbered = list_numbered(folder)
    abandoned = set_aside_in(folder)
    named = {read_pointer(folder, name) for name in POINTERS} - set(POINTERS)
    others = sorted(folder / name for name in named if name and (folder / name).exists())
    return list(dict.fromkeys([*numbered, *abandoned, *others]))


def required_files(paths: RunPaths) -> tuple[str, ...]:
    """Of each checkpoint; a model that was exported has only what is needed to play."""
    is_run = paths.metrics.exists() or any(paths.checkpoints.glob("*/optimizer.safetensors"))
    return REQUIRED_FILES if is_run else PLAYABLE_FILES


def checkpoint_finding(path: Path, problem: str, *, fits: bool) -> Finding | None:
    """Of what the learner said when it loaded it."""
    if not path.exists():
        return None  # Pruned by the run in the meantime.
    text = problem.removeprefix(f"{path}: ").removeprefix(f"{path}/")
    if not fits:
        remedy = "resume it with the settings that it was written with"
        return Finding(path=path, problem=text, remedy=remedy)
    if problem:
        remedy = f"a resume takes the one before it; {MOVED}"
        return Finding(path=path, problem=text, remedy=remedy, mend="move")
    known = {MANIFEST_NAME, *read_manifest(path, PLAYABLE_FILES).files}
    extra = sorted(one.name for one in path.iterdir() if one.name not in known)
    if extra:
        text = f"files that the manifest does not name: {', '.join(extra[:SHOWN_LINES])}"
        remedy = "nothing reads them; remove them if they are not yours"
        return Finding(path=path, problem=text, remedy=remedy, is_wrong=False)
    return None


def check_pointers(paths: RunPaths, bad: Collection[Path], newest: Path | None) -> list[Finding]:
    """`bad` are the checkpoints that cannot be used, `newest` is the newest that can."""
    found = []
    required = required_files(paths)
    for name in POINTERS:
        pointer = paths.checkpoints / name
        is_latest = name == LATEST_NAME and newest is not None and required == REQUIRED_FILES
        if not pointer.exists() and not pointer.is_symlink():
            problem = "missing" if is_latest else ""
        else:
            problem = _pointer_problem(pointer, bad, required)
        if not problem and is_latest and _is_older(read_pointer(paths.checkpoints, name), newest):
            problem = f"names an older checkpoint than {newest.name if newest else ''}"
        if problem:
            mend: Mend = "latest" if is_latest else "move"
            remedy = f"--repair lets it name {newest.name}" if is_latest and newest else MOVED
            found.append(Finding(path=pointer, problem=problem, remedy=remedy, mend=mend))
    return found


def _pointer_problem(pointer: Path, bad: Collection[Path], required: Sequence[str]) -> str:
    target = read_pointer(pointer.parent, pointer.name)
    if target is None:
        return "does not hold the name of a checkpoint"
    path = pointer.parent / target
    if path in bad:
        return f"names the damaged checkpoint {target}"
    try:
        verify_checkpoint(path, required)
    except CheckpointCorrupt:
        return f"names {target}, which is no valid checkpoint"
    return ""


def _is_older(name: str | None, newest: Path | None) -> bool:
    return name is not None and newest is not None and name.isdigit() and name < newest.name


def check_resume(paths: RunPaths) -> list[Finding]:
    """What the launcher would say; of a model, which nobody resumes, nothing."""
    if required_files(paths) == PLAYABLE_FILES and checkpoints_of(paths):
        return []
    try:
        find_resume(paths.root)
    except (CheckpointCorrupt, CheckpointMissing) as error:
        problem = str(error).removeprefix(f"{paths.root}: ").removeprefix(f"{paths.checkpoints}: ")
        remedy = "the launcher refuses to go on with this run"
        return [Finding(path=paths.checkpoints, problem=problem, remedy=remedy)]
    return []


def check_config(paths: RunPaths) -> list[Finding]:
    if not paths.config.exists():
        remedy = "start the run again with its flags: the launcher writes it"
        return [Finding(path=paths.config, problem="missing", remedy=remedy)]
    try:
        load_settings(paths.config)
    except ConfigError as error:
        problem = str(error).removeprefix(f"{paths.config} ").removeprefix(f"{paths.config}: ")
        remedy = f"{MOVED}; then start the run with all of its flags, they are not stored elsewhere"
        return [Finding(path=paths.config, problem=problem, remedy=remedy, mend="move")]
    return []


def line_files(paths: RunPaths) -> list[Path]:
    """Everything that is written line by line, but the traces."""
    folders = (paths.root, paths.root / "heartbeats", paths.diagnostics)
    globs = (folder.glob(name) for folder in folders for name in ("*.jsonl", "*.jsonl.1"))
    return sorted(chain.from_iterable(globs))


def traces_of(paths: RunPaths) -> list[Path]:
    return trace_files(paths.traces) if paths.traces.is_dir() else []


def check_lines(path: Path, *, in_use: bool) -> list[Finding]:
    return _check_lines(path, line_problem, in_use=in_use)


def check_traces(path: Path, *, in_use: bool) -> list[Finding]:
    """Whether they can be read; `launch/verify.py` plays them."""
    if path.is_file() and not is_trace_log(path):
        try:
            read_trace(path)
        except TraceInvalid as error:
            return [Finding(path=path, problem=str(error), remedy=MOVED, mend="move")]
        return []
    return _check_lines(path, trace_line_problem, in_use=in_use)


def _check_lines(path: Path, problem_of: Callable[[bytes], str], *, in_use: bool) -> list[Finding]:
    if path.is_symlink() or not path.is_file():
        return [Finding(path=path, problem="not a regular file", remedy=MOVED, mend="move")]
    bad = list(bad_lines(path, problem_of, in_use=in_use))
    if not bad:
        return []
    shown = "; ".join(f"line {number}: {problem}" for number, problem in bad[:SHOWN_LINES])
    more = f"; {len(bad) - SHOWN_LINES} more" if len(bad) > SHOWN_LINES else ""
    remedy = "readers skip them; --repair moves these lines to quarantine/"
    return [Finding(path=path, problem=shown + more, remedy=remedy, mend="lines")]


def bad_lines(
    path: Path, problem_of: Callable[[bytes], str], *, in_use: bool
) -> Iterator[tuple[int, str]]:
    """Number and problem; the end of a file that is being written may be on its way."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if in_use and not line.endswith(b"\n"):
                return
            if problem := problem_of(line):
                yield number, problem


def check_leftovers(paths: RunPaths) -> list[Finding]:
    found = []
    replays = paths.replay_folders()
    cuts = [path for root in replays for path in cut_leftovers(root)]
    for path in (*find_leftovers(paths.checkpoints), *cuts):
        remedy = f"nothing reads it, the next start removes it; {MOVED}"
        problem = "left by a writer that is dead"
        found.append(
            Finding(path=path, problem=problem, remedy=remedy, mend="move", is_wrong=False)
        )
    problem = "abandoned when the run went back to an earlier checkpoint"
    for path in set_aside_in(paths.checkpoints):
        remedy = "`--resume PATH` takes it up again; remove it if nobody will"
        found.append(Finding(path=path, problem=problem, remedy=remedy, is_wrong=False))
    for path in (path for root in replays for path in set_aside_in(cuts_folder(root))):
        remedy = "it is taken up with its checkpoint; remove both if nobody will"
        found.append(Finding(path=path, problem=problem, remedy=remedy, is_wrong=False))
    return found


def check_saved_replay(root: Path, name: str) -> list[Finding]:
    """`root` is the folder of one replay server."""
    path = cuts_folder(root) / name
    try:
        check_cut(root, name)
    except CheckpointCorrupt as error:
        if not path.exists():
            return []  # Pruned by the run in the meantime.
        problem = str(error).removeprefix(f"{path}: ")
        remedy = f"a resume takes the saved replay before it; {MOVED}"
        return [Finding(path=path, problem=problem, remedy=remedy, mend="move")]
    return []


def users_of(paths: RunPaths) -> list[str]:
    """Who works on the run now, in words: its launcher, and programs that were started by hand."""
    holder = lock_holder(paths.lock)
    users = [] if holder is None else [f"launcher (process {holder})"]
    for role, index in product(SOLE_ROLES, range(MAX_SHARDS)):
        if (holder := lock_holder(paths.role_lock(role, index))) is not None:
            users.append(f"{peer_id(role, index)} (process {holder})")
    beats = {
        file.stem: last_record(file) or {}
        for file in sorted((paths.root / "heartbeats").glob("*.jsonl"))
    }
    # Those of other nodes of a cluster are brought home, where their numbers are other processes.
    for peer, beat in ((peer, beat) for peer, beat in beats.items() if is_from_here(beat)):
        pid, heard_s = beat.get("pid"), beat.get("time")
        if isinstance(pid, int) and isinstance(heard_s, float) and _lived_at(pid, heard_s):
            users.append(f"{peer} (process {pid})")
    return list(dict.fromkeys(users))


def _lived_at(pid: int, unix_s: float) -> bool:
    """Whether the process is alive and the same as then: numbers are used again."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= unix_s and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OverflowError, ValueError):
        return False
