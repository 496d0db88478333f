"""What the C library does with memory that was freed; the only user of its `mallopt`."""

from __future__ import annotations

import ctypes

KEPT_BYTES = 2**30
"""Free memory at the end of the heap that stays with the process; an update frees far less."""
LARGEST_FROM_HEAP_BYTES = 32 * 2**20
"""As large as glibc lets it be: larger pieces come from the system and go back to it."""
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Use freed memory again instead of giving it back; false where there is no glibc.

    An update frees tens of megabytes and asks for as many soon after. Every page of them that the
    system has to find and clear again costs a fault.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    asked = ((_M_MMAP_THRESHOLD, LARGEST_FROM_HEAP_BYTES), (_M_TRIM_THRESHOLD, KEPT_BYTES))
    return all(mallopt(option, size) == 1 for option, size in asked)
