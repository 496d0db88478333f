"""Signals in real processes are in tests/integration/test_signals.py."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from common.errors import BadMessage, ConfigError, MarioError, PeerUnavailable
from common.lifecycle import StopFlag, run_program


def raising(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize("code", [0, 2, 75, 130, 143])
def test_the_code_of_the_body_is_the_code_of_the_program(code: int) -> None:
    assert run_program("actor", lambda: code) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("--x is wrong"), 2),
        (PeerUnavailable("no answer"), 75),
        (BadMessage("checksum"), 75),
        (MarioError("something"), 75),
    ],
)
def test_errors_of_ours_become_one_line_and_their_code(
    error: MarioError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_program("actor", lambda: raising(error)) == code

    assert capsys.readouterr().err == f"actor: {error}\n"


def test_other_errors_are_temporary_and_their_traceback_is_logged(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert run_program("actor", lambda: raising(ZeroDivisionError("oops"))) == 75

    assert "Traceback" not in capsys.readouterr().err
    assert "ZeroDivisionError: oops" in caplog.text


def test_an_interrupt_has_its_own_code() -> None:
    assert run_program("actor", lambda: raising(KeyboardInterrupt())) == 130


def test_an_exit_asked_for_by_the_command_line_passes() -> None:
    with pytest.raises(SystemExit):
        run_program("actor", lambda: raising(SystemExit(2)))


def test_a_flag_is_set_by_request_and_means_done() -> None:
    stop = StopFlag()
    assert not stop.is_set()

    stop.request()

    assert stop.is_set()
    assert stop.exit_code == 0


def test_only_a_known_parent_can_be_lost() -> None:
    assert not StopFlag().orphaned()
    assert not StopFlag(parent_pid=os.getppid()).orphaned()
    assert StopFlag(parent_pid=os.getpid()).orphaned()
