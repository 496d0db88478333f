"""Freed memory that stays, seen by the faults of a process that frees and asks again."""

from __future__ import annotations

import subprocess
import sys

FREE_AND_ASK = """
import ctypes
import resource
import sys

from common.allocator import keep_freed_memory

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
sizes = [3_000_000, 5_000_000, 7_000_000]

def round_trip():
    pieces = [ctypes.c_void_p(libc.malloc(size)) for size in sizes]
    for piece, size in zip(pieces, sizes):
        ctypes.memset(piece, 1, size)
    for piece in reversed(pieces):
        libc.free(piece)

if sys.argv[1] == "keep":
    assert keep_freed_memory()
for _ in range(3):
    round_trip()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    round_trip()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_faults(way: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", FREE_AND_ASK, way],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return int(done.stdout)


def test_pages_are_found_once() -> None:
    given_back, kept = count_faults("give back"), count_faults("keep")

    assert given_back > 5_000
    assert kept < 500
