"""How the control room writes JSON, in answers and in events alike."""

from __future__ import annotations

import json


def as_json(value: object) -> bytes:
    """Strict: a NaN would be an answer that no browser can read, so it is a fault of ours."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=str).encode()
