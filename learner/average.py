"""A running mean of the online weights: steadier play than any single update's."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from common.state_dicts import load_plain_state_dict, plain_state_dict


class WeightAverage:
    """Follows the online network; nothing that is trained ever reads it."""

    def __init__(self, online: nn.Module, decay: float) -> None:
        mean = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call] # torch's own gap
        self._model = AveragedModel(online, multi_avg_fn=mean)
        self._model.requires_grad_(requires_grad=False)

    def follow(self, online: nn.Module) -> None:
        """One update more; the first is taken over whole."""
        self._model.update_parameters(online)

    def tensors(self) -> dict[str, Tensor]:
        """The mean's own tensors, by the names of the network."""
        return plain_state_dict(self._model.module)

    def restore(self, tensors: Mapping[str, Tensor], updates: int) -> None:
        """Go on from `tensors` of a checkpoint, which had seen so many updates."""
        load_plain_state_dict(self._model.module, tensors, what="the average")
        self._model.n_averaged.fill_(updates)
