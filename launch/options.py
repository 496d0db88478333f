"""The settings of a start: defaults, then the stored run, then a preset, then flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from common.cli import Program, flag_value, parse_args
from common.config import RunSettings, Settings
from common.errors import ConfigError
from common.ids import check_run_name
from common.run_paths import RunPaths
from common.settings_files import load_settings
from launch.run_dir import without_budgets

PROGRAM = Program(
    name="python launch/local.py",
    description="""Train on this machine: starts, watches, restarts and stops all processes.

Examples:
  python launch/local.py --actors 8
  python launch/local.py --preset laptop --device cpu --max-minutes 15 --run first
  python launch/local.py --run first --resume --dashboard
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArgs:
    """The settings of the run, and what only the launcher needs."""

    settings: Settings = field(default_factory=Settings)
    preset: str = ""
    """smoke, laptop, workstation, or the path of a TOML file; flags go over it."""
    resume: str = "auto"
    """auto and latest: the newest valid checkpoint of the run; a path; or none. Alone: latest."""
    fresh: bool = False
    """Begin anew; an existing run of that name is moved aside."""
    lockstep: bool = False
    """Everything in one process and one thread, repeatable bit for bit; slow, for debugging."""
    plain: bool = False
    """Print plain lines instead of the live view."""
    dashboard: bool = False
    """Show the run in the browser while it goes on (extra dashboard); prints the address."""

    def __post_init__(self) -> None:
        if self.fresh and self.resume not in ("auto", "none"):
            raise ConfigError(f"--fresh and --resume {self.resume} contradict each other; drop one")


def preset_names() -> list[str]:
    folder = resources.files("launch.presets")
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def preset_path(name: str) -> Path:
    """A shipped preset by name, or any TOML file by path."""
    if name in preset_names():
        return Path(str(resources.files("launch.presets") / f"{name}.toml"))
    if name.endswith(".toml"):
        return Path(name)
    raise ConfigError(
        f"--preset must be one of {', '.join(preset_names())} or the path of a .toml file, "
        f"got {name!r}"
    )


def parse_local(argv: Sequence[str]) -> LocalArgs:
    words = _complete_resume(argv)
    _refuse_config_flag(words)
    settings = stored_settings(words)
    preset = flag_value(words, "--preset")
    if preset:
        settings = load_settings(preset_path(preset), settings)
    return parse_args(PROGRAM, words, LocalArgs(settings=settings))


def stored_settings(words: Sequence[str]) -> Settings:
    """A run that goes on keeps its settings; flags may change them."""
    default = RunSettings()
    run = check_run_name(flag_value(words, "--run") or default.run)
    given = flag_value(words, "--runs-dir")
    runs_dir = default.runs_dir if given is None else given
    place = replace(default, run=run, runs_dir=runs_dir)
    config = RunPaths.of(place).config
    begins_anew = "--fresh" in words or flag_value(words, "--resume") == "none"
    try:
        has_stored = config.exists()
    except OSError as error:
        raise ConfigError(
            f"cannot use --runs-dir {runs_dir}: {error.strerror}; choose another one"
        ) from error
    if begins_anew or not has_stored:
        return Settings(run=place)
    stored = without_budgets(_load_stored(config))
    return replace(stored, run=replace(stored.run, run=run, runs_dir=runs_dir))


def _load_stored(config: Path) -> Settings:
    try:
        return load_settings(config)
    except ConfigError as error:
        raise ConfigError(
            f"{error}; see python launch/doctor.py {config.parent}, or begin anew with --fresh"
        ) from error


def _refuse_config_flag(words: Sequence[str]) -> None:
    """The flag of the single programs, whose file is a preset here; no other name is near it."""
    if any(word.partition("=")[0] == "--config" for word in words):
        raise ConfigError(
            "--config is a flag of the single programs; here give a TOML file with settings as "
            "--preset FILE, and an earlier run as --run NAME"
        )


def _complete_resume(argv: Sequence[str]) -> list[str]:
    """`--resume` without a value means the newest checkpoint."""
    words = list(argv)
    for index, word in enumerate(words):
        is_last = index + 1 == len(words)
        if word == "--resume" and (is_last or words[index + 1].startswith("--")):
            return [*words[: index + 1], "latest", *words[index + 1 :]]
    return words
