"""The state of rank 0 on all ranks, so that they begin equal wherever their files are."""

from __future__ import annotations

import json
from collections.abc import Mapping

from safetensors.torch import load, save
from torch import Tensor

from common.checkpoint_files import JsonObject, encode_json
from learner.snapshot import LearnerSnapshot, restore_snapshot, take_snapshot
from learner.team import Team
from learner.update import Learner

GROUPS = ("network", "target", "optimizer", "average")


def share_state(team: Team, learner: Learner) -> None:
    """Give away the learner's state on rank 0, take it over on the others."""
    snapshot = take_snapshot(learner)
    tensors, counters = team.share(_packed(snapshot)), team.share(encode_json(snapshot.counters))
    if not team.place.is_first:
        restore_snapshot(learner, _unpacked(load(tensors), json.loads(counters)))


def _packed(snapshot: LearnerSnapshot) -> bytes:
    return save(
        {
            f"{group}:{name}": tensor
            for group in GROUPS
            for name, tensor in getattr(snapshot, group).items()
        }
    )


def _unpacked(tensors: Mapping[str, Tensor], counters: JsonObject) -> LearnerSnapshot:
    groups: dict[str, dict[str, Tensor]] = {group: {} for group in GROUPS}
    for key, tensor in tensors.items():
        group, _, name = key.partition(":")
        groups[group][name] = tensor
    return LearnerSnapshot(counters=counters, **groups)
