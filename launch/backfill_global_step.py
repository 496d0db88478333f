"""Repairs checkpoint metadata of the single-process A3C trainer that came before this project.

Some of its versions stored no agent steps. `python launch/backfill_global_step.py DIR` works them
out from the updates. Our own checkpoints are never touched: they are folders.
"""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # The imports below take a moment, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from common.atomic_files import write_atomic, write_synced
from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.config_checks import require_between
from common.errors import ConfigError, ExitCode, MarioError

PROGRAM = Program(
    name="python launch/backfill_global_step.py",
    description="""Work out global_step in old metadata: updates x environments x rollout steps.

Reads NAME.json beside NAME.pt, below the folder. NAME.json.bak keeps what was there.

Examples:
  python launch/backfill_global_step.py trained_models --dry-run
  python launch/backfill_global_step.py trained_models --assume-rollout-steps 128
  python launch/backfill_global_step.py trained_models --update-if-lower

Exit codes: 0 done, 1 some files are broken and were skipped, 2 wrong flags or no such folder.""",
)
PREFIX = "[migrate]"
BROKEN = 1
"""Exit code when some files could not be repaired."""
SOURCE = "reconstructed_step_source"
OLD_NAMES = "a3c_world"
"""How its files begin; their weights may be elsewhere by now."""
MAX_STEPS = 2**63 - 1
Outcome = Literal["changed", "left as it was", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillArgs:
    """Where, and how far it may go."""

    folder: str = ""
    """Where the old checkpoints are, with all folders below; the first word of the command."""
    dry_run: bool = False
    """Say what would be changed; write nothing."""
    assume_rollout_steps: int = 64
    """Agent steps per environment and update, where the metadata does not tell."""
    update_if_lower: bool = False
    """Also replace a global_step that is lower than what follows from the updates."""

    def __post_init__(self) -> None:
        require_between(self, 1, 1_000_000, "assume_rollout_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What follows from a file, before anything is written."""

    content: dict[str, Any]
    old_step: int
    new_step: int
    source: dict[str, Any]

    @property
    def words(self) -> str:
        source = self.source
        return (
            f"global_step {self.old_step} -> {self.new_step} ({source['global_update']} updates "
            f"x {source['num_envs']} environments x {source['rollout_steps']} rollout steps; "
            f"updates from the {source['global_update_from']})"
        )


def main(argv: Sequence[str] | None = None) -> int:
    counts: Counter[Outcome] = Counter()
    try:
        args = parse_args(PROGRAM, command_words(argv, "--folder"), BackfillArgs())
        for path in find_metadata(args.folder):
            outcome, words = backfill(path, args)
            counts[outcome] += 1
            say(f"{path}: {words}")
        total = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        said = " (dry run: nothing was written)" if args.dry_run else ""
        say(f"{sum(counts.values())} files: {total or 'nothing to do'}{said}")
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        abandon_stdout()
    return BROKEN if counts["broken"] else int(ExitCode.DONE)


def say(line: str) -> None:
    print(f"{PREFIX} {line}", flush=True)


def find_metadata(folder: str) -> Iterator[Path]:
    """In a fixed order; links to folders are not followed."""
    root = Path(folder)
    if not folder or not root.is_dir():
        raise ConfigError(f"expected a folder of old checkpoints, got {folder!r}")
    for path in sorted(root.rglob("*.json")):
        is_old = path.with_suffix(".pt").exists() or path.name.startswith(OLD_NAMES)
        if is_old and path.is_file():
            yield path


def backfill(path: Path, args: BackfillArgs) -> tuple[Outcome, str]:
    """What became of one file, and why, in words."""
    try:
        content = read_metadata(path)
        repair = work_out(path, content, args.assume_rollout_steps)
        if repair is None:
            return "left as it was", "left as it is: it was saved before the first update"
        if repair.old_step >= repair.new_step or (repair.old_step and not args.update_if_lower):
            hint = "" if repair.old_step >= repair.new_step else " (--update-if-lower replaces it)"
            return "left as it was", f"left as it is: global_step is {repair.old_step}{hint}"
        if not args.dry_run:
            write_repair(path, repair)
    except ConfigError as error:
        return "broken", f"skipped: {error}"
    except OSError as error:
        return "broken", f"skipped: {error.strerror}"
    return "changed", f"{'would be ' if args.dry_run else ''}{repair.words}"


def read_metadata(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"expected an object, got {type(content).__name__}")
    for name in ("save_state", "vector_env"):
        if not isinstance(content.get(name, {}), dict):
            raise ConfigError(f"expected an object as {name}, got {content[name]!r}")
    return content


def work_out(path: Path, content: dict[str, Any], assumed_rollout_steps: int) -> Repair | None:
    """The repair that follows from the updates; None when there were none."""
    state = content.get("save_state", content)
    updates, source = _count(state, "global_update"), "metadata"
    if not updates:
        updates, source = updates_in_weights(path.with_suffix(".pt"), updates), ".pt"
    if updates == 0:
        return None
    environments = _count(content.get("vector_env", content), "num_envs")
    if not environments:
        raise ConfigError("expected num_envs of at least 1, got none")
    told = _count(content, "rollout_steps")
    rollout_steps = told or assumed_rollout_steps
    steps = updates * environments * rollout_steps
    if steps > MAX_STEPS:
        raise ConfigError(f"{updates} updates of {environments} environments cannot be true")
    return Repair(
        content=content,
        old_step=_count(state, "global_step") or 0,
        new_step=steps,
        source={
            "method": "global_update x num_envs x rollout_steps",
            "global_update": updates,
            "global_update_from": source,
            "num_envs": environments,
            "rollout_steps": rollout_steps,
            "rollout_steps_from": "metadata" if told else "--assume-rollout-steps",
            "computed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
    )


def _count(values: dict[str, Any], name: str) -> int | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(f"expected a number as {name}, got {value!r}")
    return value


def updates_in_weights(path: Path, told: int | None) -> int:
    """What the weights themselves say; the metadata said nothing, or 0."""
    if not path.exists():
        if told == 0:
            return 0
        raise ConfigError(f"it tells no global_update, and {path.name} is not there")
    import torch  # noqa: PLC0415 - only files that tell too little need it

    try:
        # The user's own old file, and still only tensors and numbers are let in (SECURITY.md).
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Whatever a damaged or foreign file makes its reader raise.
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"{path.name} cannot be read as plain weights: {reason}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path.name} holds no counters")
    updates = _count(content, "global_update")
    if updates is None and told is None:
        raise ConfigError(f"neither it nor {path.name} tells global_update")
    return updates or 0


def write_repair(path: Path, repair: Repair) -> None:
    """The copy first; one that is there already holds what was there before any repair."""
    backup = path.with_name(path.name + ".bak")
    if not backup.exists():
        write_synced(backup, path.read_bytes())
        shutil.copystat(path, backup)
    content = {**repair.content, SOURCE: repair.source}
    counters = {"global_step": repair.new_step, "global_update": repair.source["global_update"]}
    if "save_state" in content:
        content["save_state"] = {**content["save_state"], **counters}
    else:
        content |= counters
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_atomic(path, text.encode("utf-8", errors="surrogatepass") + b"\n")
    shutil.copymode(backup, path)


if __name__ == "__main__":
    sys.exit(main())
