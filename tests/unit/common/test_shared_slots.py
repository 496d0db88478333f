"""Two real processes share slots in tests/integration/test_shared_memory.py."""

from __future__ import annotations

import fcntl
import gc
import itertools
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch

from common.batch import Batch, batch_layout
from common.errors import BadMessage
from common.shared_files import shared_path
from common.shared_slots import MAX_SLOTS, SharedSlots, slot_bytes
from common.specs import DataSpec

SPEC = DataSpec(height=3, width=5, stack=2)
BATCH_SIZE = 4


@pytest.fixture
def name() -> Iterator[str]:
    name = f"warpzone-test-{uuid.uuid4().hex}"
    yield name
    path = shared_path(name)
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def fill(batch: Batch, offset: int) -> None:
    for number, (field, _, _) in enumerate(batch_layout(BATCH_SIZE, SPEC)):
        getattr(batch, field).fill_(offset + number)


def test_what_one_side_writes_the_other_reads(name: str) -> None:
    owner = SharedSlots.create(name, 3, BATCH_SIZE, SPEC)
    guest = SharedSlots.attach(name, BATCH_SIZE, SPEC)

    for slot, batch in enumerate(guest.batches):
        fill(batch, 20 * slot)

    assert len(owner.batches) == len(guest.batches) == 3
    for slot, batch in enumerate(owner.batches):
        for number, (field, dtype, shape) in enumerate(batch_layout(BATCH_SIZE, SPEC)):
            expected = torch.full(shape, 20 * slot + number, dtype=dtype)
            assert torch.equal(getattr(batch, field), expected)


def test_fields_and_slots_do_not_overlap(name: str) -> None:
    slots = SharedSlots.create(name, 2, BATCH_SIZE, SPEC)
    spans = sorted(
        (tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes)
        for batch in slots.batches
        for tensor in (getattr(batch, field) for field in Batch.__slots__)
    )

    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert all(start % 64 == 0 for start, _ in spans)


def test_the_file_is_for_its_owner_only_and_has_room_for_all_slots(name: str) -> None:
    SharedSlots.create(name, 3, BATCH_SIZE, SPEC)

    status = shared_path(name).stat()
    assert status.st_mode & 0o777 == 0o600
    assert status.st_size == 3 * slot_bytes(BATCH_SIZE, SPEC)


def test_an_existing_file_is_not_taken_over(name: str) -> None:
    shared_path(name).write_bytes(b"mine")

    with pytest.raises(FileExistsError):
        SharedSlots.create(name, 1, BATCH_SIZE, SPEC)

    assert shared_path(name).read_bytes() == b"mine"


def test_a_file_that_does_not_fit_leaves_nothing_behind(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, offset: int, size: int) -> None:
        raise OSError(28, f"no space for {size} in {file} at {offset}")

    monkeypatch.setattr(os, "posix_fallocate", full)

    with pytest.raises(OSError, match="no space"):
        SharedSlots.create(name, 1, BATCH_SIZE, SPEC)
    assert not shared_path(name).exists()


def test_slots_outlive_the_name_of_their_file(name: str) -> None:
    owner = SharedSlots.create(name, 1, BATCH_SIZE, SPEC)
    guest = SharedSlots.attach(name, BATCH_SIZE, SPEC)

    shared_path(name).unlink()
    fill(guest.batches[0], 7)

    assert bool((owner.batches[0].observations == 7).all())


def reason_of_attaching(name: str, batch_size: int = BATCH_SIZE) -> str:
    with pytest.raises(BadMessage) as caught:
        SharedSlots.attach(name, batch_size, SPEC)
    return caught.value.reason


@pytest.mark.parametrize("bad", ["../x", "/etc/passwd", "warpzone-../x", "", "warpzone-a/b"])
def test_names_off_the_wire_cannot_leave_the_folder(bad: str) -> None:
    assert reason_of_attaching(bad) == "shared_file"


def test_a_missing_file_is_refused(name: str) -> None:
    assert reason_of_attaching(name) == "shared_file"


def test_a_symlink_is_refused(name: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(bytes(slot_bytes(BATCH_SIZE, SPEC)))
    shared_path(name).symlink_to(target)

    assert reason_of_attaching(name) == "shared_file"


def test_a_folder_and_a_pipe_are_refused(name: str) -> None:
    shared_path(name).mkdir()
    assert reason_of_attaching(name) == "shared_file"
    shared_path(name).rmdir()
    os.mkfifo(shared_path(name))
    assert reason_of_attaching(name) == "shared_file"


def test_a_file_that_is_too_small_is_refused(name: str) -> None:
    SharedSlots.create(name, 1, BATCH_SIZE, SPEC)

    assert reason_of_attaching(name, batch_size=2 * BATCH_SIZE) == "shared_file"


def test_an_empty_file_is_refused(name: str) -> None:
    shared_path(name).touch()

    assert reason_of_attaching(name) == "shared_file"


def test_a_file_of_another_user_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SharedSlots.create(name, 1, BATCH_SIZE, SPEC)
    other_user = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other_user)

    assert reason_of_attaching(name) == "shared_file"


def test_a_huge_file_gives_no_more_slots_than_a_request_can_name(name: str) -> None:
    with shared_path(name).open("wb") as file:
        file.truncate(1_000 * slot_bytes(BATCH_SIZE, SPEC))

    assert len(SharedSlots.attach(name, BATCH_SIZE, SPEC).batches) == MAX_SLOTS


def test_refused_files_are_closed_again(name: str) -> None:
    shared_path(name).touch()
    before = psutil.Process().num_fds()

    for _ in range(20):
        reason_of_attaching(name)

    assert psutil.Process().num_fds() == before


def is_in_use(name: str) -> bool:
    with shared_path(name).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_file_is_in_use_until_the_last_side_is_gone(name: str) -> None:
    owner = SharedSlots.create(name, 1, BATCH_SIZE, SPEC)
    assert is_in_use(name)
    guest = SharedSlots.attach(name, BATCH_SIZE, SPEC)

    del owner
    gc.collect()
    assert is_in_use(name)

    del guest
    gc.collect()
    assert not is_in_use(name)
