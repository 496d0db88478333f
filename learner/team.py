"""The ranks of one learner: the only user of torch.distributed in the programs.

Every rank makes the same calls in the same order. What is not answered in time, and what a rank
that ended leaves unanswered, is `RanksLost`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from common.errors import RanksLost
from common.ranks import STORE_VARIABLE, Place

START_TIMEOUT_S = 900.0
"""Until all ranks are built: with --compile the first pass takes minutes."""
ROUND_TIMEOUT_S = 60.0
"""Far more than a turn of the loop takes, a checkpoint on a slow disk included."""
FIRST = 0


class Team:
    """Two groups of the same ranks: one is patient, for the start; one is for every update."""

    def __init__(self, place: Place, device: torch.device) -> None:
        self.place = place
        self._is_whole = True
        path = os.environ.get(STORE_VARIABLE)
        on_gpu = device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(device)
        with self._calling():
            dist.init_process_group(
                # What the host says goes over gloo also where gradients go over NCCL.
                "cpu:gloo,cuda:nccl" if on_gpu else "gloo",
                timeout=timedelta(seconds=START_TIMEOUT_S),
                rank=place.rank,
                world_size=place.ranks,
                init_method=f"file://{path}" if path else "env://",
            )
            self._rounds = dist.new_group(timeout=timedelta(seconds=ROUND_TIMEOUT_S))

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Put the mean over the ranks in their place: one message, bit for bit equal on all."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with self._calling():
            dist.all_reduce(flat, group=self._rounds)
        flat.div_(self.place.ranks)
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def hear(self, mine: Sequence[float]) -> list[list[float]]:
        """What each rank says, in the order of the ranks; all say as much."""
        said = torch.tensor(mine, dtype=torch.float64)
        heard = [torch.empty_like(said) for _ in range(self.place.ranks)]
        with self._calling():
            dist.all_gather(heard, said, group=self._rounds)
        return [words.tolist() for words in heard]

    def share(self, data: bytes) -> bytes:
        """What rank 0 gives, on all ranks; as patient as the start."""
        length = torch.tensor([len(data)])
        with self._calling():
            dist.broadcast(length, FIRST)
            given = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            buffer = given if self.place.is_first else torch.empty(int(length), dtype=torch.uint8)
            dist.broadcast(buffer, FIRST)
        return data if self.place.is_first else buffer.numpy().tobytes()

    def assemble(self) -> None:
        """Wait until all are here; as patient as the start."""
        with self._calling():
            dist.all_reduce(torch.zeros(1))

    def close(self) -> None:
        """After a loss there is nobody to take leave of, and the process ends anyhow."""
        if self._is_whole and dist.is_initialized():
            dist.destroy_process_group()

    @contextmanager
    def _calling(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            # All that torch raises here is one, a timeout included.
            self._is_whole = False
            # The rest is advice that does not fit here.
            what = str(error).partition("\n")[0].partition(". ")[0][:300]
            raise RanksLost(
                f"another of the {self.place.ranks} learner ranks ended or does not answer: "
                f"{what}; all begin again from the newest checkpoint"
            ) from error
