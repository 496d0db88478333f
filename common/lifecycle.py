"""How a process ends: on a signal, when its parent is gone, or by a known exit code."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from common.errors import ExitCode, MarioError
from common.out_of_memory import shortage

log = logging.getLogger(__name__)

PARENT_PID_VARIABLE = "WARPZONE_PARENT_PID"
"""Set by the launcher: a process whose parent is not this one any more stops by itself."""
RESTARTED_VARIABLE = "WARPZONE_RESTARTED"
"""Set by the launcher in every life of a process but its first."""
ORPHAN_GRACE_S = 10
"""For saving what must not be lost; after that the kernel ends an orphan."""
ECHO_S = 0.2
"""`timeout` and some terminals signal a process and then its group: that is not a second wish."""
_PR_SET_PDEATHSIG = 1


class Interrupted(BaseException):
    """A signal came while nothing was there yet that would have to be saved."""


class StopFlag:
    """Set by SIGINT or SIGTERM; a second signal ends at once whoever has no launcher.

    With one, a process goes on saving: others, as a service manager, signal it as well, and
    whoever takes too long is killed by the launcher or, when that is gone, by the alarm.
    """

    def __init__(self, parent_pid: int | None = None) -> None:
        self._parent_pid = parent_pid
        self._signal: int | None = None
        self._signalled_s = 0.0
        self._requested = False
        self._raises = False
        self.on_second_signal: Callable[[], None] = lambda: None
        """Called before a second signal ends the process."""

    @classmethod
    def on_signals(cls) -> StopFlag:
        """Install the handlers. Stacks are dumped to stderr on SIGUSR1 and on crashes."""
        parent = os.environ.get(PARENT_PID_VARIABLE)
        flag = cls(int(parent) if parent and parent.isdigit() else None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, flag._handle)
        if sys.stderr is not None:  # None where somebody started us with it closed.
            faulthandler.enable()
            faulthandler.register(signal.SIGUSR1, all_threads=True)
        return flag

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.orphaned():
            # Its default action is to end the process, even one that hangs while it saves.
            signal.alarm(ORPHAN_GRACE_S)
        if self._signal is not None:
            is_echo = time.monotonic() - self._signalled_s < ECHO_S
            if is_echo or self._parent_pid is not None:
                return
            self.on_second_signal()
            os._exit(self.exit_code)
        self._signal, self._signalled_s = number, time.monotonic()
        if self._raises:
            raise Interrupted

    def end_with_parent(self, number: signal.Signals) -> None:
        """Let the kernel send this signal when the launcher dies: a loop that hangs cannot look.

        On Linux only; elsewhere `orphaned` has to do.
        """
        if self._parent_pid is None:
            return
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))
        if self.orphaned():
            # It died before we asked.
            os.kill(os.getpid(), number)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """For start-up: a signal raises `Interrupted` at once, whatever is being waited for."""
        self._raises = True
        try:
            if self._signal is not None:
                raise Interrupted
            yield
        finally:
            self._raises = False

    def request(self) -> None:
        """Stop for a reason of our own: the work is done."""
        self._requested = True

    def is_set(self) -> bool:
        return self._requested or self._signal is not None

    def orphaned(self) -> bool:
        """The launcher died without telling us (SIGKILL): then nobody wants our work."""
        return self._parent_pid is not None and os.getppid() != self._parent_pid

    @property
    def exit_code(self) -> ExitCode:
        if self._signal is None:
            return ExitCode.DONE
        interrupted = self._signal == signal.SIGINT
        return ExitCode.INTERRUPTED if interrupted else ExitCode.TERMINATED


def run_program(role: str, body: Callable[[], int]) -> int:
    """Run a program's body; errors of ours become one line and their exit code."""
    try:
        return int(body())
    except MarioError as error:
        log.error("stopped by an error", extra={"error": str(error)})
        sys.stderr.write(f"{role}: {_last_words(error) or error}\n")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except Exception as error:
        # The one broad handler of a process: the supervisor sees a temporary failure.
        log.exception("unexpected error")
        sys.stderr.write(f"{role}: {_last_words(error) or 'unexpected error, see its log'}\n")
        return int(ExitCode.TEMPORARY)


def _last_words(error: Exception) -> str:
    """By which the launcher knows that memory ran out; empty for other errors."""
    short = shortage(error)
    return f"{short}: {str(error).partition(chr(10))[0]}" if short else ""
