"""What actors see now: tells them that somebody looks, and reads the frames they write.

An actor shows itself while `live/PEER.want` is young; nobody looking costs it nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from launch.control_room.safe_files import modified_s, read_bytes, read_object

MAX_TILES: Final = 9
TOUCH_INTERVAL_S: Final = 1.0
STALE_AFTER_S: Final = 6.0
MAX_FRAME_BYTES: Final = 1024 * 1024
MAX_STATE_BYTES: Final = 64 * 1024
PICTURES: Final = {".jpg": "image/jpeg", ".png": "image/png"}
SHOWN: Final[tuple[str, ...]] = (
    *("time", "env_index", "stage", "x", "y", "action", "action_labels", "q_values", "epsilon"),
    *("was_random", "agent_steps"),
)


@dataclass(slots=True)
class LiveFrames:
    """The live folder of one run; `peers` are always names of processes that we know."""

    folder: Path
    clock: Callable[[], float] = time.time
    _touched_s: dict[str, float] = field(default_factory=dict)
    _cached: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Of each actor the frame that was read last: all viewers get the same bytes."""

    def want(self, peers: Sequence[str]) -> None:
        """Somebody looks at these now. Files, not messages: the run folder is all we share."""
        now_s = self.clock()
        for peer in peers[:MAX_TILES]:
            if now_s - self._touched_s.get(peer, 0.0) >= TOUCH_INTERVAL_S:
                self._touched_s[peer] = now_s
                self._touch(peer, now_s)

    def _touch(self, peer: str, now_s: float) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            # Only the last part may be missing: a run that was deleted must not come back.
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if self.folder.is_symlink():
                return
            descriptor = os.open(self.folder / f"{peer}.want", flags, 0o600)
        except OSError:
            return
        try:
            os.utime(descriptor, (now_s, now_s))
        finally:
            os.close(descriptor)

    def states(self, peers: Sequence[str]) -> list[dict[str, object]]:
        return [self._state(peer) for peer in peers[:MAX_TILES]]

    def _state(self, peer: str) -> dict[str, object]:
        told = read_object(self.folder / f"{peer}.json", MAX_STATE_BYTES) or {}
        _, changed_s = self._picture(peer)
        is_fresh = changed_s is not None and self.clock() - changed_s < STALE_AFTER_S
        state = {name: told.get(name) for name in SHOWN if name in told}
        return {**state, "peer": peer, "fresh": is_fresh, "version": f"{changed_s or 0.0:.4f}"}

    def frame(self, peer: str) -> tuple[str, bytes] | None:
        """Media type and bytes of the newest screen of an actor."""
        path, changed_s = self._picture(peer)
        if path is None:
            return None
        version, known = f"{path.name}{changed_s}", self._cached.get(peer)
        if known is None or known[0] != version:
            content = read_bytes(path, MAX_FRAME_BYTES)
            if content is None:
                return None
            known = self._cached[peer] = (version, content)
        return PICTURES[path.suffix], known[1]

    def _picture(self, peer: str) -> tuple[Path | None, float | None]:
        """The newer one of the two kinds."""
        files = [self.folder / f"{peer}{suffix}" for suffix in PICTURES]
        dated = [(changed_s, file) for file in files if (changed_s := modified_s(file)) is not None]
        if not dated:
            return None, None
        changed_s, file = max(dated)
        return file, changed_s
