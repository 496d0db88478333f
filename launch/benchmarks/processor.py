"""Processor time of all processes of a run, by the program that each of them is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import psutil

Worked = Mapping[tuple[int, str], float]
"""Processor seconds so far, by process and its program."""


def worked(root: int) -> Worked:
    """Of a process and all that it started, as far as they still run."""
    found: dict[tuple[int, str], float] = {}
    parent = psutil.Process(root)
    for process in (parent, *parent.children(recursive=True)):
        try:
            times = process.cpu_times()
            key = process.pid, program_of(process.cmdline(), process.name())
        except psutil.Error:
            continue
        found[key] = float(times.user + times.system)
    return found


def cores_between(before: Worked, after: Worked, seconds: float) -> dict[str, float]:
    """Processor seconds per second, by program; a process that has ended takes its own along."""
    used: dict[str, float] = defaultdict(float)
    for key, worked_s in after.items():
        used[key[1]] += (worked_s - before.get(key, 0.0)) / seconds
    return dict(used)


def program_of(words: Sequence[str], name: str) -> str:
    """The module or script of a Python process, else its name; Ray's workers name themselves."""
    if not words:
        return name
    if words[0].startswith("ray::"):
        return words[0].split(".")[0]
    if "-m" in words[1:-1]:
        return words[words.index("-m") + 1]
    scripts = [PurePath(word).name for word in words[1:] if word.endswith(".py")]
    return scripts[0] if scripts else name
