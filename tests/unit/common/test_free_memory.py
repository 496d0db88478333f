from __future__ import annotations

from pathlib import Path

import torch

from common.free_memory import cgroup_free_bytes, free_memory_bytes, oom_kills


def test_free_memory_is_positive_here() -> None:
    assert free_memory_bytes(torch.device("cpu")) > 0


def write_group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def membership(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "membership"
    path.write_text(text)
    return path


def test_the_tightest_control_group_above_us_counts(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write_group(root / "a" / "b", memory__max="max\n", memory__current="10\n")
    stat = "anon 5\ninactive_file 100\n"
    write_group(root / "a", memory__max="1000\n", memory__current="700\n", memory__stat=stat)

    assert cgroup_free_bytes(root, membership(tmp_path, "0::/a/b\n")) == 400


def test_version_one_control_groups_are_read(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write_group(
        root / "memory" / "job",
        memory__limit_in_bytes="5000\n",
        memory__usage_in_bytes="6000\n",
    )

    assert cgroup_free_bytes(root, membership(tmp_path, "4:cpu:/\n3:memory:/job\n")) == 0


def test_no_limit_is_no_number(tmp_path: Path) -> None:
    assert cgroup_free_bytes(tmp_path, membership(tmp_path, "0::/\n")) is None
    assert cgroup_free_bytes(tmp_path, tmp_path / "absent") is None


def test_kills_of_the_kernel_are_counted(tmp_path: Path) -> None:
    statistics = tmp_path / "vmstat"
    statistics.write_text("nr_free_pages 12\noom_kill 7\noom_kill_disable 0\n")

    assert oom_kills(statistics) == 7
    assert oom_kills(tmp_path / "absent") == 0
