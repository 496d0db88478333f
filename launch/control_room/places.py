"""Who is served when many come at once; pure.

A burst is served as far as there are places and the rest is told to come later; one address takes
no more than its part, and who asks for nothing gives way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from common.endpoints import is_loopback

MAX_PLACES: Final = 400
MAX_PER_ADDRESS: Final = 100
"""Of another machine. Tunnels and proxies on this one make all viewers one address."""
MAX_REFUSED: Final = 200
"""Who wait for the word that there is no place; more are not answered."""
GIVES_WAY_AFTER_S: Final = 2.0
"""More than a busy loop needs to come to a request that was sent at once."""
Verdict = Literal["serve", "refuse", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Of a place."""

    address: str
    idle_s: float
    """Since it came or was answered last; 0 while it is answered."""


def judge_newcomer(address: str, holders: Sequence[Holder], refused: int) -> Verdict:
    """`refused` are those who have been told, or will be, that there is no place."""
    is_far = not is_loopback(address)
    held = sum(holder.address == address for holder in holders)
    has_part = not is_far or held < MAX_PER_ADDRESS
    if has_part and (len(holders) < MAX_PLACES or who_gives_way(holders) is not None):
        return "serve"
    return "refuse" if refused < MAX_REFUSED else "drop"


def who_gives_way(holders: Sequence[Holder]) -> int | None:
    """While all places are held: whoever has asked for nothing the longest, by its number."""
    if len(holders) < MAX_PLACES:
        return None
    longest = max(range(len(holders)), key=lambda number: holders[number].idle_s)
    return longest if holders[longest].idle_s >= GIVES_WAY_AFTER_S else None
