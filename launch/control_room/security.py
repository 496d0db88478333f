"""Who may ask what: decided for every request before anything else sees it.

A page of a stranger in the same browser must not read runs (Host, Origin, Sec-Fetch-Site), nobody
may write (methods), and beyond this machine nobody comes in without the token. No cookie is ever
set, so no other page can act in a viewer's name.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from common.endpoints import is_loopback

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_TARGET_BYTES: Final = 2_048
MAX_HEADER_BYTES: Final = 16 * 1024
MIN_TOKEN_CHARACTERS: Final = 16
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
READING: Final = frozenset({"GET", "HEAD"})
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; media-src 'self' blob:; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What this control room allows."""

    host: str = "127.0.0.1"
    """The address that it listens at."""
    token: str = ""
    reading_needs_token: bool = False
    """Also on this machine, which others may use as well; beyond it always."""
    allow_control: bool = False
    names: tuple[str, ...] = ()
    """Further host names under which it may be reached."""

    @property
    def token_guards_reading(self) -> bool:
        """Beyond this machine always; here a token that was made up is for controls alone."""
        return bool(self.token) and (self.reading_needs_token or not is_loopback(self.host))


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    words: str


def host_name(header: str) -> str:
    """The name in a Host header, without the port; empty when it is not of that form."""
    if header.startswith("["):
        name, bracket, port = header.partition("]")
        name += bracket
        port = port.removeprefix(":") if port else "1"
    else:
        name, _, port = header.partition(":")
        port = port or "1"
    return name.lower() if port.isascii() and port.isdigit() else ""


def is_allowed_host(header: str, rules: Rules) -> bool:
    """Names only from our list: a name of a stranger may lead to this machine as well.

    Beyond loopback numbers are fine, no name server had a say in them. The port is free: a tunnel
    gives the page another one.
    """
    name = host_name(header)
    if not name:
        return False
    if name in LOOPBACK_NAMES or name in rules.names:
        return True
    if is_loopback(rules.host):
        return False
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name == rules.host.lower()
    return True


def judge_request(scope: Scope, rules: Rules) -> Refusal | None:
    """None, or why the request is not answered."""
    headers = list(scope.get("headers", []))
    if (refusal := judge_form(scope, headers)) is not None:
        return refusal
    path, method = str(scope.get("path", "")), str(scope.get("method", ""))
    if "\0" in path or "\\" in path or "%" in path or ".." in path.split("/"):
        return Refusal(404, "there is nothing at this address")
    hosts = values_of(headers, b"host")
    if len(hosts) != 1 or not is_allowed_host(hosts[0], rules):
        return Refusal(421, "this host name is not served here; see --host and --names")
    if (refusal := judge_origin(headers, hosts[0], path)) is not None:
        return refusal
    if method not in READING and not (method == "POST" and rules.allow_control):
        return Refusal(405, "only GET and HEAD are answered here")
    return judge_token(headers, path, method, rules)


def judge_form(scope: Scope, headers: list[tuple[bytes, bytes]]) -> Refusal | None:
    """What no browser sends, before anything in it is believed."""
    path = bytes(scope.get("raw_path") or str(scope.get("path", "")).encode())
    if len(path) + len(bytes(scope.get("query_string", b""))) > MAX_TARGET_BYTES:
        return Refusal(414, "the address is too long")
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        return Refusal(431, "the headers are too long")
    if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
        return Refusal(505, "HTTP 1.0 and 1.1 are spoken here")
    if values_of(headers, b"transfer-encoding") and values_of(headers, b"content-length"):
        return Refusal(400, "two lengths for one request")
    return None


def judge_origin(headers: list[tuple[bytes, bytes]], host: str, path: str) -> Refusal | None:
    """Requests that another site's page makes are refused; a link that a person follows is not."""
    for origin in values_of(headers, b"origin"):
        if origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            return Refusal(403, "requests from other sites are not answered")
    site = "".join(values_of(headers, b"sec-fetch-site"))
    is_visit = "".join(values_of(headers, b"sec-fetch-mode")) == "navigate" and path == "/"
    if site in ("cross-site", "same-site") and not is_visit:
        return Refusal(403, "requests from other sites are not answered")
    return None


def judge_token(
    headers: list[tuple[bytes, bytes]], path: str, method: str, rules: Rules
) -> Refusal | None:
    """The page itself holds no data: it asks the viewer for the token and sends it along."""
    is_data = path.startswith("/api/") or path == "/metrics"
    if not is_data or not (rules.token_guards_reading or method not in READING):
        return None
    given = values_of(headers, b"authorization")
    if len(given) == 1 and rules.token and is_token(given[0], rules.token):
        return None
    return Refusal(401, "the token is missing or wrong; send it as Authorization: Bearer TOKEN")


def is_token(header: str, token: str) -> bool:
    """Compared in a time that does not tell how much of it was right."""
    scheme, _, given = header.partition(" ")
    expected = token.encode()
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), expected)


def values_of(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


class Guard:
    """Around the whole application."""

    def __init__(self, app: App, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # A WebSocket: uvicorn answers for us that there is none.
        refusal = judge_request(scope, self._rules)
        if refusal is not None:
            await _answer(refusal, send)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await self._app(scope, receive, send_guarded)


async def _answer(refusal: Refusal, send: Send) -> None:
    body = refusal.words.encode() + b"\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *HEADERS,
    ]
    if refusal.status == 401:  # noqa: PLR2004 - "unauthorised" must say how
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status == 405:  # noqa: PLR2004 - "method not allowed" must say which are
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
