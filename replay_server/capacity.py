"""How many transitions fit in the memory that is really free, decided before allocating."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from common.errors import CapacityError
from common.specs import DataSpec
from replay_server.storage import DEFAULT_BLOCK_ITEMS, ring_sizes, storage_bytes
from replay_server.sum_tree import tree_bytes

DEFAULT_CAPACITY_ITEMS = 200_000
DEFAULT_SHARE = 0.5
"""Of the free memory, when the user leaves the capacity to us."""
EXPLICIT_SHARE = 0.9
"""Of the free memory, when the user asks for a capacity: the rest is for batches and the like."""
_CGROUP_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLayout:
    """All that the memory per item depends on."""

    spec: DataSpec
    block_items: int = DEFAULT_BLOCK_ITEMS
    reward_dtype: torch.dtype = torch.float16


def memory_bytes(capacity_items: int, layout: ItemLayout) -> int:
    """Everything that a buffer of this capacity allocates on its device."""
    sizes = ring_sizes(capacity_items, layout.spec, block_items=layout.block_items)
    rings = storage_bytes(sizes, layout.spec, reward_dtype=layout.reward_dtype)
    return rings + tree_bytes(sizes.steps + 1)


def fit_capacity(free_bytes: int, layout: ItemLayout) -> int:
    """The largest capacity, in whole blocks, whose memory is at most `free_bytes`; 0 if none."""
    fits, too_many = 0, 1
    while _block_bytes(too_many, layout) <= free_bytes:
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _block_bytes(middle, layout) <= free_bytes:
            fits = middle
        else:
            too_many = middle
    return fits * layout.block_items


def largest_capacity(free_bytes: int, layout: ItemLayout) -> int:
    """Of a buffer that somebody asks for by number."""
    return fit_capacity(int(free_bytes * EXPLICIT_SHARE), layout)


def choose_capacity(requested_items: int, free_bytes: int, layout: ItemLayout) -> int:
    """The requested capacity if it fits; 0 asks for the default or what half the memory holds."""
    is_default = requested_items == 0
    wanted = DEFAULT_CAPACITY_ITEMS if is_default else requested_items
    share = DEFAULT_SHARE if is_default else EXPLICIT_SHARE
    largest = fit_capacity(int(free_bytes * share), layout)
    if largest > 0 and (is_default or wanted <= largest):
        return min(wanted, largest)
    raise CapacityError(
        f"a replay capacity of {wanted} transitions needs {memory_bytes(wanted, layout)} bytes, "
        f"but {free_bytes} are free, of which {share:.0%} may be used; "
        f"the largest capacity that would fit is {largest}"
    )


def free_memory_bytes(device: torch.device) -> int:
    """What can be allocated now on the device, or in RAM within our control group's limits."""
    if device.type == "cuda":
        free_bytes, _ = torch.cuda.mem_get_info(device)
        return int(free_bytes)
    available = int(psutil.virtual_memory().available)
    limit = cgroup_free_bytes(_CGROUP_ROOT, Path("/proc/self/cgroup"))
    return available if limit is None else min(available, limit)


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


def _block_bytes(num_blocks: int, layout: ItemLayout) -> int:
    return memory_bytes(num_blocks * layout.block_items, layout)
