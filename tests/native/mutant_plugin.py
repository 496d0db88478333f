"""A pytest plugin that lets another build of the native core stand for the installed one."""

from __future__ import annotations

import os
from pathlib import Path

from tests.native.mutant_play import install
from tests.native.native_builds import BUILD_VARIABLE

install(Path(os.environ[BUILD_VARIABLE]))
