"""The command line of the control room: refusals in one line, tokens that nobody else reads."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from launch import dashboard
from launch.dashboard import TOKEN_VARIABLE, DashboardArgs, announcement, choose_token, read_token

TOKEN = "sixteen-characters-or-more"  # noqa: S105 - of this test


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which the command ends."""
    assert dashboard.main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_missing_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no folder at" in refused([str(tmp_path / "nowhere")], capsys)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "lab.example.org"])  # noqa: S104 - refused
def test_another_address_needs_a_token(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused([str(tmp_path), "--host", host, "--allow-control"], capsys)

    assert "is open to other machines: give --token-file or --token" in line


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused([str(tmp_path), "--port", str(port)], capsys)

    assert f"port {port} of 127.0.0.1 is taken; choose another --port" in line


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_a_port_out_of_range_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--port must be from 0 to 65535" in refused(["--port", port], capsys)


def test_a_host_that_is_not_ours_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused([str(tmp_path), "--host", "192.0.2.1", "--token", TOKEN], capsys)

    assert "cannot listen at 192.0.2.1" in line
    assert TOKEN not in line


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_the_extra_is_named_where_it_is_missing(
    missing: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "launch.room_process.find_spec", lambda name: None if name == missing else sys
    )

    line = refused([str(tmp_path)], capsys)

    command = "pip install -c constraints.txt -e '.[dashboard]'"
    assert f"the control room needs {missing}; run: {command}" in line


def test_a_short_token_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused([str(tmp_path), "--token", "short"], capsys)

    assert "at least 16 plain characters" in line
    assert "short" not in line.replace("short_", "")


def test_a_token_comes_from_a_file_that_others_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")

    file.chmod(0o644)
    line = refused([str(tmp_path), "--token-file", str(file)], capsys)
    file.chmod(0o600)

    assert "can be read by others; run: chmod 600" in line
    assert read_token(DashboardArgs(token_file=str(file))) == TOKEN


def test_a_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)

    assert read_token(DashboardArgs()) == TOKEN


@pytest.mark.parametrize("way", ["flag", "file", "environment"])
def test_a_token_that_was_given_is_not_printed(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(TOKEN, encoding="utf-8")
    if way == "environment":
        monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    args = DashboardArgs(
        token=TOKEN if way == "flag" else "",
        token_file=str(file) if way == "file" else "",
        allow_control=True,
    )

    token = choose_token(args)

    assert token.secret == TOKEN
    assert TOKEN not in announcement("http://127.0.0.1:1/", "runs", token)


def test_a_token_that_was_made_up_is_printed() -> None:
    token = choose_token(DashboardArgs(allow_control=True))

    told = announcement("http://127.0.0.1:1/", "runs", token)

    assert f"http://127.0.0.1:1/#token={token.secret}" in told


def test_without_controls_nobody_needs_a_token_here() -> None:
    assert choose_token(DashboardArgs()).secret == ""
