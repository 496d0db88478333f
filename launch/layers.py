"""Settings laid over each other, and where each of them came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from common.config import RunSettings, Settings
from common.environment import SOURCE, Given, blamed
from common.errors import ConfigError
from common.settings_files import (
    read_sections,
    setting_differences,
    settings_from_dict,
    settings_to_dict,
)
from launch.run_dir import BUDGETS, without_budgets

DEFAULT, STORED, FLAG = "default", "stored run", "flag"


class Layers:
    """Begins with the defaults; what is laid on later wins."""

    def __init__(self, place: RunSettings) -> None:
        self.settings = Settings(run=place)
        names = [name for section in settings_to_dict(self.settings).values() for name in section]
        self.origins = dict.fromkeys(names, DEFAULT)

    def lay_stored(self, config: Path) -> None:
        """A run that goes on keeps its settings, but not its name, its place and its budgets."""
        here = self.settings.run
        self.lay_file(config, STORED)
        stored = without_budgets(self.settings)
        self.origins |= dict.fromkeys(("run", "runs_dir", *BUDGETS), DEFAULT)
        place = replace(stored.run, run=here.run, runs_dir=here.runs_dir)
        self.settings = replace(stored, run=place)

    def lay_file(self, path: Path, origin: str) -> None:
        self.lay_sections(read_sections(path), str(path), origin)

    def lay_sections(self, values: Mapping[str, object], source: str, origin: str) -> None:
        """`source` names the file in errors."""
        self.settings = settings_from_dict(values, self.settings, source)
        for section in values.values():
            # The settings have checked that every section is a table.
            names = section if isinstance(section, Mapping) else ()
            self.origins |= {str(name): origin for name in names}

    def lay_environment(self, given: Sequence[Given]) -> None:
        """All variables at once: one alone may not fit what another one changes too."""
        sections = {one.section for one in given}
        values = {
            section: {one.field: one.value for one in given if one.section == section}
            for section in sections
        }
        try:
            self.settings = settings_from_dict(values, self.settings, SOURCE)
        except ConfigError as error:
            raise blamed(error, given) from error
        self.origins |= {one.field: f"{SOURCE} {one.variable}" for one in given}

    def lay_flags(self, words: Sequence[str], settings: Settings) -> None:
        """What the command line made of the settings."""
        self.settings = settings
        for word in words:
            name = word.partition("=")[0].removeprefix("--").replace("-", "_")
            known = {name, name.removeprefix("no_")} & self.origins.keys()
            if word.startswith("--"):
                self.origins |= dict.fromkeys(known, FLAG)


def note_changes(
    origins: Mapping[str, str], before: Settings, after: Settings, why: str
) -> dict[str, str]:
    """Origins after something changed settings by itself."""
    changed = setting_differences(before, after)
    return {**origins, **{name: f"{origins[name]}, {why}" for name in changed}}
