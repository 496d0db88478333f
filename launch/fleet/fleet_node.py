"""One machine as the driver sees it: what it should run, what it said last, whether it is well."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from launch.fleet.links import NodeLink
from launch.fleet.orders import Report
from launch.fleet.placement import NodeFacts

BEGIN_DEADLINE_S = 120.0
"""Until a node has begun for the first time."""
RETURN_DEADLINE_S = 300.0
"""Until one that had begun has begun again; its new supervisor may have to wait for the old one."""
MOST_ENDS = 5
ENDS_WINDOW_S = 600.0
SHORT_ID = 8


@dataclass(slots=True, kw_only=True)
class FleetNode:
    """`hear` with every report, then `objection` says whether to give it up."""

    facts: NodeFacts
    link: NodeLink
    number: int
    is_home: bool
    well_s: float = 0.0
    """When it was found, or told last that it has begun."""
    actors: tuple[int, ...] = ()
    report: Report = field(default_factory=Report)
    problem: str = ""
    """Why it gets no actors."""
    has_begun: bool = False
    """Ever; `report.begun` is whether its supervisor knows the run now."""
    ends_s: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_ENDS))
    """When its supervisors ended that nobody had told to."""
    is_closed: bool = False
    """Whether its warden has been ended: the link is of no use any more."""

    @property
    def name(self) -> str:
        return f"node-{self.facts.node_id[:SHORT_ID]}"

    def hear(self, report: Report, now_s: float) -> None:
        self.report = report
        if report.begun:
            self.has_begun, self.well_s = True, now_s
        if report.is_lost:
            self.ends_s.append(now_s)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.link.close()

    def objection(self, now_s: float) -> str:
        """Why it cannot be counted on any more; empty when it can, or should get more time."""
        is_full = len(self.ends_s) == MOST_ENDS
        if is_full and now_s - self.ends_s[0] < ENDS_WINDOW_S:
            return f"its supervisor ended {MOST_ENDS} times in {now_s - self.ends_s[0]:.0f} s"
        deadline_s = RETURN_DEADLINE_S if self.has_begun else BEGIN_DEADLINE_S
        if now_s - self.well_s <= deadline_s:
            return ""
        return "it does not answer; is the same version installed there?"
