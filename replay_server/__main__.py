"""Entry point of `python -m replay_server`."""

from __future__ import annotations

import sys

from replay_server.main import main

if __name__ == "__main__":
    sys.exit(main())
