"""Tokens, with processes that ask the head played by functions."""

from __future__ import annotations

import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from common.errors import ConfigError
from launch.fleet import ray_access


@pytest.mark.parametrize(
    ("mode", "codes", "is_refused"),
    [
        ("token", [0], False),
        ("token", [ray_access.REFUSED], True),
        # It has not answered, or has none for us: Ray itself says which.
        ("token", [1], False),
        ("token", [None], False),
        (None, [ray_access.REFUSED, 1], True),
        # Without a mode Ray takes the token that it finds.
        (None, [ray_access.REFUSED, 0], False),
    ],
)
def test_a_head_that_does_not_know_our_token_is_told_of_at_once(
    mode: str | None, codes: list[int | None], is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ray_access.AUTH_MODE, raising=False)
    if mode is not None:
        monkeypatch.setenv(ray_access.AUTH_MODE, mode)
    monkeypatch.setattr(ray_access, "_probe", lambda *_: codes.pop(0))

    expected = pytest.raises(ConfigError, match="refuses our token; give this command the token")
    with expected if is_refused else nullcontext():
        ray_access.require_our_token("10.0.0.5:6379")


@pytest.mark.parametrize(
    ("variables", "is_open", "is_refused"),
    [
        ({}, False, True),
        ({ray_access.AUTH_MODE: "disabled"}, False, True),
        ({ray_access.AUTH_MODE: "token"}, False, False),
        ({ray_access.AUTH_MODE: "token"}, True, True),
        ({ray_access.TLS: "1"}, True, False),
    ],
)
def test_keys_do_not_go_through_a_ray_that_lets_in_everybody(
    variables: dict[str, str], is_open: bool, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_access, "answers_strangers", lambda _: is_open)
    for name in (ray_access.AUTH_MODE, ray_access.TLS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    expected = pytest.raises(ConfigError, match="lets in whoever reaches it")
    with expected if is_refused else nullcontext():
        ray_access.require_guarded_ray("10.0.0.5:6379")


def test_a_ray_of_our_own_has_a_token_that_only_we_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (ray_access.TOKEN_PATH, ray_access.MANY_MACHINES, *ray_access.LOCAL_VARIABLES)
    for name in own:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    ray_access.prepare_token(tmp_path)

    path = Path(os.environ[ray_access.TOKEN_PATH])
    assert os.environ[ray_access.AUTH_MODE] == "token"
    assert path.parent == tmp_path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text()) == 64
