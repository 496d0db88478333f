"""Settings that were given and change nothing, because others say otherwise: told at the start."""

from __future__ import annotations

from collections.abc import Iterator

from common.config import Settings
from common.ids import peer_id
from common.shards import shard_of


def idle_settings(settings: Settings) -> Iterator[str]:
    """One line for each of them: what is not used, and why."""
    yield from _idle_scripts(settings)
    yield from _idle_shards(settings)
    shaping, adaptive = settings.shaping, settings.adaptive
    is_shaped = shaping.reward_distance_weight or shaping.reward_score_weight or adaptive.adaptive
    if shaping.enable_ram_x_parse and not is_shaped:
        yield "--enable-ram-x-parse shapes nothing: give --reward-distance-weight or --adaptive"
    low, high = adaptive.adaptive_distance_weight_min, adaptive.adaptive_distance_weight_max
    weight = shaping.reward_distance_weight
    if adaptive.adaptive and not low <= weight <= high:
        yield (
            f"--reward-distance-weight {weight:g} lies outside --adaptive-distance-weight-min and "
            f"-max: the run begins with {min(max(weight, low), high):g}"
        )


def _idle_scripts(settings: Settings) -> Iterator[str]:
    scripts = settings.scripts
    has_sequence = bool(scripts.scripted_sequence)
    if has_sequence and scripts.scripted_forward_frames:
        yield "--scripted-forward-frames is not used: --scripted-sequence goes over it"
    leads_forward = scripts.auto_bootstrap_threshold or (
        scripts.scripted_forward_frames and not has_sequence
    )
    if not leads_forward and (scripts.forward_action_id >= 0 or scripts.probe_forward_actions):
        yield (
            "the forward action is not used: give --scripted-forward-frames without a sequence, or "
            "--auto-bootstrap-threshold"
        )


def _idle_shards(settings: Settings) -> Iterator[str]:
    shards, actors = settings.replay.replay_shards, settings.actor.actors
    used = {shard_of(peer_id("actor", index), shards) for index in range(actors)}
    for shard in sorted(set(range(shards)) - used):
        yield (
            f"{peer_id('replay_server', shard)} stays empty: the hash sends it none of the "
            f"{actors} actors; give more --actors, or fewer --replay-shards"
        )


def unused_on_resume(name: str, settings: Settings) -> str:
    """Behind a setting that was changed for a run that goes on: why it has no effect, if so."""
    if name == "reward_distance_weight" and settings.adaptive.adaptive:
        return " (not used: --adaptive goes on with the weight of the checkpoint)"
    return ""
