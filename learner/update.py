"""One gradient update after another: networks, optimizer, target copies; no files, no sockets."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from common.batch import Batch
from common.devices import has_fast_bfloat16
from common.errors import ConfigError
from common.networks import QuantileNetwork
from common.phases import PhaseTimer
from common.state_dicts import load_plain_state_dict, plain_state_dict
from learner.average import WeightAverage
from learner.layer_weights import LayerWeights, as_it_is, in_precision, side_by_side
from learner.loss_scale import LossScale
from learner.losses import LossTerms, NextQuantiles, double_q_loss
from learner.next_states import NextStates
from learner.second_thread import Answer, AtOnce, Done, Later, SecondThread

log = logging.getLogger(__name__)

Meanwhile = Callable[[], Batch | None]
"""What there is to do besides an update; returns the batch after it, where it is known."""
MixedPrecision = Literal["off", "bfloat16", "float16"]
COMPILE_FAILURES = (RuntimeError, ImportError, OSError)
"""What a failing compiler raises: dynamo's errors are RuntimeErrors, a missing tool is the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSettings:
    learning_rate: float = 2.5e-4
    adam_epsilon: float = 1.5e-4
    max_grad_norm: float = 10.0
    target_sync_interval_updates: int = 500
    average_decay: float = 0.0
    """Of the running mean of the weights, per update; 0: there is none."""
    mixed_precision: MixedPrecision = "off"
    """Half-precision layers where the device is made for them; elsewhere one warning, float32."""
    second_threads: int = 0
    """Threads of torch for passes and gradients beside the learner's own, on a CPU; 0: none."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "adam_epsilon", "max_grad_norm"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be above 0 and finite, got {getattr(self, name)}")
        if self.target_sync_interval_updates < 1:
            raise ConfigError(
                "target_sync_interval_updates must be >= 1, "
                f"got {self.target_sync_interval_updates}"
            )
        if not 0.0 <= self.average_decay < 1.0:
            raise ConfigError(f"average_decay must be in [0, 1), got {self.average_decay}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateResult:
    """What one update did. `priorities` of an update that is not finite must not be sent."""

    loss: float
    priorities: Tensor
    """float32 [B] in the host's memory, quantile losses before the exponent alpha."""
    q_mean: float
    grad_norm: float
    """Before clipping."""
    finite: bool
    """False: the update was skipped, parameters and optimizer are as before."""


