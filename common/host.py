"""Which machine wrote a record: the number of a process says something on its own machine only."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from pathlib import Path

HOST_FIELD = "host"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROCESS_NUMBERS = Path("/proc/self/ns/pid")
SHORT_ID = 8


@functools.cache
def this_host() -> str:
    """Of one start of a machine; containers that count processes for themselves differ too."""
    try:
        boot = BOOT_ID.read_text(encoding="ascii").strip()[:SHORT_ID]
        numbers = PROCESS_NUMBERS.readlink().name
    except OSError:
        return platform.node()
    return f"{boot}-{''.join(filter(str.isdigit, numbers))}"


def is_from_here(record: Mapping[str, object]) -> bool:
    """Whether its process number may be looked up; records from before this field are."""
    return record.get(HOST_FIELD, this_host()) == this_host()
