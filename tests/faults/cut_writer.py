"""Writes cuts of a small replay that goes on from the newest, as `forked_jobs` wants them."""

from __future__ import annotations

from pathlib import Path

import torch

from replay_server.cut_files import CutFolder
from replay_server.cut_keeper import CutKeeper
from tests.cut_factory import cut_of, fill, make_buffer
from tests.faults.forked_jobs import Save, serve

BLOCKS = 2
"""New ones in every cut."""


def open_folder(folder: Path) -> Save:
    buffer = make_buffer()
    cuts = CutFolder(folder, buffer.storage)
    keeper = CutKeeper(cuts, in_background=False)
    for name in cuts.names()[:1]:
        cuts.restore(name, buffer)

    def save(steps: int) -> bool:
        fill(buffer, range(BLOCKS * steps, BLOCKS * (steps + 1)))
        keeper.keep(lambda: cut_of(buffer, steps))
        return keeper.counts.failed == 0

    return save


if __name__ == "__main__":
    torch.set_num_threads(1)
    # Libraries that load themselves when they are first used do so before anybody counts calls.
    fill(make_buffer(), range(1))
    serve(open_folder)
