"""Whether a start goes on with a run, from where, and with which of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from common.config import Settings
from common.config_checks import flag_of
from common.errors import CheckpointMissing, ConfigError
from common.resume import CHECKPOINTS_FOLDER, CheckpointSearch, ResumePoint, find_resume
from common.run_paths import RunPaths
from common.settings_files import load_settings, setting_differences

# A network with other shapes cannot take the stored weights.
FIXED = frozenset({"network", "num_quantiles", "size", "stack", "actions", "game"})
# These describe a start, not the run.
IGNORED = frozenset(
    {
        "replay_endpoint",
        "weights_endpoint",
        "telemetry_endpoint",
        "control_endpoint",
        "max_agent_steps",
        "max_minutes",
        "max_updates",
        "runs_dir",
    }
)


WHY_TAKEN = {
    "explicit": "as asked for",
    "numbered": "the newest valid one of this run",
    "latest": "named by `latest`",
    "search": "the newest valid one that was found",
}


def choose_resume(resume: str, paths: RunPaths, runs_root: Path) -> ResumePoint | None:
    """`auto` looks at this run only; `latest` must find something, here or in another run."""
    if resume == "none":
        return None
    if resume == "auto":
        return find_resume(paths.root)
    if resume != "latest":
        return find_resume(paths.root, explicit=Path(resume))
    point = find_resume(paths.root, runs_root=runs_root)
    if point is None:
        raise CheckpointMissing(
            f"--resume: no checkpoint below {runs_root}; start without --resume"
        )
    return point


def describe_origin(point: ResumePoint, paths: RunPaths) -> str:
    """Whose checkpoint it is, in words, when it is not this run's own."""
    if point.path.resolve().is_relative_to(paths.root.resolve()):
        return ""
    folder = point.path.parent
    other = folder.parent.name if folder.name == CHECKPOINTS_FOLDER else folder.name
    return f", of run {other}, not of {paths.root.name}"


def describe_resume(point: ResumePoint, paths: RunPaths) -> Iterator[str]:
    """What was found where, in lines for the terminal; those that warn say so first."""
    for problem in point.skipped:
        yield f"WARNING: skipped {problem}"
    search = point.search
    if search is not None:
        yield (
            f"searched {search.entries:,} entries below {search.root}: "
            f"{len(search.found)} checkpoints in {_count_runs(search)} folders"
        )
        if not search.is_whole:
            yield "WARNING: the search ended at its bound; give a newer one with --resume PATH"
    yield (
        f"going on from {point.path} at {point.agent_steps:,} agent steps"
        f"{describe_origin(point, paths)}, {WHY_TAKEN[point.source]} (--fresh begins anew)"
    )


def _count_runs(search: CheckpointSearch) -> int:
    return len({path.parent for path in search.found})


def changed_settings(paths: RunPaths, settings: Settings) -> Mapping[str, tuple[object, object]]:
    """What differs from the stored run; refuses what would change the shape of the network."""
    if not paths.config.exists():
        return {}
    differences = setting_differences(load_settings(paths.config), settings)
    changed = {name: pair for name, pair in differences.items() if name not in IGNORED}
    fixed = sorted(FIXED & changed.keys())
    if fixed:
        old, new = changed[fixed[0]]
        raise ConfigError(
            f"{flag_of(fixed[0])} was {old} in this run and cannot become {new}: "
            "its weights would not fit; use --fresh or another --run"
        )
    return changed
