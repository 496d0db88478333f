"""Row 27: the writer of saved replays is killed, and its disk fails, at every call."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from common.saved_replay import check_cut, cut_leftovers, cut_names, named_pages, pages_folder
from replay_server.cut_files import CutFolder
from tests.cut_factory import make_buffer
from tests.faults.conftest import Measured
from tests.faults.forked_jobs import NOT_SAVED
from tests.faults.writer_process import Call, WriterProcess, can_trace, write_traced

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not can_trace(), reason="strace is missing or not permitted"),
]

BEFORE = (1, 2, 3)
"""As many cuts as are kept: the next one prunes."""


@pytest.fixture(scope="module")
def writer() -> Iterator[WriterProcess]:
    process = WriterProcess("tests.faults.cut_writer")
    yield process
    process.close()


@pytest.fixture
def root(tmp_path: Path, writer: WriterProcess) -> Path:
    root = tmp_path / "replay"
    writer.begin(root, BEFORE)
    assert writer.end()[0] == 0
    return root


def require_sound(root: Path) -> int:
    """Every cut with a number is whole; the agent steps of the newest, which can be restored."""
    names = cut_names(root)
    for name in names:
        check_cut(root, name)
    buffer = make_buffer()
    CutFolder(root, buffer.storage).restore(names[0], buffer)
    assert buffer.size > 0
    return int(names[0])


def nameless_pages(root: Path) -> set[str]:
    return {path.name for path in pages_folder(root).iterdir()} - named_pages(root)


@pytest.mark.fault(
    27, "replay server SIGKILL at any system call of a cut", "newest whole cut, none torn"
)
def test_a_kill_at_any_system_call_leaves_whole_cuts(
    root: Path, writer: WriterProcess, tmp_path: Path, measured: Measured
) -> None:
    _, calls = write_traced(writer, root, 4, tmp_path / "log")
    kept, steps = Counter[bool](), 4

    for name in sorted({call.name for call in calls}):
        # Where the ring begins anew a page takes a few calls more: until none is left to die at.
        for number in count(1):
            inject = f"{name}:signal=SIGKILL:when={number}"
            code, _ = write_traced(writer, root, steps + 1, tmp_path / "log", inject)
            found = require_sound(root)
            assert found in (steps, steps + 1), inject
            kept[found > steps] += code != 0
            steps = found
            if code == 0:
                break
            assert code == -signal.SIGKILL, inject

    assert kept.total() > 40
    CutFolder(root, make_buffer().storage).remove_leftovers()
    writer.begin(root, [steps + 1])
    assert writer.end()[0] == 0
    assert (cut_leftovers(root), nameless_pages(root)) == ([], set())
    measured(f"{kept.total()} kills: {kept[False]} kept the old one, {kept[True]} the new one")


@pytest.mark.fault(27, "EIO while a cut is written", "the cut before stands, nothing is left over")
def test_a_disk_error_at_any_system_call_leaves_the_old_cut(
    root: Path, writer: WriterProcess, tmp_path: Path, measured: Measured
) -> None:
    _, calls = write_traced(writer, root, 4, tmp_path / "log")
    counts = Counter(call.name for call in calls if call.name in ("write", "fsync", "rename"))
    steps, refused = 4, 0

    for name, number in ((call, n + 1) for call in counts for n in range(counts[call])):
        inject = f"{name}:error=EIO:when={number}"
        code, _ = write_traced(writer, root, steps + 1, tmp_path / "log", inject)
        assert code in (0, NOT_SAVED), inject
        refused += code == NOT_SAVED
        assert cut_leftovers(root) == [], inject
        found = require_sound(root)
        assert found == steps + 1 or (found == steps and code == NOT_SAVED), inject
        if found == steps:
            assert nameless_pages(root) == set(), inject
        steps = found

    measured(f"{counts.total()} errors: {refused} refused, the rest after the cut stood")


def test_pages_are_durable_before_the_cut_that_names_them(
    root: Path, writer: WriterProcess, tmp_path: Path
) -> None:
    code, calls = write_traced(writer, root, 4, tmp_path / "log")

    assert code == 0
    last_write = max(n for n, call in enumerate(calls) if _is(call, "write", ".bin"))
    page = next(n for n, call in enumerate(calls) if _is(call, "fsync", ".bin"))
    names = next(n for n, call in enumerate(calls) if _is(call, "fsync", "/pages>"))
    manifest = next(n for n, call in enumerate(calls) if _is(call, "fsync", "manifest.json"))
    cut = next(n for n, call in enumerate(calls) if _is(call, "rename", "00000000004"))
    folder = next(n for n, call in enumerate(calls) if _is(call, "fsync", "/cuts>"))
    removed = min(n for n, call in enumerate(calls) if call.name == "unlinkat")
    assert last_write < page < names < manifest < cut < folder < removed


def _is(call: Call, name: str, part: str) -> bool:
    return call.name == name and part in call.text
