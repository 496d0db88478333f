"""Games for people to watch or to play; `launch/play.py` loads this module by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from torch import nn

from actor.env.core_choice import settle_core
from actor.env.factory import make_env
from actor.episode_player import EpisodePlayer
from common.checkpoint_files import WeightsChoice
from common.config import CoreName
from common.devices import limit_torch_threads
from common.models import ModelPlace, load_network

PERSONS_ACTIONS: Final = "extended"
"""Every combination of buttons that does something."""


def agent_player(place: ModelPlace, core: CoreName, weights: WeightsChoice) -> EpisodePlayer:
    """Plays greedily, as in an evaluation."""
    limit_torch_threads(1)
    network, _ = load_network(place, weights)
    env = make_env(settle_core(replace(place.settings.env, core=core, sticky=0.0)))
    return EpisodePlayer(env, network, place.settings.spec, epsilon=0.0)


def person_player(place: ModelPlace, core: CoreName) -> EpisodePlayer:
    """The same game with the same rules, and all buttons; only `step` moves it."""
    chosen = replace(place.settings.env, core=core, sticky=0.0, actions=PERSONS_ACTIONS)
    env = make_env(settle_core(chosen))
    spec = replace(place.settings.spec, num_actions=env.num_actions)
    return EpisodePlayer(env, nn.Identity(), spec, epsilon=0.0)
