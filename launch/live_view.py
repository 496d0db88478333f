"""What a person sees while a run goes on: a live view, or plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

PLAIN_INTERVAL_S = 10.0
SHOWN_STAGES = 6
MAX_ROWS = 40
Values = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process as the view shows it."""

    name: str
    state: str
    restarts: int
    beat: Values
    silent_s: float | None = None
    """Seconds since its loop turned last, where that is too long."""
    reason: str = ""
    """Why the life before this one ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that is shown, gathered at one moment."""

    run: str
    stages: Sequence[str]
    elapsed_s: float
    budget: float | None
    """Used share of the budget, 0 to 1; None without a budget."""
    metrics: Values
    processes: Sequence[ProcessRow]


class View(Protocol):
    def show(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


def open_view(console: Console, *, plain: bool) -> View:
    redraws = console.is_terminal and not console.is_dumb_terminal
    return LiveView(console) if redraws and not plain else PlainView(console)


class PlainView:
    """A line every ten seconds, for logs and pipes."""

    def __init__(self, console: Console, interval_s: float = PLAIN_INTERVAL_S) -> None:
        self._console = console
        self._interval_s = interval_s
        self._last_s: float | None = None

    def show(self, snapshot: Snapshot) -> None:
        due = self._last_s is None or snapshot.elapsed_s - self._last_s >= self._interval_s
        if due:
            self._last_s = snapshot.elapsed_s
            self._console.print(plain_line(snapshot), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing stays on the screen."""


class LiveView:
    """Redraws in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._live.start()

    def show(self, snapshot: Snapshot) -> None:
        self._live.update(render(snapshot), refresh=True)

    def close(self) -> None:
        self._live.stop()


def plain_line(snapshot: Snapshot) -> str:
    m = snapshot.metrics
    running = sum(row.state == "running" and row.silent_s is None for row in snapshot.processes)
    parts = [
        f"[train] {duration(snapshot.elapsed_s)}",
        f"steps={number(m.get('global_step'))}",
        f"steps/s={number(m.get('env_steps_per_sec'), 1)}",
        f"updates={number(m.get('updates'))}",
        f"updates/s={number(m.get('updates_per_sec'), 1)}",
        f"fill={percent(m.get('replay_fill_rate'))}",
        f"mean_x={number(m.get('env_mean_x_pos'))}",
        f"best_x={number(m.get('env_max_x_pos'))}",
        f"clears={number(m.get('clears_total'))}",
        f"loss={number(m.get('loss_total'), 3)}",
        f"processes={running}/{len(snapshot.processes)}",
    ]
    restarts = sum(row.restarts for row in snapshot.processes)
    if restarts:
        parts.append(f"restarts={restarts}")
    if snapshot.budget is not None:
        parts.append(f"done={percent(snapshot.budget)}")
    return " ".join(parts)


def render(snapshot: Snapshot) -> Panel:
    body = Group(_budget_row(snapshot), _figures(snapshot.metrics), _processes(snapshot.processes))
    title = f"Warp Zone - {snapshot.run} - {describe_stages(snapshot.stages)}"
    return Panel(body, title=Text(title), subtitle="Ctrl-C saves and stops")


def describe_stages(stages: Sequence[str]) -> str:
    if len(stages) == 1:
        return f"stage {stages[0]}"
    shown = ", ".join(stages[:SHOWN_STAGES])
    return f"{len(stages)} stages: {shown}{' ...' if len(stages) > SHOWN_STAGES else ''}"


def _budget_row(snapshot: Snapshot) -> Table:
    row = Table.grid(padding=(0, 1))
    used = snapshot.budget
    label = duration(snapshot.elapsed_s)
    if used is None:
        row.add_row(label, "no limit set")
    else:
        row.add_row(
            label, ProgressBar(total=1.0, completed=min(used, 1.0), width=40), percent(used)
        )
    return row


def _figures(m: Values) -> Table:
    grid = Table.grid(padding=(0, 3))
    grid.add_row(
        f"agent steps {number(m.get('global_step'))}",
        f"{number(m.get('env_steps_per_sec'), 1)}/s",
        f"updates {number(m.get('updates'))}",
        f"{number(m.get('updates_per_sec'), 1)}/s",
    )
    grid.add_row(
        f"best x {number(m.get('env_max_x_pos'))}",
        f"mean x {number(m.get('env_mean_x_pos'))}",
        f"clears {number(m.get('clears_total'))}",
        f"return {number(m.get('avg_return'), 2)}",
    )
    grid.add_row(
        f"replay {percent(m.get('replay_fill_rate'))}",
        f"samples/step {number(m.get('samples_per_insert'), 2)}",
        f"loss {number(m.get('loss_total'), 3)}",
        f"bottleneck {m.get('bottleneck') or '-'}",
    )
    return grid


def _processes(rows: Sequence[ProcessRow]) -> Table:
    table = Table(expand=False, box=None, padding=(0, 2))
    for title in ("process", "state", "rate", "cpu", "memory", "restarts", "last end"):
        is_text = title in ("process", "state", "last end")
        table.add_column(title, justify="left" if is_text else "right")
    for row in rows[:MAX_ROWS]:
        beat = row.beat
        state, colour = _state_of(row)
        table.add_row(
            row.name,
            Text(state, style=colour),
            f"{number(beat.get('progress_per_s'), 1)}/s",
            f"{number(beat.get('cpu_percent'))} %",
            f"{number(beat.get('rss_mb'))} MB",
            str(row.restarts),
            Text(row.reason),
        )
    if len(rows) > MAX_ROWS:
        table.add_row(f"... {len(rows) - MAX_ROWS} more")
    return table


def _state_of(row: ProcessRow) -> tuple[str, str]:
    """What a process does, in words, and the colour that says how bad it is."""
    if row.state != "running":
        return row.state, "red" if row.state in ("off", "ended") else "yellow"
    if row.silent_s is not None:
        return f"silent for {row.silent_s:.0f} s", "red"
    return str(row.beat.get("state", "starting")), "green" if row.beat else "yellow"


def duration(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(seconds))


def number(value: object, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if isinstance(value, int | float) else "-"


def percent(value: object) -> str:
    return f"{100 * value:.0f} %" if isinstance(value, int | float) else "-"
