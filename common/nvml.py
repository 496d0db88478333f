"""GPU health by NVML, read in a thread of its own: it may hang, fail or be missing.

The training thread only ever looks at the last reading.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from common.messages import Scalar

Reading = dict[str, Scalar]
STALE_AFTER_S = 10.0


def _fields(nvml: Any, handle: Any) -> dict[str, Callable[[], Scalar]]:
    """Each field on its own: one that a board does not support must not cost the others."""
    clock = nvml.nvmlDeviceGetClockInfo
    memory = nvml.nvmlDeviceGetMemoryInfo
    return {
        "name": lambda: _text(nvml.nvmlDeviceGetName(handle)),
        "util_percent": lambda: int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        "mem_used_mb": lambda: memory(handle).used / 2**20,
        "mem_total_mb": lambda: memory(handle).total / 2**20,
        "temperature_c": lambda: int(
            nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        ),
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "clock_sm_mhz": lambda: int(clock(handle, nvml.NVML_CLOCK_SM)),
        "clock_mem_mhz": lambda: int(clock(handle, nvml.NVML_CLOCK_MEM)),
        "throttle_reasons": lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        "processes": lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)),
    }


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def read_gpus() -> list[Reading]:
    """One reading per GPU: `index`, the fields, null where the driver refused, `error` with why."""
    import pynvml  # noqa: PLC0415 - deprecated twins of this module warn on import

    pynvml.nvmlInit()
    try:
        return [_read_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def _read_gpu(nvml: Any, index: int) -> Reading:
    reading: Reading = {"index": index, "error": None}
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        # A board that fell off the bus must not hide the others.
        return {**reading, "error": f"handle: {error}"}
    for name, read in _fields(nvml, handle).items():
        try:
            reading[name] = read()
        except (nvml.NVMLError, AttributeError) as error:
            # AttributeError: later versions of the module may drop what is deprecated today.
            reading[name] = None
            reading["error"] = f"{name}: {error}"
    return reading


class GpuWatch:
    """Reads every GPU at an interval in a daemon thread; `last` never blocks."""

    def __init__(self, interval_s: float, read: Callable[[], list[Reading]] = read_gpus) -> None:
        self._interval_s = interval_s
        self._read = read
        self._last: list[Reading] = []
        self._error: str | None = "no reading yet"
        self._read_at_s = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="nvml", daemon=True)
        self._thread.start()

    def last(self) -> tuple[list[Reading] | None, str | None]:
        """The readings, or None and the reason."""
        silent_s = time.monotonic() - self._read_at_s
        if silent_s > STALE_AFTER_S + self._interval_s:
            return None, f"NVML has not answered for {silent_s:.0f} s"
        return (None, self._error) if self._error else (self._last, None)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=1.0)

    def _loop(self) -> None:
        while not self._stop.is_set():
            try:
                self._last = self._read()
                self._error = None if self._last else "no GPU found"
            except Exception as error:  # a driver may raise anything
                self._error = f"{type(error).__name__}: {error}"[:300]
            self._read_at_s = time.monotonic()
            self._stop.wait(self._interval_s)
