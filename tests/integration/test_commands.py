"""Every command that a person runs: its help has examples, and Ctrl-C is answered quietly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import ROOT, run

pytestmark = pytest.mark.integration

COMMANDS = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "launch").glob("*.py")
    if "sys.exit(main())" in path.read_text(encoding="utf-8")
)
STRUCK = """
import os, runpy, signal, sys, threading, time
def strike():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=strike, daemon=True).start()
command = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(command))
runpy.run_path(command, run_name="__main__")
"""
"""Starts a command and sends Ctrl-C as soon as it listens."""
ASKED_FOR_HELP = """
import atexit, os, runpy, sys
atexit.register(lambda: print("loaded:", sorted({"numpy", "torch"} & sys.modules.keys())))
command = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(command))
runpy.run_path(command, run_name="__main__")
"""
"""Starts a command and says at the end what it has waited for."""
LARGEST = ("launch/local.py", "launch/cluster.py")
"""Their flags alone take long enough."""
IMPATIENT = ("launch/metrics_summary.py", "launch/backfill_global_step.py", "launch/local.py")


def test_no_command_is_overlooked() -> None:
    names = {path.stem for path in COMMANDS}

    assert names >= {"local", "metrics_summary", "backfill_global_step", "compare", "doctor"}


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_help_shows_examples_and_does_not_wait_for_torch(command: Path) -> None:
    code, output = run("-c", ASKED_FOR_HELP, str(command), "--help", timeout_s=110)

    assert code == 0, output
    assert "Examples:" in output
    assert "loaded: []" in output or "loaded: ['numpy']" in output
    assert "loaded: []" in output or str(command) not in LARGEST


@pytest.mark.parametrize("command", IMPATIENT)
def test_ctrl_c_while_it_starts_leaves_no_traceback(command: str) -> None:
    code, output = run("-c", STRUCK, command, "--help", timeout_s=110)

    # Ended by the signal, or so quickly that it came too late.
    assert code in (0, 130), output
    assert "Traceback" not in output
