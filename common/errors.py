"""Every exception that the system raises on purpose, and the exit codes that supervisors act on."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process says when it ends; `launch/restart.py` decides by it."""

    DONE = 0
    CONFIGURATION = 2
    TEMPORARY = 75
    INTERRUPTED = 130
    TERMINATED = 143


class MarioError(Exception):
    """Root of the tree. `exit_code` is what a process ends with when nobody handles the error."""

    exit_code = ExitCode.TEMPORARY


class ConfigError(MarioError):
    """A setting, flag or file that no restart can repair."""

    exit_code = ExitCode.CONFIGURATION


class ProtocolMismatch(ConfigError):
    """The peer speaks another protocol version, run or specification."""


class CoreUnavailable(ConfigError):
    """An emulator core that was not built or not installed here."""


class BadMessage(MarioError):
    """Bytes from a peer that are not a valid message; `reason` is a short countable word."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class PeerUnavailable(MarioError):
    """No answer from a process that we cannot work without."""


class EndpointTaken(MarioError):
    """A port that a process had in its life before, and somebody else has now: perhaps not long."""


class HostUnknown(MarioError):
    """A host without an address: misspelt, or an engine has not started what it names yet."""


class RanksLost(MarioError):
    """A rank of the learner ended or does not answer: all begin again from the checkpoint."""


class UpdatesNotFinite(MarioError):
    """Too many updates in a row that could not be applied."""


class CheckpointCorrupt(ConfigError):
    """A checkpoint whose manifest, size or hash is wrong; no restart repairs it."""


class CheckpointMismatch(ConfigError):
    """Valid tensors of another network: names, shapes or dtypes differ from ours."""


class CheckpointMissing(ConfigError):
    """Resume was asked for and there is nothing valid to resume from."""


class TraceInvalid(ConfigError):
    """Recorded play that is not a trace, or one that nobody can repeat."""


class EnvironmentFailed(MarioError):
    """An emulator that could not be built, reset or stepped."""


class ConstructionTimeout(EnvironmentFailed):
    """The construction lock was not free, or construction did not end, before its deadline."""


class CapacityError(ConfigError):
    """A replay capacity that cannot fit in the memory that is free."""


class ReplayEmpty(MarioError):
    """A sample was asked for before anything was stored."""


class FilmFailed(MarioError):
    """An encoder that did not take a picture or did not finish a film."""


class BenchmarkFailed(ConfigError):
    """What was to be measured could not be run here."""
