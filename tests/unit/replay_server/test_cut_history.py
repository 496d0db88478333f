"""Which cuts are kept, which are given up, and which one is taken over."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from common import atomic_files
from common.abandoned import name_before
from common.checkpoint_files import load_checkpoint, write_files
from common.errors import CheckpointCorrupt
from common.saved_replay import CUT_FILES, TENSORS_NAME, check_cut, cut_wanted, saved_capacity
from replay_server import cut_files
from replay_server.assembly import restore_cut
from replay_server.cut_files import CutFolder
from tests.checkpoint_factory import flip_byte
from tests.cut_factory import CAPACITY, cut_of, fill, make_buffer


def names(steps: list[int]) -> list[str]:
    return [f"{number:011d}" for number in steps]


class History:
    """A run that was cut at 100, 200 ... 500 agent steps; three of them are kept."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = self.cut([100, 200, 300, 400, 500])

    def cut(self, steps: list[int]) -> CutFolder:
        """By another life of the server, from the beginning."""
        buffer = make_buffer()
        folder = CutFolder(self.root, buffer.storage)
        for number in steps:
            fill(buffer, range(number, number + 2))
            folder.write(cut_of(buffer, number))
        return folder

    def taken_over(self, wanted: str) -> int:
        """Items in the buffer of a new server."""
        buffer = make_buffer()
        restore_cut(CutFolder(self.root, buffer.storage), buffer, wanted)
        return buffer.size


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def test_who_goes_back_gives_up_what_came_after(history: History) -> None:
    assert history.taken_over("00000000400") > 0

    assert history.folder.names() == names([400, 300])


def test_who_goes_back_beyond_the_oldest_cut_begins_empty_and_keeps_its_own(
    history: History,
) -> None:
    assert history.taken_over("00000000200") == 0

    folder = history.cut([200, 220])

    assert folder.names() == names([220, 200])
    assert history.taken_over("auto") > 0


def test_a_learner_that_went_back_gives_up_what_came_after(history: History) -> None:
    folder = history.cut([350])

    assert folder.names() == names([350, 300])


def test_without_a_checkpoint_of_its_own_a_run_begins_empty(history: History) -> None:
    assert history.taken_over("none") == 0

    assert history.folder.names() == []


def test_a_run_that_saves_nothing_leaves_everything(history: History) -> None:
    assert history.taken_over("") == 0

    assert history.folder.names() == names([500, 400, 300])


def test_a_damaged_cut_is_passed_over(history: History) -> None:
    flip_byte(history.root / "cuts" / "00000000500" / "state.json", 30)

    assert history.taken_over("auto") > 0
    with pytest.raises(CheckpointCorrupt):
        check_cut(history.root, "00000000500")
    check_cut(history.root, "00000000400")


def test_the_buffer_gets_the_capacity_of_what_was_saved(history: History) -> None:
    assert saved_capacity(history.root, "auto") == CAPACITY
    assert saved_capacity(history.root, "00000000350") == CAPACITY
    assert saved_capacity(history.root, "00000000100") == 0
    assert saved_capacity(history.root, "") == 0


def test_a_cut_of_the_same_name_replaces_the_other(history: History) -> None:
    buffer = make_buffer()
    fill(buffer, range(1))
    CutFolder(history.root, buffer.storage).write(cut_of(buffer, 500))

    assert history.taken_over("auto") == buffer.size


def test_what_a_killed_writer_left_is_removed(history: History) -> None:
    left = history.root / "cuts" / f"{atomic_files.TEMPORARY_PREFIX}removed-00000000100-abcd"
    left.mkdir()

    history.taken_over("auto")

    assert not left.exists()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("quanta", lambda t: t[:-1].clone()),
        ("quanta", lambda t: t - 1),
        ("quanta", lambda t: t.to(torch.int32)),
        ("random_state", lambda t: t[:10].clone()),
        ("random_state", None),
    ],
)
def test_tensors_that_do_not_fit_are_passed_over(
    history: History, name: str, change: Callable[[torch.Tensor], torch.Tensor] | None
) -> None:
    """With right hashes: somebody wrote them so."""
    path = history.root / "cuts" / "00000000500"
    data = load_checkpoint(path, CUT_FILES)
    tensors = dict(data.tensors["priorities"])
    if change is None:
        del tensors[name]
    else:
        tensors[name] = change(tensors[name])
    state = (path / "state.json").read_bytes()
    for file in path.iterdir():
        file.unlink()
    write_files(path, {"state.json": state, TENSORS_NAME: save(tensors)}, 500)

    buffer = make_buffer()
    saved = restore_cut(CutFolder(history.root, buffer.storage), buffer, "auto")

    assert saved is not None
    assert saved.layout.next_generation == 8


def test_pages_are_on_the_disk_before_the_cut_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, publish = os.fsync, atomic_files.publish_directory

    def note_sync(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink()
        order.append(name.suffix or name.name)
        fsync(descriptor)

    def note_publish(temporary: Path, final: Path) -> None:
        order.append("published")
        publish(temporary, final)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(cut_files, "publish_directory", note_publish)
    buffer = make_buffer()
    fill(buffer, range(2))
    CutFolder(tmp_path, buffer.storage).write(cut_of(buffer, 10))

    before = order[: order.index("published")]
    assert before[:2] == [".bin", "pages"]
    assert before.count(".json") == 2


def test_a_future_that_was_given_up_is_kept_with_its_pages_and_comes_back(
    history: History,
) -> None:
    """Whoever takes up the abandoned checkpoint gets the replay that was abandoned with it."""
    checkpoints = history.root / "checkpoints"
    before = make_buffer()
    saved = restore_cut(CutFolder(history.root, before.storage), before, "auto")
    assert history.taken_over("00000000300") > 0
    history.cut([350, 400])

    wanted = cut_wanted(checkpoints / "abandoned-00000000500-0a1b2c3d", checkpoints)
    after = make_buffer()
    again = restore_cut(CutFolder(history.root, after.storage), after, wanted)

    assert again is not None
    assert saved is not None
    assert again.layout == saved.layout
    assert torch.equal(again.quanta, saved.quanta)
    assert saved_capacity(history.root, wanted) == CAPACITY


def test_taking_up_an_abandoned_checkpoint_deletes_nothing(history: History) -> None:
    cuts = history.root / "cuts"

    history.taken_over("abandoned-00000000400-0a1b2c3d")

    assert {name_before(path.name) or path.name for path in cuts.iterdir()} == set(
        names([300, 400, 500])
    )
    for path in cuts.iterdir():
        check_cut(history.root, path.name)
