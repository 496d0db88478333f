"""A batch that can be trained on, and what the loop asks of whoever gets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from common.batch import Batch
from common.messages import Scalar


@dataclass(frozen=True, slots=True, eq=False)
class ReadyBatch:
    """A batch in CPU memory. With shared memory it is valid until it is released."""

    batch: Batch
    slot: int
    server_incarnation: int
    min_priority: float
    """Of the item of weight 1; weights of several batches are comparable with it alone:
    weight = (min_priority / priority) ** beta."""
    beta: float


class BatchFeed(Protocol):
    """Call `next` or `at_hand`, train, `send_priorities`, `release`; in that order."""

    beta: float

    @property
    def stats(self) -> Mapping[str, Scalar]:
        """What the replay servers told of themselves last."""
        ...

    @property
    def unsent_priorities(self) -> int: ...

    def next(self, timeout_ms: int) -> ReadyBatch | None:
        """The next batch, waiting at most this long. Keeps the requests going."""
        ...

    def at_hand(self) -> ReadyBatch | None:
        """The next batch if it has arrived; nobody is listened to."""
        ...

    def listen(self) -> None:
        """Take what has arrived and ask for what there is room for; never waiting."""
        ...

    def peek(self) -> Batch | None:
        """What `at_hand` would give; it stays as it is until it is taken and released."""
        ...

    def release(self, ready: ReadyBatch) -> None:
        """Its memory may be filled again."""
        ...

    def send_priorities(self, ready: ReadyBatch, errors: Tensor) -> None: ...

    def set_samples_per_insert(self, ratio: float) -> bool:
        """Change the balance; False while there is no server that would hear it."""
        ...

    def request_cut(self, agent_steps: int) -> None:
        """Let the servers save what they hold, for the checkpoint of these agent steps."""
        ...

    def ask_stats(self) -> None:
        """The answer arrives in `stats` later."""
        ...

    def bad_answers(self) -> dict[str, Scalar]:
        """For the heartbeat."""
        ...

    def waits_for(self) -> str: ...

    def close(self) -> None: ...