class Averaging(Protocol):
    """What a learner asks of the other ranks, each of which has drawn a part of the batch."""

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Put the mean over the ranks in their place; NaN or infinity in one is in all then."""
        ...


class Learner:
    """The online and the target network and the optimizer between them. One thread owns it."""

    def __init__(
        self, online: QuantileNetwork, target: QuantileNetwork, settings: UpdateSettings
    ) -> None:
        self.online = online
        self.target = target.requires_grad_(requires_grad=False)
        self.settings = settings
        decay = settings.average_decay
        self.average = WeightAverage(online, decay) if decay else None
        self.device = next(online.parameters()).device
        self.autocast_dtype = _autocast_dtype(settings.mixed_precision, self.device)
        # Fused: one kernel that also clips, and skips a step by a flag that stays on the device.
        self.optimizer = torch.optim.Adam(
            online.parameters(), lr=settings.learning_rate, eps=settings.adam_epsilon, fused=True
        )
        is_narrow = self.autocast_dtype is torch.float16
        self.loss_scale = LossScale.for_float16() if is_narrow else LossScale()
        self.updates = 0
        """Updates that were applied."""
        self.skipped_updates = 0
        self.consecutive_skipped_updates = 0
        self.target_syncs = 0
        self.model_compiled = False
        self.ranks: Averaging | None = None
        """Of a learner that is one process of several."""
        self.timer = PhaseTimer()
        """Knows the parts of an update; the loop adds what lies between two of them."""
        self._trained = list(online.parameters())
        # A GPU does one thing after the other anyhow.
        self.looks_ahead = settings.second_threads > 0 and self.device.type == "cpu"
        """Whether it helps to know the batch after the one that is trained on."""
        self._aside = SecondThread(settings.second_threads) if self.looks_ahead else AtOnce()
        dtype = self.autocast_dtype
        form = as_it_is if dtype is None else in_precision(dtype)
        self._layers = LayerWeights(online, form, self._aside)
        self._target_layers = LayerWeights(self.target, form)
        is_plain = dtype is None and self.device.type == "cpu"
        self._trained_layers = (
            LayerWeights(online, side_by_side, self._aside) if is_plain else self._layers
        )
        self._besides: Answer[Batch | None] = Done(None)
        """What was given to do meanwhile, until it is done."""
        self._next = NextStates(self._aside, self._layers, self._target_layers, self._precision)
        self._loss_terms: Callable[[Batch], LossTerms] = self._compute_loss_terms
        self.sync_target()
        self.target_syncs = 0

    def update(self, batch: Batch, meanwhile: Meanwhile = lambda: None) -> UpdateResult:
        """Train on one batch that lies on the learner's device; the host waits once, at the end.

        `meanwhile` is called once, by the second thread or while a GPU has something to do, and is
        over when this returns. The batch that it gives must stay as it is until its own update.
        """
        self._besides = Later(meanwhile)
        with self.timer.phase("forward"):
            # Those that only look are the same, or the network itself.
            self._trained_layers.follow()
            terms = self._loss_terms(batch)
            means = torch.stack((terms.loss.detach(), terms.q_mean))
        grad_norm = self._apply_gradient(terms.loss, means)
        with self.timer.phase("device"):
            # The one wait of an update, for three numbers. Priorities come with them: who sends
            # them later need not wait for what the device does then.
            told = torch.cat((means, grad_norm.reshape(1))).tolist()
            priorities = terms.errors if terms.errors.is_cpu else terms.errors.cpu()
        loss, q_mean, norm = told
        finite = math.isfinite(loss) and math.isfinite(norm)
        with self.timer.phase("optimizer"):
            self._count(finite=finite)
        return UpdateResult(
            loss=loss, priorities=priorities, q_mean=q_mean, grad_norm=norm, finite=finite
        )

    def set_learning_rate(self, learning_rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def sync_target(self) -> None:
        self.load_target(plain_state_dict(self.online), what="the online network")
        self.target_syncs += 1

    def load_target(self, tensors: Mapping[str, Tensor], *, what: str) -> None:
        """The only way to change it: what it thought before is forgotten."""
        self._next.forget()
        load_plain_state_dict(self.target, tensors, what=what)
        self._target_layers.follow()

    def settle(self) -> None:
        """Until the next update nothing reads a batch that was announced."""
        self._next.forget()

    def close(self) -> None:
        """Nothing reads a batch afterwards."""
        self.settle()
        self._aside.close()

    def compile(self, example: Batch) -> bool:
        """Compile the loss and try it on `example`; on failure go on eagerly with one warning.

        Call it after weights have been loaded. Parameters, gradients and counters stay as they are.
        """
        compiled: Callable[[Batch], LossTerms] = torch.compile(self._loss_terms_at_once)
        try:
            self._trained_layers.differentiate(compiled(example).loss)()
        except COMPILE_FAILURES as exc:
            log.warning("compile failed, training uncompiled", extra={"error": str(exc)[:500]})
            torch.compiler.reset()
        else:
            self._loss_terms = compiled
            self.model_compiled = True
        return self.model_compiled

    def _loss_terms_at_once(self, batch: Batch) -> LossTerms:
        # What a compiler can follow: no threads and nothing kept from one call to the next.
        after = NextQuantiles(
            online=self._next.look(self._layers, batch),
            target=self._next.look(self._target_layers, batch),
        )
        with self._precision():
            quantiles = self._trained_layers.network(batch.observations, batch.prev_actions)
        return double_q_loss(quantiles, batch, after)

    def _compute_loss_terms(self, batch: Batch) -> LossTerms:
        # Two passes of the online network: one pass over both halves would also differentiate the
        # half that needs no gradient, and measured 1.2 to 1.7 times slower on CPU.
        after = self._next.ask(batch)
        if self.looks_ahead:
            # Behind what is waited for first.
            self._besides = self._aside.begin(self._besides)
        with self._precision():
            quantiles = self._trained_layers.network(batch.observations, batch.prev_actions)
        return double_q_loss(quantiles, batch, after())

    def _precision(self) -> torch.autocast:
        return torch.autocast(
            self.device.type,
            dtype=self.autocast_dtype,
            enabled=self.autocast_dtype is not None,
            # There is nothing to cast twice, and all threads would share what one has cast.
            cache_enabled=False,
        )

    def _apply_gradient(self, loss: Tensor, means: Tensor) -> Tensor:
        """Step unless loss or gradient is not finite, decided on the device; returns the norm.

        With ranks `means`, of this part of the batch, become those of the whole batch.
        """
        with self.timer.phase("backward"):
            self._differentiate(loss)
        if self.ranks is not None:
            with self.timer.phase("ranks"):
                self.ranks.average([*self._gradients(), means])
        with self.timer.phase("optimizer"):
            return self._step()

    def _step(self) -> Tensor:
        """One look at the gradients for their norm, one walk through them for all else."""
        scale, limit = self.loss_scale.factor, self.settings.max_grad_norm
        norm = nn.utils.get_total_norm(self._gradients()) / scale
        # Adam divides by the first and does nothing where the second is 1.
        vars(self.optimizer)["grad_scale"] = (norm / limit).clamp_(min=1.0) * scale
        vars(self.optimizer)["found_inf"] = (~norm.isfinite()).float()
        self.optimizer.step()
        return norm

    def _gradients(self) -> list[Tensor]:
        return [p.grad for p in self._trained if p.grad is not None]

    def _differentiate(self, loss: Tensor) -> None:
        # 1 for a finite loss, NaN otherwise: the Huber gradient of an infinite loss is finite, so
        # without this factor the norm would let the update pass.
        guard = loss.detach() - loss.detach() + 1.0
        gradients = self._trained_layers.differentiate(loss * guard * self.loss_scale.factor)
        with self.timer.phase("priorities"):
            upcoming = self._besides()
        if self.looks_ahead and upcoming is not None:
            # Behind the gradients, for which this thread waits.
            self._next.look_ahead(upcoming)
        for parameter, gradient in zip(self._trained, gradients(), strict=True):
            parameter.grad = gradient

    def _count(self, *, finite: bool) -> None:
        self.loss_scale.learn(finite=finite)
        if not finite:
            self.skipped_updates += 1
            self.consecutive_skipped_updates += 1
            return
        self.consecutive_skipped_updates = 0
        self.updates += 1
        if self.average is not None:
            self.average.follow(self.online)
        if self.updates % self.settings.target_sync_interval_updates == 0:
            self.sync_target()


def _autocast_dtype(mixed_precision: MixedPrecision, device: torch.device) -> torch.dtype | None:
    if mixed_precision == "off":
        return None
    if device.type == "cpu" and mixed_precision == "bfloat16" and has_fast_bfloat16():
        return torch.bfloat16
    if device.type != "cuda":
        log.warning(
            "this device has no fast half precision, using float32",
            extra={"device": str(device), "asked_for": mixed_precision},
        )
        return None
    return torch.bfloat16 if mixed_precision == "bfloat16" else torch.float16
