"""Keys of the nodes: one for each, made at home, told to it, taken back when it is gone.

Every start has new keys: what an earlier one left lets nobody in.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

from common.atomic_files import write_atomic
from common.errors import ConfigError
from common.keys import (
    ALLOWED_FOLDER,
    CLIENT_KEY,
    FOLDER_MODE,
    PUBLIC_SUFFIX,
    SERVER_PUBLIC,
    KeyFolder,
    read_key,
)
from launch.keys import ACTORS_FOLDER, add_actor, init, revoke

log = logging.getLogger(__name__)

KEYS_FOLDER = "keys"
NODE_FILES = (CLIENT_KEY, SERVER_PUBLIC)
"""All that a node needs: it binds nothing."""


class NodeKeys:
    """The keys of one start, in the run folder of the home."""

    def __init__(self, root: Path) -> None:
        shutil.rmtree(root, ignore_errors=True)
        init(root)
        self.folder = KeyFolder.of(str(root))

    def for_node(self, name: str) -> dict[str, str]:
        """Its files by name; a node that begins anew gets the ones that it had."""
        public = self.folder.root / ALLOWED_FOLDER / f"{name}{PUBLIC_SUFFIX}"
        if not public.exists():
            add_actor(self.folder, name)
        bundle = self.folder.root / ACTORS_FOLDER / name
        return {file: read_key(bundle / file).decode("ascii") for file in NODE_FILES}

    def revoke(self, name: str) -> None:
        """For a node that is gone for good; running programs notice within a second."""
        with contextlib.suppress(ConfigError):
            revoke(self.folder, name)
            log.info("key of a node revoked", extra={"node": name})


def write_node_keys(folder: Path, keys: Mapping[str, str]) -> None:
    """On the node: files for this user only in a folder for this user only."""
    if set(keys) != set(NODE_FILES):
        raise ConfigError(f"expected the keys {', '.join(NODE_FILES)}, got {', '.join(keys)}")
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    folder.chmod(FOLDER_MODE)
    for name in NODE_FILES:
        write_atomic(folder / name, keys[name].encode("ascii") + b"\n")
