"""Epsilon-greedy play on the CPU with the newest weights; one forward pass for all environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from common.blocks import F32, U8
from common.inference import PreparedNetwork

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """What to do in each of K environments, and what the network thought."""

    actions: I64
    chosen_quantiles: F32
    """[K, N]."""
    greedy_quantiles: F32
    """[K, N]."""
    quantiles: F32
    """[K, A, N], of all actions."""
    explores: npt.NDArray[np.bool_]
    """[K], whether chance was to choose."""


class Policy:
    """Owns the network of an actor and its randomness."""

    def __init__(self, network: PreparedNetwork, seed: int) -> None:
        self.network = network
        self._rng = np.random.default_rng(seed)

    def decide(
        self,
        observations: U8,
        prev_actions: I64,
        epsilons: F32,
        *,
        forced: Sequence[int | None] = (),
    ) -> Decision:
        """Choose for uint8 [K, stack, H, W], with an epsilon for each environment.

        Where `forced` has an action it is the chosen one; chance goes on as if it were not there.
        """
        greedy, quantiles = self.network.infer(
            torch.from_numpy(observations), torch.from_numpy(prev_actions)
        )
        values: F32 = quantiles.numpy()
        rows = np.arange(len(prev_actions))
        best: I64 = greedy.numpy()
        explores = self._rng.random(len(rows)) < epsilons
        random: I64 = self._rng.integers(values.shape[1], size=len(rows))
        actions: I64 = np.where(explores, random, best)
        for row, action in enumerate(forced):
            if action is not None:
                actions[row] = action
        return Decision(
            actions=actions,
            chosen_quantiles=values[rows, actions],
            greedy_quantiles=values[rows, best],
            quantiles=values,
            explores=explores,
        )
