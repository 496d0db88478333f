"""Small runs over the versions of the dependencies that are supported, one environment each.

`make compat` builds a wheel once, installs it with every set of versions below, trains for a
moment with each, lets each read the checkpoints of all, and go on from those of another.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from rich.console import Console

from common.checkpoint_files import list_numbered
from common.cli import Program, parse_args, refuse
from common.errors import ConfigError, ExitCode, MarioError
from launch.tables import make_table

ROOT: Final = Path(__file__).resolve().parent.parent
PROGRAM: Final = Program(
    name="python -m tests.compat",
    description="""Train for a moment with every supported set of versions; read each other's work.

Examples:
  make compat
  make compat ARGS="--sets pinned numpy-1.26"
  make compat ARGS="--torch 2.13.0 2.14.1 --folder /tmp/compat"

Environments in the folder are used again as long as their versions stay the same.
Exit codes: 0 all is well, 1 something is not, 2 wrong settings.""",
)
SETS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "pinned": {},
        # OpenCV asks for NumPy 2 from 4.12 on.
        "numpy-1.26": {"numpy": "1.26.4", "opencv-python-headless": "4.11.0.86"},
        "gymnasium-1.1": {"gymnasium": "1.1.1"},
        # The lower bounds of pyproject.toml; that of torch is a parameter of its own.
        "oldest": {
            "gymnasium": "1.1.0",
            "msgpack": "1.1.0",
            "numpy": "1.26.0",
            "nvidia-ml-py": "12.570.86",
            "opencv-python-headless": "4.10.0.84",
            "psutil": "6.0.0",
            "pyzmq": "27.0.0",
            "rich": "14.0.0",
            "safetensors": "0.8.0",
            "tyro": "1.0.0",
        },
    }
)
"""What differs from constraints.txt. nes-py has one release that this Python can install."""
SOURCES: Final = (
    *("actor", "common", "launch", "learner", "replay_server"),
    *("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"),
)
"""What the package is made of."""
SHOWN: Final = ("torch", "numpy", "gymnasium", "nes-py", "opencv-python-headless")
FAILED: Final = 1
INSTALL_DEADLINE_S: Final = 3_600.0
RUN_DEADLINE_S: Final = 1_800.0
SMOKE: Final = (
    *("-m", "launch.local", "--preset", "smoke", "--device", "cpu", "--plain"),
    *("--max-minutes", "20", "--evaluators", "0", "--patience", "10"),
)
SMOKE_AGENT_STEPS: Final = 600
FURTHER_AGENT_STEPS: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatArgs:
    sets: tuple[str, ...] = tuple(SETS)
    """Which sets of versions to try."""
    torch: tuple[str, ...] = ()
    """Versions of torch, each with every set; the pinned one when none is named."""
    folder: str = ".compat"
    """Where the environments and the runs go; some gigabytes."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.sets) - SETS.keys())
        if unknown or not self.sets:
            raise ConfigError(f"--sets must be of {', '.join(SETS)}, got {', '.join(unknown)}")


@dataclass(slots=True, kw_only=True)
class Environment:
    """One set of versions, and how it went."""

    name: str
    python: Path
    runs: Path
    versions: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    """What was tried, in order: ok, or why it went wrong."""

    @property
    def is_sound(self) -> bool:
        return all(outcome == "ok" for outcome in self.outcomes.values())

    def attempt(self, what: str, words: Sequence[str], deadline_s: float = RUN_DEADLINE_S) -> bool:
        """Run Python with these words; of several attempts at the same, one failure counts."""
        problem = run_words([str(self.python), *words], self.runs, deadline_s)
        if self.outcomes.get(what, "ok") == "ok":
            self.outcomes[what] = problem or "ok"
        return not problem


def main(argv: Sequence[str] | None = None) -> int:
    console = Console()
    try:
        args = parse_args(PROGRAM, list(sys.argv[1:] if argv is None else argv), CompatArgs())
        folder = Path(args.folder).resolve()
        wheel = build_wheel(folder)
        environments = [
            install(folder, name, torch, wheel)
            for torch in args.torch or (pinned("torch"),)
            for name in args.sets
        ]
        examine(environments, console)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    show(environments, console)
    return int(ExitCode.DONE) if all(one.is_sound for one in environments) else FAILED


def build_wheel(folder: Path) -> Path:
    """Once, of a copy: what an earlier build left in the checkout must not get into it."""
    source, target = folder / "source", folder / "wheel"
    for old in (source, target):
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, source / name, ignore=unwanted)
        else:
            shutil.copy2(ROOT / name, source / name)
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(target), str(source)]
    if problem := run_words(words, folder, INSTALL_DEADLINE_S):
        raise ConfigError(f"the wheel cannot be built: {problem}")
    (wheel,) = target.glob("*.whl")
    return wheel


