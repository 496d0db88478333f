"""Puts an evaluator together from the settings of a run."""

from __future__ import annotations

from dataclasses import replace

from actor.assembly import build_env
from actor.env.core_choice import settle_core
from actor.episode_player import EpisodePlayer
from actor.evaluator import Evaluator, EvaluatorParts
from actor.film_crew import FilmCrew
from common.channels import Network
from common.config import Settings
from common.evaluation import EvaluationPlan
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import new_incarnation
from common.networks import build_network
from common.run_paths import RunPaths
from common.trace_log import TraceLog


def build(settings: Settings, network: Network, index: int) -> Evaluator:
    """An evaluator whose environment stands ready."""
    settings = replace(settings, env=settle_core(settings.env))
    chosen, paths = settings.evaluation, RunPaths.of(settings.run)
    identity = Identity(
        run_id=settings.run.run, role="evaluator", index=index, incarnation=new_incarnation()
    )
    heartbeat = HeartbeatWriter(
        identity,
        paths.process_heartbeat(identity.peer),
        settings.run.metrics_interval_s,
        pusher=network.pusher(settings.endpoints.telemetry_endpoint),
    )
    heartbeat.beat(0, "building the environment")
    net = build_network(
        settings.learner.network, settings.spec, settings.learner.num_quantiles
    ).eval()
    env = build_env(evaluated(settings), "evaluator", index)
    player = EpisodePlayer(env, net, settings.spec, epsilon=0.0)
    return Evaluator(
        EvaluatorParts(
            peer=identity.peer,
            player=player,
            network=net,
            plan=EvaluationPlan(
                stages=settings.env.stage_names,
                episodes=chosen.eval_episodes,
                noop_max=chosen.eval_noop_max,
                seed=settings.run.seed,
            ),
            interval_agent_steps=chosen.eval_interval_agent_steps,
            checkpoints=paths.checkpoints,
            results=paths.evaluations,
            traces=TraceLog(paths.process_traces(identity.peer)),
            heartbeat=heartbeat,
            crew=film_crew(player, settings, paths),
        )
    )


def film_crew(player: EpisodePlayer, settings: Settings, paths: RunPaths) -> FilmCrew | None:
    if settings.evaluation.eval_films == 0:
        return None
    return FilmCrew(
        player,
        videos=paths.videos,
        maps=paths.maps,
        keep=settings.evaluation.eval_films,
        frame_skip=settings.env.frame_skip,
    )


def evaluated(settings: Settings) -> Settings:
    """What makes training harder on purpose is switched off."""
    return replace(settings, env=replace(settings.env, sticky=0.0))
