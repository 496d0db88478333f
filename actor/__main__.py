"""Entry point of `python -m actor`."""

from __future__ import annotations

import sys

from actor.main import main

if __name__ == "__main__":
    sys.exit(main())
