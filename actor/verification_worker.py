"""Repeats traces on a clean emulator: a job on standard input, a JSON line per trace.

Started by `launch/verify.py`, several at a time; people use that.
"""

from __future__ import annotations

import json
import sys

from common.errors import ConfigError, MarioError, TraceInvalid
from common.traces import trace_of_fields


def main() -> int:
    try:
        try:
            job = json.loads(sys.stdin.read())
            core_name, numbered = job["core"], job["traces"]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"not a job of launch/verify.py: {error!r}") from error
        _verify(core_name, numbered)
    except MarioError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    return 0


def _verify(core_name: str, numbered: list[tuple[int, object]]) -> None:
    from actor.env.core_choice import make_core  # noqa: PLC0415 - after the job is understood
    from actor.env.repetition import what_is_wrong  # noqa: PLC0415
    from common.config import EnvSettings  # noqa: PLC0415

    # Through the settings, so that an unknown core is refused in words.
    core = make_core(EnvSettings(core=core_name).core)  # type: ignore[arg-type] # checked there
    for number, fields in numbered:
        try:
            problem = what_is_wrong(trace_of_fields(fields), core)
        except TraceInvalid as error:
            problem = str(error)
        sys.stdout.write(json.dumps({"number": number, "problem": problem}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
