"""The learner as named tensors and JSON, and back: a restored one continues bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from common.checkpoint_files import JsonObject
from common.errors import CheckpointCorrupt
from common.state_dicts import (
    COMPILED_PREFIX,
    load_plain_state_dict,
    plain_state_dict,
    require_same_layout,
    without_prefixes,
)
from learner.update import Learner

ADAM_MOMENTS = ("exp_avg", "exp_avg_sq")
ADAM_STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnerSnapshot:
    """Independent of the learner it was taken from: every tensor is a copy on the CPU."""

    network: Mapping[str, Tensor]
    target: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    """`<parameter>/<step, exp_avg or exp_avg_sq>`; empty before the first update."""
    counters: JsonObject
    average: Mapping[str, Tensor] = field(default_factory=dict)
    """Of the weights over many updates; empty where none is kept."""


def take_snapshot(learner: Learner) -> LearnerSnapshot:
    return LearnerSnapshot(
        network=_copies(plain_state_dict(learner.online)),
        target=_copies(plain_state_dict(learner.target)),
        optimizer=_copies(_optimizer_tensors(learner)),
        counters={
            "updates": learner.updates,
            "skipped_updates": learner.skipped_updates,
            "target_syncs": learner.target_syncs,
            "learning_rate": float(learner.optimizer.param_groups[0]["lr"]),
            "loss_scale": learner.loss_scale.state(),
        },
        average={} if learner.average is None else _copies(learner.average.tensors()),
    )


def restore_snapshot(learner: Learner, snapshot: LearnerSnapshot) -> None:
    """Check everything first, then copy into the learner, compiled or not."""
    moments = without_prefixes(snapshot.optimizer)
    if moments:
        require_same_layout(moments, _expected_moments(learner), what="the optimizer state")
    target = without_prefixes(snapshot.target)
    require_same_layout(target, plain_state_dict(learner.target), what="the target")
    average = without_prefixes(snapshot.average)
    if average:
        require_same_layout(average, plain_state_dict(learner.online), what="the average")
    for group in (snapshot.network, target, moments, average):
        require_finite(group)
    load_plain_state_dict(learner.online, snapshot.network, what="the network")
    learner.load_target(snapshot.target, what="the target")
    _load_moments(learner, moments)
    _load_counters(learner, snapshot.counters)
    if learner.average is not None:
        # A run that kept none before begins its average where it is now.
        learner.average.restore(average or snapshot.network, learner.updates)


def require_finite(tensors: Mapping[str, Tensor]) -> None:
    """Updates that are not finite are never applied, so such a value is damage."""
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise CheckpointCorrupt(f"{name}: expected finite values, got NaN or infinity")


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()
    }


def _plain_parameters(learner: Learner) -> dict[str, torch.nn.Parameter]:
    return {
        name.replace(COMPILED_PREFIX, ""): parameter
        for name, parameter in learner.online.named_parameters()
    }


def _optimizer_tensors(learner: Learner) -> dict[str, Tensor]:
    state = learner.optimizer.state
    return {
        f"{name}/{key}": state[parameter][key]
        for name, parameter in _plain_parameters(learner).items()
        if parameter in state
        for key in (ADAM_STEP, *ADAM_MOMENTS)
    }


def _expected_moments(learner: Learner) -> dict[str, Tensor]:
    expected: dict[str, Tensor] = {}
    for name, parameter in _plain_parameters(learner).items():
        expected[f"{name}/{ADAM_STEP}"] = torch.zeros(())
        expected |= {f"{name}/{key}": parameter for key in ADAM_MOMENTS}
    return expected


def _load_moments(learner: Learner, moments: Mapping[str, Tensor]) -> None:
    learner.optimizer.state.clear()
    if not moments:
        return
    for name, parameter in _plain_parameters(learner).items():
        learner.optimizer.state[parameter] = {
            key: moments[f"{name}/{key}"].to(parameter.device, copy=True)
            for key in (ADAM_STEP, *ADAM_MOMENTS)
        }


def _load_counters(learner: Learner, counters: JsonObject) -> None:
    # A view without types: whatever damaged counters hold ends in one of the errors below.
    values: Any = counters
    try:
        learner.updates = int(values["updates"])
        learner.skipped_updates = int(values["skipped_updates"])
        learner.target_syncs = int(values["target_syncs"])
        learner.set_learning_rate(float(values["learning_rate"]))
        learner.loss_scale.restore(values["loss_scale"])
    except (KeyError, TypeError, ValueError, OverflowError) as exc:
        raise CheckpointCorrupt(f"learner counters cannot be restored: {exc!r}") from exc
    learner.consecutive_skipped_updates = 0
