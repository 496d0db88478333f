"""What to change when the figures of a run show that something is wrong.

`find_hints` is a pure function of the newest metrics lines of one life of the learner. What needs
time to show is judged only after that time: a run that starts or resumes gets no hint for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from common.config import Settings
from common.game import construction_deadline_s
from launch.evidence import Evidence, Values, number_in, seconds_of
from launch.live_view import percent

WINDOW_S: Final = 30.0
IDLE_GPU_PERCENT: Final = 20.0
LEARNER_WAITS: Final = 0.7
ACTORS_WAIT: Final = 0.9
"""Actors are cheap and there should be enough of them: that they wait for most of their time is
usual where the learner is the bottleneck."""
REPLAY_WAITS: Final = 0.05
OTHERS_WAIT: Final = 0.5
"""Who is busy is no problem before others wait for it."""
NO_DISTANCE_X: Final = 64
"""Pixels; Mario begins at about 40."""
EPISODES_BEFORE_JUDGEMENT: Final = 20
PLATEAU_AGENT_STEPS: Final = 200_000
"""Runs that learned well stood still for up to 130,000 (docs/data)."""
GOOD_CLEAR_RATE: Final = 0.5
"""Who clears so often may stand still."""
FLOAT16_SKIPS: Final = 0.01
"""Share of updates that the loss scale of float16 skips while it finds its level."""


@dataclass(frozen=True, slots=True)
class Hint:
    kind: str
    text: str


def find_hints(lines: Sequence[Values], settings: Settings) -> list[Hint]:
    if not lines:
        return []
    evidence = Evidence(lines, settings)
    return [
        Hint(kind, text) for kind, check in CHECKS.items() if (text := check(evidence)) is not None
    ]


def _check_loss(evidence: Evidence) -> str | None:
    recent = evidence.recent(WINDOW_S)
    if recent is None:
        return None
    skipped, updates = (recent.growth(n) or 0.0 for n in ("skipped_updates_total", "updates"))
    if skipped <= 0:
        return None
    is_scaled = evidence.settings.learner.mixed_precision == "float16"
    if is_scaled and skipped <= FLOAT16_SKIPS * updates:
        return None
    rate = evidence.number("learning_rate") or 0.0
    return (
        f"{skipped:.0f} updates of the last {WINDOW_S:.0f} s were skipped, their loss was not "
        f"finite: lower --learning-rate (now {rate:.2g}), or --mixed-precision off"
    )


def _check_replay(evidence: Evidence) -> str | None:
    stored = evidence.number("replay_push_total")
    run_time_s = seconds_of(evidence.last)
    if not stored:
        if run_time_s <= _start_deadline_s(evidence.settings):
            return None
        return (
            f"nothing was stored in {run_time_s:.0f} s, the replay does not fill: see "
            "logs/actor-0.log, and whether python -m launch.env_regression can build environments"
        )
    recent = evidence.recent(WINDOW_S)
    if recent is None or recent.growth("replay_push_total") != 0:
        return None
    if (recent.mean("wait_share_actors") or 0.0) > ACTORS_WAIT:
        return None
    alive = evidence.number("actors_alive") or 0.0
    return (
        f"no agent step was stored in the last {WINDOW_S:.0f} s, the replay does not fill; "
        f"{alive:.0f} of {evidence.settings.actor.actors} actors are heard: see their logs and "
        "states, and the log of the replay server"
    )


def _start_deadline_s(settings: Settings) -> float:
    """After which an environment must have been built."""
    return settings.env.env_deadline_s or construction_deadline_s(settings.actor.num_envs)


def _check_gpu(evidence: Evidence) -> str | None:
    recent = _recent_learning(evidence)
    if recent is None or not evidence.settings.run.device.startswith("cuda"):
        return None
    util = recent.mean("gpu_util_mean_window")
    if util is None or util >= IDLE_GPU_PERCENT:
        return None
    waits = recent.mean("wait_share_learner") or 0.0
    remedy = (
        "more --actors or --envs-per-actor, or more --samples-per-insert"
        if waits > 1 - LEARNER_WAITS
        else "a larger --batch-size, --compile, or --network nature or impala"
    )
    return (
        f"the GPU works {util:.0f} % of the time and the learner waits {percent(waits)} of it: "
        f"{remedy}"
    )


def _check_waiting(evidence: Evidence) -> str | None:
    recent = _recent_learning(evidence)
    if recent is None:
        return None
    names = ("wait_share_learner", "wait_share_actors", "wait_share_replay")
    learner, actors, replay = (recent.mean(name) for name in names)
    if learner is None or actors is None or replay is None:
        return None
    if replay < REPLAY_WAITS and max(learner, actors) > OTHERS_WAIT:
        return (
            f"learner and actors wait for the replay server, which is busy {percent(1 - replay)} "
            "of its time: a smaller --batch-size, fewer --samples-per-insert, or --device cuda"
        )
    if learner > LEARNER_WAITS and actors < learner:
        is_slow = evidence.settings.env.core == "nes_py" and evidence.settings.env.game == "mario"
        core = "--core native, " if is_slow else ""
        return (
            f"the learner waits {percent(learner)} of its time for the actors: {core}more "
            "--actors or --envs-per-actor, or more --samples-per-insert"
        )
    if actors > ACTORS_WAIT:
        return (
            f"actors wait {percent(actors)} of their time for the learner: fewer "
            "--samples-per-insert, more --learner-threads, a smaller --batch-size; or fewer "
            "--actors, at the same speed"
        )
    return None


def _check_distance(evidence: Evidence) -> str | None:
    learning = evidence.learning()
    x = evidence.number("env_mean_x_pos")
    if learning is None or x is None or evidence.settings.env.game != "mario":
        return None
    episodes = learning.growth("episodes_total") or 0.0
    if episodes < EPISODES_BEFORE_JUDGEMENT or x >= NO_DISTANCE_X:
        return None
    return (
        f"no distance: {episodes:.0f} episodes of learning came to x {x:.0f} on average; help them "
        "off the start line: --scripted-forward-frames 180, --auto-bootstrap-threshold 120, or "
        "--reward-distance-weight 0.1"
    )


def _check_return(evidence: Evidence) -> str | None:
    learning = evidence.learning()
    if learning is None:
        return None
    settings = evidence.settings
    longest = settings.env.max_episode_frames / settings.env.frame_skip * settings.actor.num_envs
    steps = learning.growth("global_step") or 0.0
    if steps > longest and learning.growth("episodes_total") == 0:
        return (
            f"no return: no episode has ended in {steps:,.0f} agent steps; see "
            "--stagnation-seconds and --max-episode-frames, and the states of the actors"
        )
    return _check_plateau(learning)


def _check_plateau(learning: Evidence) -> str | None:
    known = [
        (value, step)
        for line in learning.lines
        if (value := number_in(line.get("avg_return"))) is not None
        if (step := number_in(line.get("global_step"))) is not None
    ]
    if not known or (learning.number("recent_clear_rate") or 0.0) >= GOOD_CLEAR_RATE:
        return None
    # The first of equals: a return that never moves stands still since its first line.
    best, best_step = max(known, key=lambda one: one[0])
    still = known[-1][1] - best_step
    if still < PLATEAU_AGENT_STEPS:
        return None
    return (
        f"the mean return has not risen for {still:,.0f} agent steps (best {best:.1f}): explore "
        "longer with --epsilon-anneal-agent-steps, or try --frontier-share 0.5 or --adaptive"
    )


def _recent_learning(evidence: Evidence) -> Evidence | None:
    learning = evidence.learning()
    return None if learning is None else learning.recent(WINDOW_S)


CHECKS: Final[Mapping[str, Callable[[Evidence], str | None]]] = {
    "distance": _check_distance,
    "return": _check_return,
    "replay": _check_replay,
    "gpu": _check_gpu,
    "loss": _check_loss,
    "waiting": _check_waiting,
}
