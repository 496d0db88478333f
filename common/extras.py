"""How an optional part is installed: one wording for every message that names one."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """In a checkout, which stays what is run (-e), with the versions that were tested (-c)."""
    return f"pip install -c constraints.txt -e '.[{extra}]'"
