"""The settings of a start: defaults, stored run, presets, environment, flags; the last one wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path

from common.cli import Program, flag_value, parse_args
from common.config import RunSettings, Settings
from common.environment import (
    BOOTSTRAP_VARIABLE,
    Given,
    blamed,
    given_settings,
    given_values,
    has_bootstrap,
    unknown_variables,
    variable_of,
)
from common.errors import ConfigError
from common.run_paths import RunPaths
from launch.layers import Layers

PROGRAM = Program(
    name="python launch/local.py",
    description="""Train on this machine: starts, watches, restarts and stops all processes.

Examples:
  python launch/local.py --actors 8
  python launch/local.py --preset laptop --device cpu --max-minutes 15 --run first
  python launch/local.py --run first --resume --dashboard
  python launch/local.py --preset bootstrap --auto-mem --dry-run

Every setting can also come from the environment (docs/configuration.md): flags go over it.""",
)


BOOTSTRAP = "bootstrap"
"""The preset that BOOTSTRAP=1 adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArgs:
    """The settings of the run, and what only the launcher needs."""

    settings: Settings = field(default_factory=Settings)
    preset: str = ""
    """smoke, laptop, workstation, bootstrap, stable, or the path of a TOML file; the environment
    and flags go over it."""
    resume: str = "auto"
    """auto: the newest valid checkpoint of the run; latest: the same, else the newest one below
    RUNS_DIR; a path; or none. Alone: latest."""
    fresh: bool = False
    """Begin anew; an existing run of that name is moved aside."""
    lockstep: bool = False
    """Everything in one process and one thread, repeatable bit for bit; slow, for debugging."""
    plain: bool = False
    """Print plain lines instead of the live view."""
    dashboard: bool = False
    """Show the run in the browser while it goes on (extra dashboard); prints the address."""
    auto_mem: bool = False
    """Fit replay capacity, batch size and actors to the memory that is free; when memory runs out
    all the same, go on from the checkpoint with less."""
    dry_run: bool = False
    """Print every setting with where it came from and the commands; start and write nothing."""

    def __post_init__(self) -> None:
        if self.fresh and self.resume not in ("auto", "none"):
            raise ConfigError(f"--fresh and --resume {self.resume} contradict each other; drop one")
        ranks = self.settings.learner.learner_ranks
        for flag, is_given in (("--lockstep", self.lockstep), ("--auto-mem", self.auto_mem)):
            if ranks > 1 and is_given:
                raise ConfigError(f"{flag} knows one learner, and --learner-ranks is {ranks}")
        shards = self.settings.replay.replay_shards
        if self.lockstep and shards > 1:
            raise ConfigError(f"--lockstep has one replay server, got --replay-shards {shards}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A start, where each of its settings came from, and what a person should know of that."""

    args: LocalArgs
    origins: Mapping[str, str]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A command that starts runs with these settings, and what its own file says of them."""

    program: Program = PROGRAM
    preset: str = ""
    """Where neither a flag nor the environment names one."""
    sections: Mapping[str, object] = field(default_factory=dict)
    """Over the preset, below the environment."""
    source: str = ""
    """Names the file in errors."""

    def text(self, name: str) -> str | None:
        """What the file says of the run's name or place, checked later with all the others."""
        section = self.sections.get("run")
        value = section.get(name) if isinstance(section, Mapping) else None
        return value if isinstance(value, str) else None


def parse_local(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> LocalArgs:
    return resolve(argv, environment or {}).args


def resolve(
    argv: Sequence[str], environment: Mapping[str, str], front: Front | None = None
) -> Resolution:
    """Who speaks first wins: flags, environment, presets, the stored run, defaults."""
    words, front = _complete_resume(argv), front or Front()
    _refuse_config_flag(words)
    given, own = given_settings(environment), given_values(LocalArgs, environment)
    layers = stored_layers(words, given, own, front)
    presets = chosen_presets(words, own, environment, front)
    for name in presets:
        layers.lay_file(preset_path(name), f"preset {name}")
    layers.lay_sections(front.sections, front.source, f"file {front.source}")
    layers.lay_environment(given)
    args = parse_args(front.program, words, LocalArgs(settings=layers.settings, **own))
    layers.lay_flags(words, args.settings)
    return Resolution(
        args=args,
        origins=layers.origins,
        notes=_notes(presets, [*(one.variable for one in given), *map(variable_of, own)]),
        warnings=tuple(unknown_variables(environment, known_variables())),
    )


def known_variables() -> set[str]:
    sections = [type(getattr(Settings(), item.name)) for item in fields(Settings)]
    return {variable_of(item.name) for kind in (*sections, LocalArgs) for item in fields(kind)}


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """For those who start a run whose flags alone must say what it is."""
    unwanted = known_variables() | {BOOTSTRAP_VARIABLE}
    return {name: value for name, value in environment.items() if name not in unwanted}


def chosen_presets(
    words: Sequence[str],
    own: Mapping[str, object],
    environment: Mapping[str, str],
    front: Front,
) -> list[str]:
    """At most two: the one that was asked for, and over it bootstrap, if BOOTSTRAP says so."""
    by_flag, by_variable = flag_value(words, "--preset"), str(own.get("preset", ""))
    if by_variable and not by_flag:
        _check_preset(by_variable)
    chosen = by_flag or by_variable or front.preset
    presets = [chosen] if chosen else []
    return [*presets, BOOTSTRAP] if has_bootstrap(environment) and chosen != BOOTSTRAP else presets


def _check_preset(name: str) -> None:
    try:
        preset_path(name)
    except ConfigError as error:
        raise ConfigError(f"{variable_of('preset')}: {error}") from error


def _notes(presets: Sequence[str], variables: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if variables:
        notes.append(f"from the environment: {', '.join(variables)} (--dry-run shows every value)")
    if BOOTSTRAP in presets[1:]:
        notes.append(f"{BOOTSTRAP_VARIABLE}=1: the preset bootstrap goes over {presets[0]}")
    return tuple(notes)


def stored_layers(
    words: Sequence[str],
    given: Sequence[Given],
    own: Mapping[str, object],
    front: Front,
) -> Layers:
    """A run that goes on keeps its settings; whatever is laid on later may change them."""
    place = _place(words, given, front)
    layers = Layers(place)
    config = RunPaths.of(place).config
    try:
        has_stored = config.exists()
    except OSError as error:
        raise ConfigError(
            f"cannot use --runs-dir {place.runs_dir}: {error.strerror}; choose another one"
        ) from error
    if has_stored and not _begins_anew(words, own):
        _lay_stored(layers, config)
    return layers


def _place(words: Sequence[str], given: Sequence[Given], front: Front) -> RunSettings:
    """Which run, and where: known before anything else, because it may have stored settings."""
    default = RunSettings()
    default = RunSettings(
        run=front.text("run") or default.run, runs_dir=front.text("runs_dir") or default.runs_dir
    )
    names = {one.field: str(one.value) for one in given}
    try:
        default = replace(
            default,
            run=names.get("run", default.run),
            runs_dir=names.get("runs_dir", default.runs_dir),
        )
    except ConfigError as error:
        raise blamed(error, given) from error
    run, runs_dir = flag_value(words, "--run"), flag_value(words, "--runs-dir")
    return RunSettings(
        run=run or default.run, runs_dir=default.runs_dir if runs_dir is None else runs_dir
    )


def _begins_anew(words: Sequence[str], own: Mapping[str, object]) -> bool:
    switches = [word for word in words if word in ("--fresh", "--no-fresh")]
    fresh = switches[-1] == "--fresh" if switches else own.get("fresh", False)
    return bool(fresh) or (flag_value(words, "--resume") or own.get("resume")) == "none"


def _lay_stored(layers: Layers, config: Path) -> None:
    try:
        layers.lay_stored(config)
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
