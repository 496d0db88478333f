"""Controls over the web: one request becomes one change, confirmed or refused in words."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Final

from common.errors import ConfigError, MarioError, PeerUnavailable
from common.run_paths import RunPaths
from launch.control_room.now import number
from launch.control_room.safe_files import parse_object, tail_records
from launch.run_controls import BY_NAME, CONTROLS, send_control

MAX_BODY_BYTES: Final = 4_096
HISTORY_BYTES: Final = 32 * 1024
SHOWN_HISTORY: Final = 20
BUSY_S: Final = 8.0


class ControlDesk:
    """One change at a time: two at once could not tell whose answer is whose."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def change(self, paths: RunPaths, body: bytes, address: str) -> tuple[int, dict[str, object]]:
        """Status and answer."""
        try:
            name, value, who = parse_change(body)
        except ConfigError as error:
            return 400, {"error": str(error)}
        if not self._lock.acquire(timeout=BUSY_S):
            return 503, {"error": "another change is under way; try again"}
        try:
            confirmed = send_control(paths, name, value, f"{who} ({address})")
        except PeerUnavailable as error:
            return 504, {"error": str(error)}
        except ConfigError as error:
            return 409, {"error": str(error)}
        except MarioError as error:
            return 502, {"error": str(error)}
        finally:
            self._lock.release()
        return 200, asdict(confirmed)


def parse_change(body: bytes) -> tuple[str, float | None, str]:
    """Name, value and who wants it."""
    record = parse_object(body) or {}
    name, value = record.get("name"), record.get("value")
    if not isinstance(name, str):
        raise ConfigError("expected a JSON object with name, value and who")
    if name not in BY_NAME:
        raise ConfigError(f"no such control; there are {', '.join(BY_NAME)}")
    if value is not None and number(value) is None:
        raise ConfigError(f"{name}: expected a number")
    return name, number(value), str(record.get("who") or "somebody")[:40]


def describe_controls(paths: RunPaths, *, allowed: bool) -> dict[str, object]:
    history = tail_records(paths.control_log, HISTORY_BYTES)
    return {
        "allowed": allowed,
        "controls": [asdict(control) for control in CONTROLS],
        "history": history[-SHOWN_HISTORY:][::-1],
    }
