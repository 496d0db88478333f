"""Finds and checks the game cartridge that the installed gym-super-mario-bros package brings.

The package is located, not imported: importing it would import gym and print its notice.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from common.errors import ConfigError

_PACKAGE = "gym_super_mario_bros"
_FILE = Path("_roms") / "super-mario-bros.nes"
_SHA256 = "ec299b990e8bfee8ba46e3f61d63b2e1ae5b8a2e431de84e2e4bbd692dc53586"
_INES_MAGIC = b"NES\x1a"
_HEADER_BYTES = 16
_PRG_BANK_BYTES = 16 * 1024
_CHR_BANK_BYTES = 8 * 1024
_REMEDY = "reinstall it with: pip install --force-reinstall 'gym-super-mario-bros>=7.4,<8'"


def package_directory(package: str) -> Path:
    """The folder of an installed package, found without running any of its code."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"the Python package {package} is not installed; pip install warpzone")
    return Path(next(iter(spec.submodule_search_locations)))


def find_cartridge() -> Path:
    """The path of the unmodified Super Mario Bros. cartridge, checked."""
    path = package_directory(_PACKAGE) / _FILE
    check_cartridge(path)
    return path


def check_cartridge(path: Path, *, expected_sha256: str = _SHA256) -> None:
    """Refuse a file that the emulator would misread or that would move our results."""
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"cannot read the cartridge {path}: {exc.strerror}; {_REMEDY}") from exc
    if not content.startswith(_INES_MAGIC):
        raise ConfigError(f"{path} is not an iNES cartridge (no NES header); {_REMEDY}")
    expected_bytes = _declared_bytes(content)
    if len(content) < expected_bytes:
        raise ConfigError(
            f"{path} is truncated: expected {expected_bytes} bytes, got {len(content)}; {_REMEDY}"
        )
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected_sha256:
        raise ConfigError(
            f"{path} is another cartridge: expected sha256 {expected_sha256}, got {actual}; "
            f"{_REMEDY}"
        )


def _declared_bytes(content: bytes) -> int:
    """What the header promises; nes_py computes this in uint8, which overflows under NumPy 2."""
    if len(content) < _HEADER_BYTES:
        return _HEADER_BYTES
    return _HEADER_BYTES + content[4] * _PRG_BANK_BYTES + content[5] * _CHR_BANK_BYTES
