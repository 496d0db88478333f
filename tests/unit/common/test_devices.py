"""The guard where torch sees no CUDA device; with one, see the tests marked cuda."""

from __future__ import annotations

import pytest
import torch

from common.devices import (
    ALLOW_CPU_VARIABLE,
    THREAD_VARIABLES,
    check_device_name,
    guard_cpu,
    has_fast_bfloat16,
    learner_thread_count,
    resolve_device,
    thread_environment,
)
from common.errors import ConfigError, ExitCode

COMMAND = "python -m launch.local --device cpu"


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv(ALLOW_CPU_VARIABLE, raising=False)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:0", "cuda:15"])
def test_device_names(name: str) -> None:
    assert check_device_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:100", "cpu:0", "mps"]
)
def test_other_names_are_refused_with_what_is_possible(name: str) -> None:
    with pytest.raises(ConfigError, match="--device must be auto, cpu, cuda or cuda:N"):
        resolve_device(name)


@pytest.mark.usefixtures("no_cuda")
def test_auto_without_cuda_is_refused_with_the_command_to_run() -> None:
    with pytest.raises(ConfigError, match="no CUDA device found") as caught:
        guard_cpu("auto", COMMAND)

    assert COMMAND in str(caught.value)
    assert caught.value.exit_code is ExitCode.CONFIGURATION


@pytest.mark.usefixtures("no_cuda")
def test_auto_without_cuda_warns_where_it_was_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_CPU_VARIABLE, "1")

    warning = guard_cpu("auto", COMMAND)

    assert warning is not None
    assert "training on the CPU because MARIO_ALLOW_CPU_AUTO=1" in warning


@pytest.mark.usefixtures("no_cuda")
@pytest.mark.parametrize("value", ["", "0", "true", "yes"])
def test_only_the_value_1_allows_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(ALLOW_CPU_VARIABLE, value)

    with pytest.raises(ConfigError):
        guard_cpu("auto", COMMAND)


@pytest.mark.usefixtures("no_cuda")
def test_a_cpu_that_was_asked_for_needs_no_leave() -> None:
    assert guard_cpu("cpu", COMMAND) is None
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto") == torch.device("cpu")


@pytest.mark.usefixtures("no_cuda")
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:9"])
def test_cuda_that_is_not_there_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_CPU_VARIABLE, "1")

    with pytest.raises(ConfigError, match=f"--device {name} was asked for.* 0 CUDA devices"):
        guard_cpu(name, COMMAND)


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_is_taken_by_its_number() -> None:
    assert resolve_device("auto") == torch.device("cuda")
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert guard_cpu("auto", COMMAND) is None
    with pytest.raises(ConfigError, match="torch sees 2 CUDA devices"):
        guard_cpu("cuda:9", COMMAND)


def test_threads_are_limited_before_python_starts() -> None:
    environment = thread_environment(2)

    assert {name: environment[name] for name in THREAD_VARIABLES} == {
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
    }


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (3, 2), (8, 4), (None, 1)])
def test_the_learner_takes_two_threads_or_half_of_the_cores(
    cores: int | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)

    assert learner_thread_count(0) == threads
    assert learner_thread_count(6) == 6


def test_ranks_share_the_cores_of_one_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)

    assert [learner_thread_count(0, ranks) for ranks in (1, 2, 3, 16)] == [8, 4, 2, 1]
    assert learner_thread_count(6, 2) == 6


def test_a_torch_that_does_not_tell_has_no_fast_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)

    assert not has_fast_bfloat16()
