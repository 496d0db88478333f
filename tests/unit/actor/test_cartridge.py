from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from actor.env.cartridge import check_cartridge, find_cartridge, package_directory
from common.errors import ConfigError


def _cartridge(*, prg_banks: int = 2, chr_banks: int = 1) -> bytes:
    header = b"NES\x1a" + bytes([prg_banks, chr_banks]) + bytes(10)
    return header + bytes(prg_banks * 16384 + chr_banks * 8192)


def _write(folder: Path, content: bytes) -> Path:
    path = folder / "game.nes"
    path.write_bytes(content)
    return path


def test_the_installed_cartridge_is_the_known_one() -> None:
    assert find_cartridge().is_file()


def test_a_whole_cartridge_with_the_expected_hash_passes(tmp_path: Path) -> None:
    content = _cartridge(prg_banks=32)  # 16 or more overflow in uint8

    check_cartridge(_write(tmp_path, content), expected_sha256=hashlib.sha256(content).hexdigest())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the cartridge .*gone\.nes.*reinstall"):
        check_cartridge(tmp_path / "gone.nes")


@pytest.mark.parametrize("content", [b"", b"NES", b"PK\x03\x04" + bytes(40_000)])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match="not an iNES cartridge"):
        check_cartridge(_write(tmp_path, content))


@pytest.mark.parametrize("kept_bytes", [5, 16, 20_000, 40_975])
def test_a_truncated_file_is_refused(tmp_path: Path, kept_bytes: int) -> None:
    with pytest.raises(ConfigError, match=f"truncated: expected .* got {kept_bytes};"):
        check_cartridge(_write(tmp_path, _cartridge()[:kept_bytes]))


def test_another_game_is_refused_with_both_hashes(tmp_path: Path) -> None:
    content = _cartridge()

    with pytest.raises(ConfigError, match=hashlib.sha256(content).hexdigest()):
        check_cartridge(_write(tmp_path, content))


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigError, match="no_such_package is not installed"):
        package_directory("no_such_package")
