"""Whether an error means that memory ran out, and where: Python, NumPy and torch each say it so."""

from __future__ import annotations

from typing import Final

OUT_OF_RAM: Final = "out of memory"
OUT_OF_DEVICE_MEMORY: Final = "out of device memory"
"""With which the last words of a process begin; the launcher knows such an end by them."""
_TORCH_CPU: Final = ("can't allocate memory", "not enough memory", "Cannot allocate memory")
"""The CPU allocator of torch raises a plain RuntimeError."""


def shortage(error: BaseException) -> str | None:
    """Which of the two ran out, or None when the error is about something else."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError):
            return OUT_OF_RAM
        # By name: who has no torch must not import it to ask.
        if type(seen).__name__ == "OutOfMemoryError":
            return OUT_OF_DEVICE_MEMORY
        if isinstance(seen, RuntimeError) and any(words in str(seen) for words in _TORCH_CPU):
            return OUT_OF_RAM
        seen = seen.__cause__
    return None
