from __future__ import annotations

from pathlib import Path

import pytest
import torch

from common.errors import CheckpointCorrupt, CheckpointMismatch
from common.ids import Incarnation
from replay_server.cut_files import KEPT_CUTS, CutFolder
from replay_server.ledger import Ledger
from replay_server.pages import PageOverwritten
from tests.checkpoint_factory import flip_byte
from tests.cut_factory import (
    CAPACITY,
    change_state,
    cut_of,
    fill,
    make_buffer,
    make_older,
    use,
)


@pytest.mark.parametrize("blocks", [0, 3, 20])
def test_a_restored_buffer_goes_on_like_the_original(tmp_path: Path, blocks: int) -> None:
    original = make_buffer()
    folder = CutFolder(tmp_path, original.storage)
    fill(original, range(blocks))
    folder.write(cut_of(original, 10))
    fill(original, range(100, 104))
    use(original, 2)
    folder.write(cut_of(original, 20))

    restored = make_buffer()
    CutFolder(tmp_path, restored.storage).restore("00000000020", restored)

    assert restored.size == original.size
    assert restored.mass == original.mass
    for left, right in zip(use(original, 9), use(restored, 9), strict=True):
        assert torch.equal(left, right)


def test_an_older_cut_can_still_be_restored(tmp_path: Path) -> None:
    original, twin = make_buffer(), make_buffer()
    folder = CutFolder(tmp_path, original.storage)
    for buffer in (original, twin):
        fill(buffer, range(5))
    folder.write(cut_of(original, 10))
    fill(original, range(100, 120))
    folder.write(cut_of(original, 20))

    restored = make_buffer()
    CutFolder(tmp_path, restored.storage).restore("00000000010", restored)

    for left, right in zip(use(twin, 9), use(restored, 9), strict=True):
        assert torch.equal(left, right)


def test_blocks_are_written_once_and_what_no_cut_names_is_removed(tmp_path: Path) -> None:
    buffer = make_buffer()
    folder = CutFolder(tmp_path, buffer.storage)
    sizes = []
    for number in range(1, 9):
        fill(buffer, range(number * 10, number * 10 + 2))
        folder.write(cut_of(buffer, number))
        newest = max((tmp_path / "pages").iterdir(), key=lambda file: file.name)
        sizes.append(newest.stat().st_size)

    assert folder.names() == [f"{number:011d}" for number in (8, 7, 6)][:KEPT_CUTS]
    # Two blocks a page; six blocks fit, and the oldest kept cut may need three pages more.
    assert max(sizes) <= 1.2 * min(sizes)
    assert len(list((tmp_path / "pages").iterdir())) == 5


def test_a_folder_that_was_restored_goes_on_writing_only_what_is_new(tmp_path: Path) -> None:
    original = make_buffer()
    fill(original, range(5))
    CutFolder(tmp_path, original.storage).write(cut_of(original, 10))
    restored = make_buffer()
    folder = CutFolder(tmp_path, restored.storage)
    folder.restore("00000000010", restored)
    (before,) = (tmp_path / "pages").iterdir()

    fill(restored, range(50, 51))
    folder.write(cut_of(restored, 20))

    (new,) = set((tmp_path / "pages").iterdir()) - {before}
    assert new.stat().st_size < before.stat().st_size / 3


@pytest.mark.parametrize("what", ["page", "priorities", "state", "gone"])
def test_damage_is_noticed_before_anything_is_changed(tmp_path: Path, what: str) -> None:
    original = make_buffer()
    fill(original, range(5))
    CutFolder(tmp_path, original.storage).write(cut_of(original, 10))
    (page,) = (tmp_path / "pages").iterdir()
    cut = tmp_path / "cuts" / "00000000010"
    match what:
        case "page":
            flip_byte(page, 1_000)
        case "gone":
            page.unlink()
        case "priorities":
            flip_byte(cut / "priorities.safetensors", 300)
        case _:
            flip_byte(cut / "state.json", 30)

    restored = make_buffer()
    with pytest.raises(CheckpointCorrupt):
        CutFolder(tmp_path, restored.storage).restore("00000000010", restored)

    assert restored.size == 0


