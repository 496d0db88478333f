"""Watch a trained agent play, or play against it: `python launch/play.py CHECKPOINT|RUN`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from common.checkpoint_files import WeightsChoice
from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.config import CoreName
from common.errors import ConfigError, ExitCode, MarioError
from common.evaluation import EpisodeResult, EpisodeTask, EvaluationPlan
from common.game import parse_stage
from common.models import ModelPlace, Which, find_model
from launch.play_film import check_film_path, film_episodes
from launch.play_terminal import (
    AgentsSeat,
    Builders,
    Pace,
    PersonsSeat,
    in_terminal,
    show_episodes,
)
from launch.play_window import in_window, require_window
from launch.terminal import require_terminal

PROGRAM = Program(
    name="python launch/play.py",
    description="""Watch a trained agent in the terminal or in a window, film it, or play the same
game yourself.

The terminal must know 24-bit colours; over ssh it works as well. q or Ctrl-C ends. With --human:
arrow keys walk until space or another arrow, z jumps, c hops, x switches running on and off.

Examples:
  python launch/play.py docs/models/1-1
  python launch/play.py runs/first --stage 1-2 --episodes 1 --speed 2
  python launch/play.py runs/first --window
  python launch/play.py runs/first --video first.mp4
  python launch/play.py docs/models/1-1 --human

Exit codes: 0 played, 2 wrong settings or nothing to play.""",
)
MAX_EPISODES = 1_000
GAME_FRAMES_PER_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayArgs:
    """What to play, and how it is shown."""

    model: str = ""
    """A checkpoint or the folder of a run, as the first word or as a flag."""
    stage: str = ""
    """Such as 1-1; by default the first that the run trains."""
    episodes: int = 3
    """Episodes, each from another start."""
    noop_max: int = 30
    """Most frames without a button at the start of an episode."""
    seed: int = 1
    """Which starts are drawn; the same as in launch/evaluate.py."""
    speed: float = 1.0
    """1 is the speed of the game, 60 frames a second."""
    video: str = ""
    """Write a film instead: FILE.mp4 or FILE.gif, and FILE.png with its contact sheet."""
    window: bool = False
    """Show it in a window instead of the terminal, where there is a display."""
    human: bool = False
    """Play yourself; at the end the agent plays from the same starts, and both are compared."""
    which: Which = "best"
    """Of a run: its best checkpoint (by evaluation) or its latest."""
    weights: WeightsChoice = "average"
    """average: the mean of the weights where the run keeps one; online: as they are trained."""
    core: CoreName = "auto"
    """Emulator core; native and nes_py play the same game."""

    def __post_init__(self) -> None:
        if not 1 <= self.episodes <= MAX_EPISODES:
            raise ConfigError(f"--episodes must be from 1 to {MAX_EPISODES}, got {self.episodes}")
        if not 0.05 <= self.speed <= 100:  # noqa: PLR2004 - what an eye and a clock can follow
            raise ConfigError(f"--speed must be from 0.05 to 100, got {self.speed}")
        if self.human and self.video:
            raise ConfigError("--human and --video contradict each other; drop one")
        if self.window and self.video:
            raise ConfigError("--window and --video contradict each other; drop one")
        if self.stage:
            parse_stage(self.stage)

    def tasks(self, place: ModelPlace) -> list[EpisodeTask]:
        stage = self.stage or place.settings.env.stage_names[0]
        plan = EvaluationPlan(
            stages=(stage,), episodes=self.episodes, noop_max=self.noop_max, seed=self.seed
        )
        return plan.tasks()


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--model")
    try:
        args = parse_args(PROGRAM, words, PlayArgs())
        if not args.model:
            raise ConfigError("which network? give a checkpoint or a run, for example runs/default")
        if args.video:
            check_film_path(Path(args.video))
        elif args.window:
            require_window()
        else:
            require_terminal(with_keyboard=args.human)
        place = find_model(Path(args.model), args.which)
        lines = play(args, place)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        abandon_stdout()
    return int(ExitCode.DONE)


def play(args: PlayArgs, place: ModelPlace) -> list[str]:
    """What is to be told at the end."""
    tasks, env = args.tasks(place), place.settings.env
    if args.human and env.game != "mario":
        raise ConfigError(f"--human plays Mario, and this network plays the {env.game}")
    # Launch does not import the programs; it loads them by name, as their command lines are.
    show = cast(Builders, importlib.import_module("actor.show"))
    core = "fceumm" if args.core == "auto" and env.core == "fceumm" else args.core
    opening = in_window if args.window else in_terminal
    pace = Pace(agent_step_s=env.frame_skip / GAME_FRAMES_PER_S / args.speed)
    agent = show.agent_player(place, core, args.weights)
    try:
        if args.video:
            results = film_episodes(agent, tasks, Path(args.video), pace)
            return [*(told(one) for one in results), f"wrote {args.video}"]
        if not args.human:
            return [told(one) for one in show_episodes(AgentsSeat(agent), tasks, pace, opening)]
        person = show.person_player(place, core)
        yours = show_episodes(PersonsSeat(person, show.PERSONS_ACTIONS), tasks, pace, opening)
        person.close()
        return compare(yours, [agent.play(task).result for task in tasks[: len(yours)]])
    finally:
        agent.close()


def told(result: EpisodeResult) -> str:
    start = f"{result.stage} after {result.noop_frames} frames"
    return f"{start}: {outcome(result)}"


def outcome(result: EpisodeResult) -> str:
    if result.cleared:
        return f"flag in {result.seconds:.1f} s"
    how = "given up" if result.truncated else "lost"
    return f"{how} at x {result.max_x} after {result.seconds:.1f} s"


def compare(yours: Sequence[EpisodeResult], agents: Sequence[EpisodeResult]) -> list[str]:
    """One line per start, and who was better."""
    if not yours:
        return ["no episode was played to its end"]
    lines, wins = [], 0
    for mine, other in zip(yours, agents, strict=True):
        is_better = mine.worth > other.worth
        wins += is_better
        lines.append(
            f"{told(mine)}; the agent: {outcome(other)}{' (you win)' if is_better else ''}"
        )
    return [*lines, f"you were better in {wins} of {len(yours)}"]


if __name__ == "__main__":
    sys.exit(main())
