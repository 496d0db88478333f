"""A cut: all that the replay server holds at one moment, taken in a blink, written by others.

The rings are not in it: blocks never change, so they are written from the rings afterwards, as
pages (`replay_server/pages.py`). What changes all the time is copied here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from torch import Tensor

from common.checkpoint_files import JsonObject, checkpoint_name
from common.errors import CheckpointCorrupt, CheckpointMismatch
from common.replay_sizes import BYTE_COLUMNS
from common.saved_replay import INCOMPLETE, page_files
from replay_server.buffer import ReplayBuffer
from replay_server.ledger import Ledger
from replay_server.pages import Page, Stretch
from replay_server.rate_limit import RateLimiter
from replay_server.storage import StorageLayout

FIRST_BYTE_COLUMNS: Final = 4
"""Of pages that were written before scripted steps were marked."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    agent_steps: int
    layout: StorageLayout
    quanta: Tensor
    """Priorities as the tree stores them, int64 [slots + 1] on the CPU."""
    random_state: Tensor
    """Of the sampler, uint8."""
    counters: JsonObject
    capacity_items: int
    shape: JsonObject
    """What a buffer must have in common with this one to take it over."""

    @property
    def name(self) -> str:
        """That of the checkpoint which it belongs to."""
        return checkpoint_name(self.agent_steps)

    def to_state(self, pages: list[Page]) -> JsonObject:
        layout: JsonObject = {
            "blocks": [list(block) for block in self.layout.blocks],
            "next_step_slot": self.layout.next_step_slot,
            "next_frame_slot": self.layout.next_frame_slot,
            "next_generation": self.layout.next_generation,
        }
        return {
            "layout": layout,
            "counters": self.counters,
            "capacity_items": self.capacity_items,
            "shape": self.shape,
            "pages": [asdict(page) for page in pages],
        }


def take_cut(agent_steps: int, buffer: ReplayBuffer, limiter: RateLimiter, ledger: Ledger) -> Cut:
    """Copies a few megabytes; nobody has to wait for the disk."""
    return Cut(
        agent_steps=agent_steps,
        layout=buffer.storage.layout(),
        quanta=buffer.priorities.tree.quanta().cpu(),
        random_state=buffer.random_state(),
        counters={"limiter": limiter.to_state(), "ledger": ledger.to_state()},
        capacity_items=buffer.capacity_items,
        shape=shape_of(buffer),
    )


def shape_of(buffer: ReplayBuffer) -> JsonObject:
    storage = buffer.storage
    return {
        "rings": asdict(storage.sizes),
        "spec": asdict(storage.spec),
        "rewards": str(storage.columns.rewards.dtype),
        "bytes": list(BYTE_COLUMNS),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCut:
    """A cut as it was read back, before it is put into a buffer."""

    layout: StorageLayout
    counters: Mapping[str, Any]
    shape: JsonObject
    pages: list[Page]
    quanta: Tensor
    random_state: Tensor


def read_cut(state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> SavedCut:
    """Whatever the files say, in types; raises CheckpointCorrupt."""
    try:
        layout = state["layout"]
        return SavedCut(
            layout=StorageLayout(
                blocks=tuple((int(i), int(s), int(f)) for i, s, f in layout["blocks"]),
                next_step_slot=int(layout["next_step_slot"]),
                next_frame_slot=int(layout["next_frame_slot"]),
                next_generation=int(layout["next_generation"]),
            ),
            counters=state["counters"],
            # Older cuts do not name their bytes; how many there are is said by their pages.
            shape={"bytes": list(BYTE_COLUMNS), **state["shape"]},
            pages=_pages(state),
            quanta=tensors["quanta"],
            random_state=tensors["random_state"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointCorrupt(f"{INCOMPLETE}: {error!r}") from error


def _pages(state: Mapping[str, Any]) -> list[Page]:
    return [
        Page(
            **asdict(file),
            stretch=_stretch(fields["stretch"]),
            byte_columns=_byte_columns(fields.get("byte_columns", FIRST_BYTE_COLUMNS)),
        )
        for file, fields in zip(page_files(state), state["pages"], strict=True)
    ]


def _byte_columns(value: object) -> int:
    if value not in range(FIRST_BYTE_COLUMNS, len(BYTE_COLUMNS) + 1):
        raise ValueError(f"a page with {value} bytes in a row")
    return int(str(value))


def _stretch(fields: Mapping[str, Any]) -> Stretch:
    return Stretch(**{name: int(value) for name, value in fields.items()})


def require_same_shape(saved: SavedCut, buffer: ReplayBuffer) -> None:
    """The buffer is made for it, and its own numbers fit together."""
    if saved.shape != shape_of(buffer):
        raise CheckpointMismatch(
            f"the saved replay has {saved.shape}, this one {shape_of(buffer)}; resume with the "
            "capacity, the block size and the frames that it was written with"
        )
    layout, sizes = saved.layout, buffer.storage.sizes
    own, state = buffer.priorities.tree.quanta(), buffer.random_state()
    sound = {
        "priorities": _is_like(saved.quanta, own) and bool((saved.quanta >= 0).all()),
        "random state": _is_like(saved.random_state, state),
        "place of the next step": 0 <= layout.next_step_slot < sizes.steps,
        "place of the next frame": 0 <= layout.next_frame_slot < sizes.frames,
        "blocks": all(min(block) >= 0 for block in layout.blocks),
        "number of steps": sum(block[1] for block in layout.blocks) <= sizes.steps,
        "number of frames": sum(block[2] for block in layout.blocks) <= sizes.frames,
    }
    wrong = [name for name, is_sound in sound.items() if not is_sound]
    if wrong:
        raise CheckpointCorrupt(f"a saved replay does not fit together: {', '.join(wrong)}")


def _is_like(saved: Tensor, own: Tensor) -> bool:
    return saved.dtype == own.dtype and saved.shape == own.shape
