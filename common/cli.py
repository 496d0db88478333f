"""Command lines: flags are the settings in kebab-case, laid over the defaults or a file."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import tyro

from common.config import Settings
from common.errors import ConfigError, ExitCode, MarioError
from common.settings_files import load_settings

Args = TypeVar("Args")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
MAX_SUGGESTIONS = 3
CONFIG = "--config"


def flag_value(argv: Sequence[str], flag: str) -> str | None:
    """The value of a flag that decides over the defaults of all others, read before parsing.

    As in parsing the last one wins, and `_` is as good as `-`.
    """
    value = None
    for index, word in enumerate(argv):
        name, has_value, inline = word.partition("=")
        if name.replace("_", "-") != flag:
            continue
        if has_value:
            value = inline
        elif index + 1 < len(argv):
            value = argv[index + 1]
    return value


def command_words(argv: Sequence[str] | None, first: str) -> list[str]:
    """The words of a command whose first one needs no flag, and for which -o means --output."""
    words = list(sys.argv[1:] if argv is None else argv)
    words = ["--output" if word == "-o" else word for word in words]
    return [first, *words] if words and not words[0].startswith("-") else words


def settings_from_config_flag(argv: Sequence[str]) -> Settings:
    """The settings in the file that `--config` names, else the defaults."""
    path = config_path(argv)
    return Settings() if path is None else load_settings(Path(path))


def config_path(argv: Sequence[str]) -> str | None:
    """The file that `--config` names. Nobody means the defaults by a flag without its value."""
    last = max((at for at, word in enumerate(argv) if word.partition("=")[0] == CONFIG), default=-1)
    if last < 0:
        return None
    path = flag_value(argv[last : last + 2], CONFIG)
    if not path or path.startswith("--"):
        raise ConfigError(f"{CONFIG}: expected the path of a file, got {path or 'nothing'}")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How a command introduces itself in `--help` and in errors."""

    name: str
    description: str
    """What it does, then examples."""


def parse_args(program: Program, argv: Sequence[str], default: Args) -> Args:
    """Parse flags over `default`. A wrong flag ends the process with exit code 2 and one line."""
    _let_stdout_take_any_text()
    refusal = io.StringIO()
    try:
        with contextlib.redirect_stderr(refusal):
            return tyro.cli(
                type(default),
                args=list(argv),
                default=default,
                prog=program.name,
                description=program.description,
                config=(tyro.conf.OmitArgPrefixes,),
            )
    except BrokenPipeError:
        # `--help | head`: nobody reads on, and the interpreter must not try to flush at its end.
        abandon_stdout()
        raise SystemExit(0) from None
    except SystemExit:
        if said := refusal.getvalue():
            sys.stderr.write(f"{program.name}: {in_one_line(said)}; see {program.name} --help\n")
        raise


def _let_stdout_take_any_text() -> None:
    """A terminal that knows only ASCII gets names of folders with escapes, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def in_one_line(box: str) -> str:
    """What tyro says in sections under a title: the first of them, and the flags in the others.

    Where the terminal knows no frames, the title has a section of its own.
    """
    sections: list[list[str]] = [[]]
    for line in ANSI.sub("", box).splitlines():
        text = line.strip("│ \t")
        if line.startswith(("╭", "╰")) or not text.strip("─-"):
            sections.append([])
        else:
            sections[-1].append(text)
    filled = [section for section in sections if section]
    first, *others = filled[1:] if sections[0] and len(filled) > 1 else filled or [[box.strip()]]
    flags = [text for section in others for text in section if text.startswith("--")]
    word = "perhaps you meant" if "Perhaps you meant" in box else "expected"
    hint = f"; {word} {', '.join(flags[:MAX_SUGGESTIONS])}" if flags else ""
    return " ".join(first) + hint


def abandon_stdout() -> None:
    """After a broken pipe: what is still buffered goes nowhere instead of raising at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_command(
    program: Program,
    body: Callable[[], int],
    *,
    unread: ExitCode = ExitCode.DONE,
    describe: Callable[[OSError], MarioError] | None = None,
) -> int:
    """The exit code of a command; errors of ours become one line.

    `unread` is for a command whose output nobody reads any more, `describe` for one that tells
    errors of the system in its own words.
    """
    try:
        return int(body())
    except MarioError as error:
        return refuse(program, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        abandon_stdout()
        return int(unread)
    except OSError as error:
        if describe is None:
            raise
        return refuse(program, describe(error))


def refuse(program: Program, error: MarioError) -> int:
    """One line that says what was expected, what was given and what to do."""
    sys.stderr.write(f"{program.name}: {error}\n")
    return int(error.exit_code)
