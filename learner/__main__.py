"""Entry point of `python -m learner`."""

from __future__ import annotations

import sys

from learner.main import main

if __name__ == "__main__":
    sys.exit(main())
