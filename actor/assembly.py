"""Puts an actor together from the settings; the process and lockstep use the same parts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from actor.block_builder import BlockBuilder
from actor.env.construction import ConstructionPlan, Recipe, build_serially
from actor.env.core_choice import settle_core
from actor.env.host_lock import default_lock_path
from actor.env.interface import EnvProtocol
from actor.frontier import Frontier
from actor.lane import Lane
from actor.loop import ActorLoop, ActorParts, EpsilonOf
from actor.policy import Policy
from actor.showcase import Showcase
from actor.sink import BlockSink
from actor.stage_choice import StageChoice, first_shares
from actor.starts import Starts
from actor.tool_assembly import Toolbox, build_slow_step_trace
from actor.weight_feed import WeightFeed
from common.channels import Network
from common.config import Settings
from common.controls import PlayControls
from common.devices import has_fast_bfloat16
from common.exploration import ExplorationSettings, epsilon_at
from common.game import construction_deadline_s
from common.handshake import open_link
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import Role, new_incarnation
from common.inference import PreparedNetwork
from common.networks import QuantileNetwork, build_network
from common.phases import PhaseTimer
from common.run_paths import RunPaths
from common.seeds import seed_for
from common.shards import replay_endpoints, shard_of
from common.trace_log import TraceLog
from common.weights import weight_contract

log = logging.getLogger(__name__)


def build(
    settings: Settings,
    network: Network,
    index: int,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> ActorLoop:
    """An actor whose environments stand ready. `clock` paces its questions to the server."""
    settings = replace(settings, env=settle_core(settings.env))
    identity = Identity(
        run_id=settings.run.run, role="actor", index=index, incarnation=new_incarnation()
    )
    endpoints, paths = settings.endpoints, RunPaths.of(settings.run)
    telemetry = network.pusher(endpoints.telemetry_endpoint)
    heartbeat = HeartbeatWriter(
        identity,
        paths.process_heartbeat(identity.peer),
        settings.run.metrics_interval_s,
        pusher=telemetry,
    )
    heartbeat.beat(0, "building environments")
    net = build_network(
        settings.learner.network, settings.spec, settings.learner.num_quantiles
    ).eval()
    servers = replay_endpoints(settings)
    endpoint = servers[shard_of(identity.peer, len(servers))]
    link = open_link(network, endpoint, identity, settings.spec, clock=clock)
    subscriber = network.subscriber(endpoints.weights_endpoint)
    starts, timer, toolbox = (
        _starts(settings, index),
        PhaseTimer(),
        Toolbox(settings, identity.peer),
    )
    parts = ActorParts(
        identity=identity,
        lanes=[
            _lane(settings, env_index, starts, timer, toolbox)
            for env_index in _env_indices(settings, index)
        ],
        policy=Policy(_prepared(net, settings), seed_for(settings.run.seed, "policy", index)),
        sink=BlockSink(link, settings.actor.send_window, clock=clock),
        feed=WeightFeed(
            subscriber,
            net,
            weight_contract(settings),
            max_age_s=settings.actor.max_weight_age_s,
        ),
        telemetry=telemetry,
        heartbeat=heartbeat,
        epsilon_of=_epsilon_of(settings),
        starts=starts,
        traces=TraceLog(paths.process_traces(identity.peer)),
        timer=timer,
        shaping=toolbox.shaping,
        slow_steps=build_slow_step_trace(settings, identity.peer),
        showcase=Showcase(paths.live, identity.peer),
        notes=toolbox.notes,
    )
    log.info(
        "environments ready",
        extra={"count": len(parts.lanes), "game": settings.env.game, "core": settings.env.core},
    )
    return ActorLoop(parts)


def _prepared(network: QuantileNetwork, settings: Settings) -> PreparedNetwork:
    """In the precision that the learner computes with, where this CPU has it."""
    is_half = settings.learner.mixed_precision == "bfloat16" and has_fast_bfloat16()
    return PreparedNetwork(network, torch.bfloat16 if is_half else torch.float32)


def _env_indices(settings: Settings, index: int) -> range:
    """Of the environments of one actor, among those of the run."""
    first = index * settings.actor.envs_per_actor
    return range(first, first + settings.actor.envs_per_actor)


def _lane(
    settings: Settings, env_index: int, starts: Starts, timer: PhaseTimer, toolbox: Toolbox
) -> Lane:
    block_steps, num_envs = settings.actor.block_steps, settings.actor.num_envs
    builder = BlockBuilder(
        settings.spec,
        block_steps,
        settings.replay.gamma,
        first_block_steps=max(1, block_steps * (env_index + 1) // num_envs),
    )
    seed = seed_for(settings.run.seed, "environment", env_index)
    env = build_env(settings, "actor", env_index // settings.actor.envs_per_actor)
    tools = toolbox.tools_for(env, env_index)
    return Lane(env, builder, settings.spec, seed=seed, starts=starts, timer=timer, tools=tools)


def _starts(settings: Settings, index: int) -> Starts:
    share, seed = settings.practice_share, settings.run.seed
    stages = StageChoice(settings.env.stage_names, seed_for(seed, "stages", index))
    stages.set_shares(first_shares(settings))
    kind = settings.actor.frontier_starts
    return Starts(stages, Frontier(share, seed_for(seed, "frontier", index), kind))


def build_env(settings: Settings, role: Role, index: int) -> EnvProtocol:
    """In turn with all others on this host; the stages of it are in the run's diagnostics."""
    env = settings.env
    plan = ConstructionPlan(
        role=role,
        index=index,
        deadline_s=env.env_deadline_s or construction_deadline_s(settings.actor.num_envs),
        lock_path=default_lock_path(),
        diagnostics_path=RunPaths.of(settings.run).diagnostics / "construction.jsonl",
        start_delay_s=env.env_start_delay_s,
    )
    built, _ = build_serially(Recipe.of(env), plan)
    return built


def _epsilon_of(settings: Settings) -> EpsilonOf:
    chosen = settings.actor
    exploration = ExplorationSettings(
        decay_agent_steps=chosen.epsilon_anneal_agent_steps,
        warmup_agent_steps=chosen.epsilon_warmup_agent_steps,
    )

    def epsilon_of(env_index: int, agent_steps: int, controls: PlayControls) -> float:
        number = controls.environments or chosen.num_envs
        # Where actors have just become fewer, one beyond their number stands on the last rung.
        place = min(env_index, number - 1)
        factor = controls.exploration_scale
        return epsilon_at(place, number, agent_steps, exploration, factor=factor)

    return epsilon_of
