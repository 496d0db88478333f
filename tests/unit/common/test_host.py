from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import host
from common.host import is_from_here, this_host


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    this_host.cache_clear()
    yield
    this_host.cache_clear()


def test_a_host_is_the_same_until_it_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = this_host()
    boot = tmp_path / "boot_id"
    boot.write_text("0f0f0f0f-another-start\n")

    assert this_host() == here
    this_host.cache_clear()
    monkeypatch.setattr(host, "BOOT_ID", boot)
    assert this_host() != here


def test_containers_that_count_processes_for_themselves_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = this_host()
    other = tmp_path / "pid"
    other.symlink_to("pid:[1]")

    this_host.cache_clear()
    monkeypatch.setattr(host, "PROCESS_NUMBERS", other)

    assert this_host() == f"{here.partition('-')[0]}-1"


def test_where_the_kernel_does_not_tell_it_is_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "BOOT_ID", Path("/nowhere"))

    assert this_host() == platform.node()


def test_a_record_is_from_here_unless_it_says_otherwise() -> None:
    assert is_from_here({"pid": 1})
    assert is_from_here({"pid": 1, "host": this_host()})
    assert not is_from_here({"pid": 1, "host": "elsewhere"})
