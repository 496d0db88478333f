from __future__ import annotations

import pytest

from common.endpoints import (
    MAX_IPC_PATH_BYTES,
    TcpAddress,
    check_endpoint,
    check_host,
    from_here,
    is_loopback,
    parse_tcp,
)
from common.errors import ConfigError, ExitCode, HostUnknown


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("tcp://127.0.0.1:5601", TcpAddress("127.0.0.1", 5601)),
        ("tcp://localhost:1", TcpAddress("localhost", 1)),
        ("tcp://[::1]:65535", TcpAddress("::1", 65_535)),
        ("tcp://learner.example.org:80", TcpAddress("learner.example.org", 80)),
    ],
)
def test_tcp_endpoints_are_parsed(endpoint: str, address: TcpAddress) -> None:
    assert parse_tcp(endpoint) == address


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "tcp://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:",
        "tcp://127.0.0.1:abc",
        "tcp://127.0.0.1:-1",
        "tcp://127.0.0.1:5601/x",
        "tcp://:5601",
        "tcp://::1:5601",
        "tcp://a b:5601",
        "tcp://127.0.0.1:5601\n",
        "tcp://127.0.0.1:\u0663\u0663",
        "udp://127.0.0.1:5601",
        "inproc://x",
        "127.0.0.1:5601",
    ],
)
def test_endpoints_that_no_socket_could_reach_are_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="tcp://host:port"):
        check_endpoint(endpoint, has_keys=False)


@pytest.mark.parametrize("port", [0, 65_536, 70_000, 999_999])
def test_ports_out_of_range_are_refused_by_number(port: int) -> None:
    with pytest.raises(ConfigError, match=f"1 to 65535, got {port}"):
        check_endpoint(f"tcp://127.0.0.1:{port}", has_keys=False)


@pytest.mark.parametrize("path", ["relative/path", "", "@abstract"])
def test_ipc_paths_must_be_absolute(path: str) -> None:
    with pytest.raises(ConfigError, match="absolute path"):
        check_endpoint(f"ipc://{path}", has_keys=False)


def test_ipc_paths_must_fit_a_local_socket() -> None:
    longest = "/" + "x" * (MAX_IPC_PATH_BYTES - 1)

    check_endpoint(f"ipc://{longest}", has_keys=False)
    for path in (longest + "x", "/" + "ü" * 52):
        with pytest.raises(ConfigError, match="use a shorter folder"):
            check_endpoint(f"ipc://{path}", has_keys=False)


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://127.0.0.1:5601",
        "tcp://127.8.8.8:5601",
        "tcp://[::1]:5601",
        "tcp://localhost:5601",
        "ipc:///run/x",
    ],
)
def test_this_machine_needs_no_keys(endpoint: str) -> None:
    check_endpoint(endpoint, has_keys=False)


FAR = pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://*:5601",
        "tcp://0.0.0.0:5601",
        "tcp://[::]:5601",
        "tcp://192.168.1.5:5601",
        "tcp://8.8.8.8:5601",
        "tcp://eth0:5601",
        "tcp://localhost.example.org:5601",
        "tcp://127.0.0.1.nip.io:5601",
        "tcp://2130706433:5601",
    ],
)


@FAR
def test_anything_else_is_refused_with_what_to_use_instead(endpoint: str) -> None:
    with pytest.raises(
        ConfigError, match=r"not loopback.*--keys-dir, or use tcp://127\.0\.0\.1:PORT"
    ):
        check_endpoint(endpoint, has_keys=False)


@FAR
def test_with_keys_any_address_will_do(endpoint: str) -> None:
    check_endpoint(endpoint, has_keys=True)


def test_keys_do_not_mend_an_address() -> None:
    with pytest.raises(ConfigError, match="70000"):
        check_endpoint("tcp://192.168.1.5:70000", has_keys=True)


def test_is_loopback_wants_an_address_or_the_one_name() -> None:
    assert is_loopback("::1")
    assert not is_loopback("")
    assert not is_loopback("LOCALHOST.")


@pytest.mark.parametrize(
    "endpoint", ["ipc:///tmp/x", "tcp://127.0.0.1:1", "tcp://[::1]:1", "tcp://*:1"]
)
def test_an_address_needs_no_name_server(endpoint: str) -> None:
    check_host(endpoint)


def test_a_host_without_an_address_is_refused_for_now() -> None:
    with pytest.raises(HostUnknown, match=r"tcp://nowhere\.invalid:5601.*correct the name") as told:
        check_host("tcp://nowhere.invalid:5601")

    assert told.value.exit_code is ExitCode.TEMPORARY


def test_what_cannot_be_a_name_is_refused_for_good() -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a host"):
        check_host(f"tcp://{'x' * 64}.invalid:5601")


@pytest.mark.parametrize(
    ("bound", "reached"),
    [
        ("tcp://*:5604", "tcp://127.0.0.1:5604"),
        ("tcp://10.0.0.5:5604", "tcp://10.0.0.5:5604"),
        ("ipc:///run/x", "ipc:///run/x"),
    ],
)
def test_who_binds_all_addresses_is_reached_at_loopback(bound: str, reached: str) -> None:
    assert from_here(bound) == reached