def test_a_buffer_of_another_shape_is_refused(tmp_path: Path) -> None:
    original = make_buffer()
    fill(original, range(5))
    CutFolder(tmp_path, original.storage).write(cut_of(original, 10))

    other = make_buffer(capacity=2 * CAPACITY)
    with pytest.raises(CheckpointMismatch, match="capacity"):
        CutFolder(tmp_path, other.storage).restore("00000000010", other)


@pytest.mark.parametrize("blocks", [5, 20])
def test_a_cut_from_before_scripted_steps_were_marked_goes_on(tmp_path: Path, blocks: int) -> None:
    original = make_buffer()
    fill(original, range(blocks))
    CutFolder(tmp_path, original.storage).write(cut_of(original, 10))
    make_older(tmp_path, "00000000010")

    restored, again = make_buffer(), make_buffer()
    folder = CutFolder(tmp_path, restored.storage)
    folder.restore("00000000010", restored)
    marks = restored.storage.columns.scripted.clone()
    fill(restored, range(100, 102))
    fill(original, range(100, 102))
    # Its pages are named by the next cut, beside those that say more.
    folder.write(cut_of(restored, 20))
    CutFolder(tmp_path, again.storage).restore("00000000020", again)

    assert int(marks.sum()) == 0
    assert int(again.storage.columns.scripted.sum()) > 0
    assert torch.equal(again.storage.columns.scripted, restored.storage.columns.scripted)
    for left, right in zip(use(original, 9), use(again, 9), strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("columns", [0, 3, 6, "x", None])
def test_a_page_of_unknown_rows_is_refused(tmp_path: Path, columns: object) -> None:
    original = make_buffer()
    fill(original, range(5))
    CutFolder(tmp_path, original.storage).write(cut_of(original, 10))
    change_state(tmp_path, "00000000010", lambda s: s["pages"][0].update(byte_columns=columns))

    restored = make_buffer()
    with pytest.raises(CheckpointCorrupt, match="incomplete"):
        CutFolder(tmp_path, restored.storage).restore("00000000010", restored)


def test_a_cut_that_knows_more_than_we_do_is_refused_in_words(tmp_path: Path) -> None:
    original = make_buffer()
    fill(original, range(5))
    CutFolder(tmp_path, original.storage).write(cut_of(original, 10))
    change_state(tmp_path, "00000000010", lambda s: s["shape"]["bytes"].append("tired"))

    restored = make_buffer()
    with pytest.raises(CheckpointMismatch, match="tired"):
        CutFolder(tmp_path, restored.storage).restore("00000000010", restored)


def test_a_page_whose_blocks_were_evicted_meanwhile_is_given_up(tmp_path: Path) -> None:
    buffer = make_buffer()
    fill(buffer, range(5))
    cut = cut_of(buffer, 10)
    fill(buffer, range(50, 58))

    with pytest.raises(PageOverwritten):
        CutFolder(tmp_path, buffer.storage).write(cut)

    assert list((tmp_path / "pages").iterdir()) == []
    assert list((tmp_path / "cuts").iterdir()) == []


def test_limiter_and_ledger_return(tmp_path: Path) -> None:
    original = make_buffer()
    fill(original, range(2))
    folder = CutFolder(tmp_path, original.storage)
    folder.write(cut_of(original, 10))

    restored = make_buffer()
    saved = CutFolder(tmp_path, restored.storage).restore("00000000010", restored)

    assert saved.counters["limiter"] == {"inserted": 70, "sampled": 33}
    ledger = Ledger()
    ledger.restore(saved.counters["ledger"])
    verdicts = [ledger.judge("actor-0", Incarnation(7), number).value for number in range(6)]
    assert verdicts == ["duplicate", "duplicate", "new", "new", "duplicate", "new"]