def install(folder: Path, name: str, torch: str, wheel: Path) -> Environment:
    place = folder / f"{name}-torch-{torch}"
    runs = place / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    python = place / "venv" / "bin" / "python"
    environment = Environment(name=name, python=python, runs=runs)
    text = "".join(f"{line}\n" for line in constraints({**SETS[name], "torch": torch}))
    constraints_file, stamp = place / "constraints.txt", place / "installed"
    constraints_file.write_text(text, encoding="utf-8")
    pip = ("-m", "pip", "install", "--disable-pip-version-check", "-q")
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == text):
        words = [sys.executable, "-m", "venv", "--clear", str(place / "venv")]
        environment.outcomes["install"] = run_words(words, runs, INSTALL_DEADLINE_S) or "ok"
        environment.attempt(
            "install", [*pip, "-c", str(constraints_file), str(wheel)], INSTALL_DEADLINE_S
        )
    # The code may have changed while the versions did not.
    again = [*pip, "--force-reinstall", "--no-deps", str(wheel)]
    if environment.attempt("install", again, INSTALL_DEADLINE_S):
        stamp.write_text(text, encoding="utf-8")
        environment.versions = installed_versions(python)
    return environment


def constraints(changes: Mapping[str, str]) -> list[str]:
    """The pinned versions with some changed; names are compared as pip does."""
    wanted = {_plain(name): f"{name}=={version}" for name, version in changes.items()}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if _plain(line.partition("==")[0]) not in wanted]
    return [*kept, *wanted.values()]


def pinned(name: str) -> str:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)[name]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def installed_versions(python: Path) -> dict[str, str]:
    script = "import sys, importlib.metadata as m; print(*(m.version(n) for n in sys.argv[1:]))"
    output = subprocess.check_output([str(python), "-c", script, *SHOWN], text=True, env=_clean())
    return dict(zip(SHOWN, output.split(), strict=True))


def examine(environments: Sequence[Environment], console: Console) -> None:
    """Each trains, each reads what all wrote, each goes on from the one before it."""
    usable = [one for one in environments if one.is_sound]
    for one in usable:
        console.print(f"training with {one.name}", highlight=False)
        train(one, "smoke", SMOKE_AGENT_STEPS)
    writers = [one for one in usable if (one.runs / "smoke").is_dir()]
    for reader in usable:
        for writer in writers:
            reader.attempt("reads all", ["-m", "launch.doctor", str(writer.runs / "smoke")])
    for reader, writer in zip(usable, [*usable[-1:], *usable[:-1]], strict=True):
        console.print(f"{reader.name} goes on from {writer.name}", highlight=False)
        words = ("--resume", str(writer.runs / "smoke"))
        train(reader, "resumed", FURTHER_AGENT_STEPS, *words)


def train(environment: Environment, run: str, agent_steps: int, *words: str) -> None:
    place = ("--runs-dir", str(environment.runs), "--run", run)
    begin = () if words else ("--fresh",)
    steps = ("--max-agent-steps", str(agent_steps))
    environment.attempt(run, [*SMOKE, *place, *begin, *steps, *words])
    reached = [int(path.name) for path in list_numbered(environment.runs / run / "checkpoints")]
    if environment.outcomes[run] == "ok" and max(reached, default=0) < agent_steps:
        environment.outcomes[run] = f"its newest checkpoint is at {max(reached, default=0)}"


def run_words(words: Sequence[str], folder: Path, deadline_s: float) -> str:
    """Empty when it went well, else a line about why not."""
    try:
        result = subprocess.run(
            words,
            cwd=folder,
            env=_clean(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=deadline_s,
        )
    except subprocess.TimeoutExpired:
        return f"not done within {deadline_s:.0f} s"
    return "" if result.returncode == 0 else reason_in(result.stdout, result.returncode)


def reason_in(output: str, code: int) -> str:
    """What the launcher says of its end, else the last line, where most programs say why."""
    lines = [line for line in output.splitlines() if line.strip()]
    ends = [line for line in lines if line.startswith("the run ended: ")]
    return (ends or lines or [f"exit code {code}"])[-1]


def _clean() -> dict[str, str]:
    """What is installed must be found, not what lies around."""
    unwanted = ("PYTHONPATH", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def show(environments: Iterable[Environment], console: Console) -> None:
    tried = ("install", "smoke", "reads all", "resumed")
    titles = ("set", *SHOWN, *tried)
    rows = [
        [
            one.name,
            *(one.versions.get(name, "-") for name in SHOWN),
            *(one.outcomes.get(what, "-") for what in tried),
        ]
        for one in environments
    ]
    wide = console if console.is_terminal else Console(width=200)
    wide.print(make_table(titles, rows, texts=titles, folds=tried))


if __name__ == "__main__":
    sys.exit(main())
