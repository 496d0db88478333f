"""Which torch device a process uses, and how many threads; torch is imported only when asked."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from common.errors import ConfigError

if TYPE_CHECKING:
    import torch

ALLOW_CPU_VARIABLE = "MARIO_ALLOW_CPU_AUTO"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def thread_environment(threads: int) -> dict[str, str]:
    """What must stand in the environment before Python starts: later is too late for OpenMP.

    Threads that wait must sleep: spinning ones take the cores from the actors, and an update of
    two spinning threads took ten times as long beside busy actors.
    """
    return {
        **{name: str(threads) for name in THREAD_VARIABLES},
        "OMP_WAIT_POLICY": "PASSIVE",
        "GOMP_SPINCOUNT": "0",
    }


def limit_torch_threads(threads: int) -> None:
    """First thing in a process that uses torch."""
    import torch  # noqa: PLC0415 - a second of start-up that only torch users should pay

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)


def learner_thread_count(requested: int, ranks: int = 1) -> int:
    """Of each rank; those on one machine share what one learner would take."""
    cores = os.cpu_count() or 1
    return requested or max(1, max(min(cores, 2), cores // 2) // ranks)


def has_fast_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 itself; without that it would be slower, not faster."""
    import torch  # noqa: PLC0415 - see above

    try:
        capabilities = torch.cpu.get_capabilities()
    except (AttributeError, RuntimeError):
        return False
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def check_device_name(name: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d{1,2})?", name) is None:
        raise ConfigError(f"--device must be auto, cpu, cuda or cuda:N, got {name!r}")
    return name


def resolve_device(name: str) -> torch.device:
    """The device to use. `auto` is CUDA, or the CPU where that was allowed before."""
    import torch  # noqa: PLC0415 - see above

    check_device_name(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cpu":
        return torch.device("cpu")
    device = torch.device(name)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (device.index or 0) >= count:
        raise ConfigError(
            f"--device {name} was asked for, but torch sees {count} CUDA devices; "
            "use --device cpu, or install a CUDA build of torch and a driver"
        )
    return device


def guard_cpu(name: str, command: str) -> str | None:
    """Refuse `auto` without CUDA; returns a loud warning where it was allowed.

    A run that was meant for a GPU and trains on a CPU wastes days before anybody notices.
    """
    if check_device_name(name) == "cpu":
        return None
    if name != "auto":
        resolve_device(name)
        return None
    if resolve_device("auto").type == "cuda":
        return None
    if os.environ.get(ALLOW_CPU_VARIABLE) == "1":
        return f"no CUDA device found: training on the CPU because {ALLOW_CPU_VARIABLE}=1"
    raise ConfigError(f"no CUDA device found; to train on the CPU run: {command}")
