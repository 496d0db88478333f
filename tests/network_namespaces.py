"""Two machines in one: network namespaces with a cable between them, real addresses, no loopback.

Needs root and the command `ip`; where they are missing the test is skipped and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
COMMAND_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Host:
    """One namespace, with its own address and its own end of the cable."""

    name: str
    address: str
    interface: str

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`python ...` on this host, with its output in a pipe."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, sys.executable, *words],
            cwd=REPOSITORY,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def plug(self, *, is_in: bool) -> None:
        """Pull this host's end of the cable out, or put it back."""
        state = "up" if is_in else "down"
        _ip("-n", self.name, "link", "set", self.interface, state)

    def run(self, *words: str, timeout_s: float) -> tuple[int, str]:
        """Exit code and output of `python ...` on this host."""
        process = self.start(*words)
        try:
            output, _ = process.communicate(timeout=timeout_s)
        finally:
            stop(process)
        return process.returncode, output


def stop(process: subprocess.Popen[str]) -> None:
    """Whatever happened: it is gone and its pipe is closed."""
    process.kill()
    process.wait(COMMAND_TIMEOUT_S)
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    if os.geteuid() != 0:
        pytest.skip("needs root to make network namespaces")
    if shutil.which("ip") is None:
        pytest.skip("needs the command ip (iproute2) to make network namespaces")
    mark = f"wz{os.getpid()}"
    hosts = (
        Host(f"{mark}near", "10.213.7.1", f"{mark}n"),
        Host(f"{mark}far", "10.213.7.2", f"{mark}f"),
    )
    try:
        _connect(*hosts)
        yield hosts
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host.name], check=False, capture_output=True)


def _connect(near: Host, far: Host) -> None:
    for host in (near, far):
        try:
            _ip("netns", "add", host.name)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
    ends = ("name", far.interface, "netns", far.name)
    _ip("link", "add", near.interface, "netns", near.name, "type", "veth", "peer", *ends)
    for host in (near, far):
        _ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", host.interface)
        _ip("-n", host.name, "link", "set", "lo", "up")
        _ip("-n", host.name, "link", "set", host.interface, "up")


def _ip(*words: str) -> None:
    _checked(["ip", *words])


def _checked(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
