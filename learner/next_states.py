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
        self.upcoming: Batch | None = None
        """What will probably be asked for next, where it is known."""
        self._early: tuple[Tensor, Answer[Tensor]] | None = None
        """States of a batch that is to come, and what the target thinks of them."""

    def ask(self, batch: Batch) -> Callable[[], NextQuantiles]:
        target = self._known(batch) or self._begin(self._target, batch)
        online = self._begin(self._online, batch)
        return lambda: NextQuantiles(online=online(), target=target())

    def look_ahead(self) -> None:
        """Begin with what does not wait for the weights of the next update."""
        if self.upcoming is not None:
            states = self.upcoming.next_observations
            self._early = (states, self._begin(self._target, self.upcoming))

    def forget(self) -> None:
        """Before the target changes, or the memory of a batch that is to come."""
        if self._early is not None:
            _, answer = self._early
            answer.drop()
            self._early = None

    def _known(self, batch: Batch) -> Answer[Tensor] | None:
        early, self._early = self._early, None
        if early is None:
            return None
        states, answer = early
        if states is batch.next_observations:
            return answer
        answer.drop()
        return None

    def _begin(self, layers: LayerWeights, batch: Batch) -> Answer[Tensor]:
        return self._aside.begin(partial(self.look, layers, batch))

    def look(self, layers: LayerWeights, batch: Batch) -> Tensor:
        with torch.no_grad(), self._precision():
            values: Tensor = layers.network(batch.next_observations, batch.next_prev_actions)
        return values
