"""What a process refused from its peers, by reason; reasons are ours, never a peer's text."""

from __future__ import annotations

from dataclasses import dataclass, field

from common.messages import Scalar

MAX_REASONS = 64


@dataclass(slots=True)
class RejectCounts:
    """The sum counts everything, also beyond the reasons that there is room for."""

    total: int = 0
    by_reason: dict[str, int] = field(default_factory=dict)

    def note(self, reason: str) -> None:
        self.total += 1
        if reason in self.by_reason or len(self.by_reason) < MAX_REASONS:
            self.by_reason[reason] = self.by_reason.get(reason, 0) + 1

    def told_as(self, name: str) -> dict[str, Scalar]:
        """For a heartbeat: the sum, and each reason that occurred."""
        reasons = {f"{name}_{reason}": count for reason, count in self.by_reason.items()}
        return {name: self.total, **reasons}
