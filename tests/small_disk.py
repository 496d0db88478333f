"""A disk that is soon full, for tests; they are skipped where none can be mounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TIMEOUT_S = 10.0


@contextmanager
def small_disk_at(folder: Path, size_bytes: int) -> Iterator[Path]:
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a full disk needs root, to mount a small tmpfs")
    words = [mount, "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    if subprocess.run(words, check=False, capture_output=True, timeout=TIMEOUT_S).returncode != 0:
        pytest.skip("a full disk needs the permission to mount a small tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=TIMEOUT_S)
