"""What both networks think of the states that returns bootstrap from, found aside where possible.

The online network has to look at them with the weights of this update, meanwhile the learner's own
thread looks at the states before. The target is the same for hundreds of updates: it looks at the
next batch when the gradients of this one are found. What is found is the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from common.batch import Batch
from common.networks import scaled_pixels
from learner.layer_weights import LayerWeights
from learner.losses import NextQuantiles
from learner.second_thread import Answer, Aside


class NextStates:
    """Of one learner. Its weights must not change between `ask` and the answer."""

    def __init__(
        self,
        aside: Aside,
        online: LayerWeights,
        target: LayerWeights,
        precision: Callable[[], torch.autocast],
    ) -> None:
        self._aside = aside
        self._online = online
        self._target = target
        self._precision = precision
        self._early: tuple[States, Answer[Tensor]] | None = None
        """Those of a batch that is to come, and what the target thinks of them."""

    def ask(self, batch: Batch) -> Callable[[], NextQuantiles]:
        states, target = self._known(batch) or self._begin_target(batch)
        online = self._begin(self._online, states)
        return lambda: NextQuantiles(online=online(), target=target())

    def look_ahead(self, upcoming: Batch) -> None:
        """Begin with what does not wait for the weights of the next update."""
        self._early = self._begin_target(upcoming)

    def forget(self) -> None:
        """Before the target changes, or the memory of a batch that is to come."""
        if self._early is not None:
            _, answer = self._early
            answer.drop()
            self._early = None

    def look(self, layers: LayerWeights, batch: Batch) -> Tensor:
        return self._look(layers, States(batch))

    def _known(self, batch: Batch) -> tuple[States, Answer[Tensor]] | None:
        early, self._early = self._early, None
        if early is None:
            return None
        states, answer = early
        if states.are_of(batch):
            return early
        answer.drop()
        return None

    def _begin_target(self, batch: Batch) -> tuple[States, Answer[Tensor]]:
        states = States(batch)
        return states, self._begin(self._target, states)

    def _begin(self, layers: LayerWeights, states: States) -> Answer[Tensor]:
        return self._aside.begin(partial(self._look, layers, states))

    def _look(self, layers: LayerWeights, states: States) -> Tensor:
        with torch.no_grad(), self._precision():
            values: Tensor = layers.network(states.pixels(), states.prev_actions)
        return values


class States:
    """The states that returns of a batch bootstrap from, as both networks want them."""

    def __init__(self, batch: Batch) -> None:
        self._observations = batch.next_observations
        self.prev_actions = batch.next_prev_actions
        self._pixels: Tensor | None = None

    def are_of(self, batch: Batch) -> bool:
        return self._observations is batch.next_observations

    def pixels(self) -> Tensor:
        """Made by whoever comes first; two who come at once both make them."""
        if self._pixels is None:
            self._pixels = scaled_pixels(self._observations)
        return self._pixels
