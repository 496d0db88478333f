from __future__ import annotations

import pytest

from launch.control_room.security import Rules, is_token, judge_request

LOCAL = Rules()
TOKEN = "a-token-of-many-characters"  # noqa: S105 - of this test
REMOTE = Rules(host="0.0.0.0", token=TOKEN, names=("lab.example.org",))  # noqa: S104 - judged only
DESK = Rules(token=TOKEN, allow_control=True)


def judged(
    rules: Rules,
    path: str = "/api/runs",
    *,
    method: str = "GET",
    host: str | None = "127.0.0.1:8600",
    **headers: str,
) -> int:
    """The status of the refusal; 200 when the request is let through."""
    pairs = [] if host is None else [(b"host", host.encode())]
    pairs += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": pairs}
    refusal = judge_request(scope, rules)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8600", "localhost:9000", "localhost", "[::1]:8600", "LOCALHOST:1"]
)
def test_this_machine_is_served_at_any_port_as_tunnels_need(host: str) -> None:
    assert judged(LOCAL, host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "localhost.",
        "localhost.evil.com",
        "127.0.0.1.nip.io",
        "127.0.0.1.nip.io:8600",
        "192.168.1.7:8600",
        "127.1",
        "0.0.0.0:8600",
        "[::ffff:7f00:1]:8600",
        "localhost:port",
        "localhost:8600:1",
        "localhost:8600@evil.com",
        "[::1]evil.com",
        "",
        " ",
    ],
)
def test_other_names_are_refused(host: str) -> None:
    assert judged(LOCAL, host=host) == 421


def test_a_request_without_host_or_with_two_is_refused() -> None:
    assert judged(LOCAL, host=None) == 421

    pairs = [(b"host", b"localhost"), (b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": pairs}
    refusal = judge_request(scope, LOCAL)

    assert refusal is not None
    assert refusal.status == 421


def test_beyond_this_machine_numbers_and_listed_names_are_served_with_the_token() -> None:
    bearer = f"Bearer {TOKEN}"

    for host in ("10.0.0.5:8600", "[fe80::1]:8600", "lab.example.org", "localhost:1"):
        assert judged(REMOTE, host=host, authorization=bearer) == 200
    assert judged(REMOTE, host="other.example.org", authorization=bearer) == 421


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong-token-of-many-chars",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer \xff\xfe",
    ],
)
def test_a_wrong_or_absent_token_opens_nothing_beyond_this_machine(given: str | None) -> None:
    headers = {} if given is None else {"authorization": given}

    for path in ("/api/runs", "/api/runs/r/events", "/metrics", "/api/runs/r/live/actor-0/frame"):
        assert judged(REMOTE, path, host="10.0.0.5:8600", **headers) == 401


def test_a_token_in_the_address_opens_nothing() -> None:
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/runs",
        "query_string": f"token={TOKEN}".encode(),
        "headers": [(b"host", b"10.0.0.5:8600")],
    }

    refusal = judge_request(scope, REMOTE)

    assert refusal is not None
    assert refusal.status == 401


def test_a_token_that_was_given_guards_reading_on_this_machine_too() -> None:
    rules = Rules(token=TOKEN, reading_needs_token=True)

    assert judged(rules) == 401
    assert judged(rules, authorization=f"Bearer {TOKEN}") == 200


def test_the_page_itself_needs_no_token_and_holds_no_data() -> None:
    assert judged(REMOTE, "/", host="10.0.0.5:8600") == 200
    assert judged(REMOTE, "/js/app.js", host="10.0.0.5:8600") == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "X"])
def test_nobody_may_write_while_controls_are_off(method: str) -> None:
    assert judged(LOCAL, "/api/runs/r/control", method=method) == 405


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT"])
def test_with_controls_on_only_post_joins_reading(method: str) -> None:
    assert judged(DESK, "/api/runs/r/control", method=method) == 405


def test_a_control_needs_the_token_also_on_this_machine() -> None:
    path = "/api/runs/r/control"

    assert judged(DESK, path, method="POST") == 401
    assert judged(DESK, path, method="POST", authorization="Bearer nonsense") == 401
    assert judged(DESK, path, method="POST", authorization=f"Bearer {TOKEN}") == 200
    assert judged(DESK, "/api/runs") == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.com", "null", "http://127.0.0.1:9999", "http://localhost:8600", "file://", ""],
)
def test_requests_of_other_sites_are_refused(origin: str) -> None:
    assert judged(LOCAL, "/api/runs/r/events", origin=origin) == 403


def test_our_own_page_may_ask() -> None:
    assert judged(LOCAL, origin="http://127.0.0.1:8600", sec_fetch_site="same-origin") == 200


def test_what_another_site_embeds_is_refused_but_its_links_lead_here() -> None:
    assert judged(LOCAL, "/api/runs", sec_fetch_site="cross-site") == 403
    assert judged(LOCAL, "/", sec_fetch_site="cross-site", sec_fetch_mode="no-cors") == 403
    assert judged(LOCAL, "/", sec_fetch_site="cross-site", sec_fetch_mode="navigate") == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/api/runs/../../../etc/passwd/state",
        "/js/%2e%2e/x",
        "/api/runs/r\0/state",
        "/api\\runs",
    ],
)
def test_paths_that_lead_elsewhere_lead_nowhere(path: str) -> None:
    assert judged(LOCAL, path) == 404


def test_a_very_long_address_is_refused() -> None:
    assert judged(LOCAL, "/" + "a" * 5_000) == 414


def test_tokens_are_compared_whole() -> None:
    assert is_token(f"bearer {TOKEN}", TOKEN)
    assert not is_token(f"Bearer {TOKEN} ", "")
    assert not is_token("Bearer ", TOKEN)
