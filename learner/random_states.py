"""The states of the random generators as JSON, so that a resumed run draws what it would have."""

from __future__ import annotations

import base64
import random
from typing import Any

import numpy as np
import torch

from common.checkpoint_files import JsonObject
from common.errors import CheckpointCorrupt


def capture_random_states() -> JsonObject:
    """The global generators of Python, NumPy and torch (CPU and every CUDA device)."""
    version, words, gauss = random.getstate()
    legacy = np.random.get_state(legacy=False)
    return {
        "python": {"version": version, "words": list(words), "gauss": gauss},
        "numpy": {
            "key": legacy["state"]["key"].tolist(),
            "position": int(legacy["state"]["pos"]),
            "has_gauss": int(legacy["has_gauss"]),
            "gauss": float(legacy["gauss"]),
        },
        "torch": _encode(torch.get_rng_state()),
        "cuda": [_encode(state) for state in torch.cuda.get_rng_state_all()],
    }


def restore_random_states(states: JsonObject) -> None:
    """Set the global generators; CUDA states beyond the devices present are left out."""
    # A view without types: whatever a damaged state holds ends in one of the errors below.
    parts: Any = states
    try:
        python = parts["python"]
        random.setstate((python["version"], tuple(python["words"]), python["gauss"]))
        np.random.set_state(_numpy_state(parts["numpy"]))
        torch.set_rng_state(_decode(parts["torch"]))
        for index, text in enumerate(parts["cuda"][: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(_decode(text), index)
    except (LookupError, TypeError, ValueError, OverflowError, RuntimeError) as exc:
        raise CheckpointCorrupt(f"random states cannot be restored: {exc!r}") from exc


def _numpy_state(parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "bit_generator": "MT19937",
        "state": {"key": np.array(parts["key"], dtype=np.uint32), "pos": parts["position"]},
        "has_gauss": parts["has_gauss"],
        "gauss": parts["gauss"],
    }


def _encode(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode("ascii")


def _decode(text: str) -> torch.Tensor:
    raw = bytearray(base64.b64decode(text, validate=True))
    return torch.frombuffer(raw, dtype=torch.uint8)
