"""What the driver tells a node and what the node answers: plain values, nothing else crosses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from common.errors import ExitCode, MarioError

MAX_MESSAGE_BYTES = 1 << 20
GOES_ON = "auto"
FOREIGN = "it answers in another language: is the same commit installed there?"
MOST_WORDS = 200
PLAIN = (str, int, float, bool, bytes, type(None))
Plain = dict[str, object]


class NotPlain(MarioError):
    """An object on its way through Ray, which would have to be unpickled at the other end."""


def require_plain(value: object) -> None:
    """Refuse what is not made of texts, bytes, numbers, lists and maps of them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            require_plain(key)
            require_plain(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            require_plain(inner)
    elif type(value) not in PLAIN:
        raise NotPlain(f"expected plain values only, got {type(value).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """What a node has to know before it can start anything."""

    settings: dict[str, dict[str, object]]
    """Of the run; on other machines than the home with another folder."""
    number: int
    """Of the node, from 1, in the order in which they came; for the name of its log."""
    is_home: bool
    """Whether the replay server, the learner and the evaluator run here."""
    resume: str = "none"
    """A checkpoint, none, or auto: the newest when a program starts, as after a crash."""
    keys: dict[str, str] = field(default_factory=dict)
    """Key files by name, for a node that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """How a node should look now; told again and again, also when nothing has changed."""

    actors: list[int]
    total: int
    """Actors of the whole run."""
    floor: int
    """Lives that the node starts have greater numbers than this: clocks of machines differ."""
    begin: Begin | None = None
    """Only for a node that has not begun."""
    finish: bool = False
    """Stop everything, in order."""

    def to_plain(self) -> Plain:
        return asdict(self)

    @classmethod
    def from_plain(cls, values: Mapping[str, object]) -> Orders:
        begin = values.get("begin")
        parts = {**values, "begin": Begin(**begin) if isinstance(begin, Mapping) else None}
        return cls(**parts)  # type: ignore[arg-type] # of another version: TypeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a node looks now."""

    begun: bool = False
    """False asks for `Orders.begin`."""
    stopped: bool = False
    is_lost: bool = False
    """Whether the supervisor has ended that was asked; the warden says so in its place."""
    rows: list[Plain] = field(default_factory=list)
    """Of every process, what `launch.live_view.ProcessRow` holds."""
    off: list[list[object]] = field(default_factory=list)
    """Actors and replay servers that are not started any more: name, exit code, reason."""
    news: list[str] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)
    """Restarts of every process and why, for the end."""
    outcome: int | None = None
    """The exit code with which the node has to end the run."""
    reason: str = ""
    blame: list[str] = field(default_factory=list)
    """Last lines of whoever ended the run."""
    most_actors: int | None = None
    """For which the servers could open files here, if they ran here."""
    incarnation: int = 0
    """Of the newest life that was started here."""

    def to_plain(self) -> Plain:
        return asdict(self)

    @classmethod
    def from_plain(cls, values: Mapping[str, object]) -> Report:
        """Of a node with another version: one that ends its part, and says why."""
        try:
            report = cls(**values)  # type: ignore[arg-type] # what is wrong is found next
            report.require_sense()
        except (TypeError, ValueError, KeyError) as error:
            return cls.foreign(error)
        return report

    @classmethod
    def foreign(cls, error: Exception) -> Report:
        """In the place of one that cannot be given, or read, for that reason."""
        reason = f"{FOREIGN} ({str(error)[:MOST_WORDS]})"
        return cls(outcome=int(ExitCode.CONFIGURATION), reason=reason)

    def require_sense(self) -> None:
        """That all who read it find what they look for."""
        # Here, because wardens need no view.
        from launch.live_view import ProcessRow  # noqa: PLC0415

        for name, usual in asdict(Report()).items():
            value = getattr(self, name)
            if usual is not None and type(value) is not type(usual):
                raise TypeError(f"{name}: expected {type(usual).__name__}, got {value!r}")
        for row in self.rows:
            int(str(ProcessRow(**row).restarts))  # type: ignore[arg-type] # this is the check
        for _name, code, _reason in self.off:
            int(str(code))
        for number in (self.outcome, self.most_actors):
            if not isinstance(number, int | None):
                raise TypeError(f"expected a number, got {number!r}")
        if self.outcome is not None:
            ExitCode(self.outcome)


def to_line(values: Plain) -> bytes:
    """One message of a pipe."""
    line = json.dumps(values).encode() + b"\n"
    if len(line) > MAX_MESSAGE_BYTES:
        raise MarioError(f"a message of {len(line)} bytes, at most {MAX_MESSAGE_BYTES} may be")
    return line


def from_line(line: bytes) -> Plain:
    values = json.loads(line)
    if not isinstance(values, dict):
        raise MarioError(f"expected an object on the pipe, got {type(values).__name__}")
    return values
