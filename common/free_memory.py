"""How much can be allocated now: RAM within the limits of our control groups, or device memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import torch

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def free_memory_bytes(device: torch.device) -> int:
    """What can be allocated now on the device."""
    if device.type != "cuda":
        return free_ram_bytes()
    import torch  # noqa: PLC0415 - a second of start-up that only torch users should pay

    free_bytes, _ = torch.cuda.mem_get_info(device)
    return int(free_bytes)


def free_ram_bytes() -> int:
    available = int(psutil.virtual_memory().available)
    limit = cgroup_free_bytes(_CGROUP_ROOT, _MEMBERSHIP)
    return available if limit is None else min(available, limit)


def oom_kills(statistics: Path = Path("/proc/vmstat")) -> int:
    """Processes that the kernel has ended for lack of memory since it started; 0 if untold."""
    try:
        lines = statistics.read_text().splitlines()
    except OSError:
        return 0
    counts = [line.partition(" ")[2] for line in lines if line.startswith("oom_kill ")]
    return sum(int(count) for count in counts if count.isdigit())


def cgroup_free_bytes(root: Path, membership: Path) -> int | None:
    """Least room below a memory limit of our control groups (v2 or v1); None without a limit."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    rooms = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            rooms += _rooms_upwards(root, path, limit="memory.max", usage="memory.current")
        elif "memory" in controllers.split(","):
            names = {"limit": "memory.limit_in_bytes", "usage": "memory.usage_in_bytes"}
            rooms += _rooms_upwards(root / "memory", path, **names)
    return min(rooms, default=None)


def _rooms_upwards(mount: Path, path: str, *, limit: str, usage: str) -> list[int]:
    """Room in a group and each group above it; inside a container the mount is its own group."""
    rooms = []
    folder = mount / path.lstrip("/")
    while folder.is_relative_to(mount):
        limit_bytes, used_bytes = _read_number(folder / limit), _read_number(folder / usage)
        if limit_bytes is not None and used_bytes is not None:
            cache_bytes = _reclaimable_bytes(folder / "memory.stat")
            rooms.append(max(0, limit_bytes - used_bytes + cache_bytes))
        folder = folder.parent
    return rooms


def _read_number(path: Path) -> int | None:
    """None when there is no such file or no limit in it ("max")."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _reclaimable_bytes(stat: Path) -> int:
    """Cached files count as usage but make way for allocations."""
    try:
        entries = dict(line.split(" ", 1) for line in stat.read_text().splitlines())
        return int(entries.get("inactive_file", 0))
    except (OSError, ValueError):
        return 0
