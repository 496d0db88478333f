"""What a start would do: every setting with where it comes from, then the commands.

Without a terminal the settings are lines of TOML. Nothing is started or written.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rich.console import Console

from common.config import Settings
from common.run_paths import RunPaths
from common.settings_files import settings_to_dict
from launch.plan import plan_processes
from launch.tables import make_table

UNUSED = "not used: private sockets"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan:
    """A start as it would be."""

    settings: Settings
    origins: Mapping[str, str]
    paths: RunPaths
    resume: str
    """The checkpoint to go on from, or none."""
    lockstep: bool = False
    launcher: Mapping[str, object] = field(default_factory=dict)
    """What only the launcher is told, by name."""

    def values(self) -> Iterator[tuple[str, str, str, str]]:
        """Section, setting, value as TOML writes it, origin."""
        for section, values in settings_to_dict(self.settings).items():
            for name, value in values.items():
                origin = self.origins[name]
                shown = f"{origin}, {UNUSED}" if section == "endpoints" else origin
                # Numbers, texts and switches look the same in JSON and TOML.
                yield section, name, json.dumps(value), shown

    def launcher_values(self) -> Iterator[tuple[str, str, str, str]]:
        for name, value in self.launcher.items():
            yield "launcher", name, json.dumps(value), "flags and environment, or default"

    def commands(self) -> Iterator[str]:
        if self.lockstep:
            yield "everything in this process (--lockstep)"
            return
        for spec in plan_processes(self.settings, self.paths, resume=self.resume):
            yield f"{spec.name}: {shlex.join(spec.argv)}"


def show_plan(plan: StartPlan, console: Console) -> None:
    if not console.is_terminal:
        for line in plain_lines(plan):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    titles = ("section", "setting", "value", "from")
    rows = [*plan.values(), *plan.launcher_values()]
    console.print(make_table(titles, rows, texts=titles, folds=("value", "from")))
    console.print("would start, in this order:")
    for line in plan.commands():
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def plain_lines(plan: StartPlan) -> Iterator[str]:
    yield "# every setting of this start, and where it comes from"
    last = ""
    for section, name, value, origin in plan.values():
        if section != last:
            yield f"\n[{section}]"
            last = section
        yield f"{name} = {value}  # {origin}"
    # No part of a settings file, so that all of this is one.
    yield "\n# of the launcher itself:"
    for _, name, value, _ in plan.launcher_values():
        yield f"# {name} = {value}"
    yield "\n# would start, in this order:"
    for line in plan.commands():
        yield f"# {line}"
