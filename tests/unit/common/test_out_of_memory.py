from __future__ import annotations

import numpy as np
import pytest
import torch

from common.errors import EnvironmentFailed, ExitCode
from common.lifecycle import run_program
from common.out_of_memory import OUT_OF_DEVICE_MEMORY, OUT_OF_RAM, shortage

BEYOND_ANY_MEMORY = 2**55


def error_of_torch() -> Exception:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(BEYOND_ANY_MEMORY, dtype=torch.uint8)
    return caught.value


def error_of_numpy() -> Exception:
    with pytest.raises(MemoryError) as caught:
        np.empty(BEYOND_ANY_MEMORY, dtype=np.uint8)
    return caught.value


def test_real_allocations_that_fail_are_known() -> None:
    assert shortage(error_of_torch()) == OUT_OF_RAM
    assert shortage(error_of_numpy()) == OUT_OF_RAM


def test_the_error_of_the_device_is_known() -> None:
    assert shortage(torch.OutOfMemoryError("CUDA out of memory.")) == OUT_OF_DEVICE_MEMORY


def test_a_cause_is_looked_at() -> None:
    error = EnvironmentFailed("no environment")
    error.__cause__ = MemoryError()

    assert shortage(error) == OUT_OF_RAM


@pytest.mark.parametrize("error", [ValueError("out of memory"), RuntimeError("shape mismatch")])
def test_other_errors_are_about_something_else(error: Exception) -> None:
    assert shortage(error) is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("no room\nand more"), "actor-0: out of memory: no room\n"),
        (ValueError("wrong"), "actor-0: unexpected error, see its log\n"),
        (EnvironmentFailed("broken"), "actor-0: broken\n"),
    ],
)
def test_a_program_says_last_what_ran_out(
    error: Exception, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    assert run_program("actor-0", fail) == ExitCode.TEMPORARY
    assert capsys.readouterr().err.splitlines(keepends=True)[-1] == words
