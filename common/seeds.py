"""Independent random seeds for every process and environment, from the one seed of the run."""

from __future__ import annotations

import zlib

import numpy as np


def seed_for(run_seed: int, purpose: str, index: int = 0) -> int:
    """A 31-bit seed; the same inputs give the same seed on every machine."""
    words = [run_seed, zlib.crc32(purpose.encode()), index]
    return int(np.random.SeedSequence(words).generate_state(1)[0] >> 1)
