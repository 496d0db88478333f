"""Makes a small model of a run, to keep or to publish: `python launch/export.py RUN -o FOLDER`."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.atomic_files import TEMPORARY_PREFIX, write_atomic
from common.checkpoint_files import (
    AVERAGE_NAME,
    NETWORK_NAME,
    PLAYABLE_FILES,
    STATE_NAME,
    checkpoint_name,
    encode_json,
    load_state,
    read_manifest,
    write_files,
)
from common.cli import Program, command_words, parse_args, refuse
from common.config import EndpointSettings, RunSettings, Settings
from common.errors import ConfigError, MarioError
from common.jsonl import JsonlWriter, read_jsonl
from common.models import CONFIG_NAME, ModelPlace, Which, find_model
from common.resume import CHECKPOINTS_FOLDER, mark_best
from common.settings_files import settings_to_dict

PROGRAM = Program(
    name="python launch/export.py",
    description="""Copy what is needed to play a trained network: no optimizer, no logs.

The folder is laid out like a run, so launch/evaluate.py and launch/verify.py take it. Examples:
  python launch/export.py runs/first -o my-model
  python launch/export.py runs/first --which latest -o my-model
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportArgs:
    """What to copy, and where to."""

    run_dir: str = ""
    """Folder of the run, or one of its checkpoints; as the first word or as a flag."""
    output: str = ""
    """Folder to make; it must not exist. -o for short."""
    which: Which = "best"
    """The best checkpoint of the run (by evaluation) or its latest."""


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--run-dir")
    try:
        args = parse_args(PROGRAM, words, ExportArgs())
        if not args.run_dir or not args.output:
            raise ConfigError("give the folder of a run and -o FOLDER")
        folder = export(Path(args.run_dir), Path(args.output), args.which)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except OSError as error:
        return refuse(PROGRAM, ConfigError(f"cannot write {error.filename}: {error.strerror}"))
    print(f"wrote {folder}")
    return 0


def export(run: Path, output: Path, which: Which) -> Path:
    place = find_model(run, which)
    if output.exists():
        raise ConfigError(f"{output} exists; choose another folder, or remove it")
    unfinished = output.with_name(f"{TEMPORARY_PREFIX}{output.name}-{secrets.token_hex(4)}")
    try:
        _write(place, unfinished)
        unfinished.rename(output)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return output


def _write(place: ModelPlace, folder: Path) -> None:
    name, run = checkpoint_name(place.agent_steps), place.root
    write_model(place, folder / CHECKPOINTS_FOLDER / name)
    mark_best(folder / CHECKPOINTS_FOLDER, name)
    write_config(run, place.settings, folder)
    copy_lines(run / "eval.jsonl", folder / "eval.jsonl", checkpoint=place.checkpoint.name)
    for file in sorted((run / "traces").glob("evaluat*.jsonl")):
        copy_lines(file, folder / "traces" / file.name, agent_steps=place.agent_steps)


def write_model(place: ModelPlace, folder: Path) -> None:
    """A checkpoint with the network alone."""
    folder.mkdir(parents=True)
    state = load_state(place.checkpoint, PLAYABLE_FILES)
    has_average = AVERAGE_NAME in read_manifest(place.checkpoint, PLAYABLE_FILES).files
    played = AVERAGE_NAME if has_average else NETWORK_NAME
    files = {
        # What was evaluated is what is published.
        NETWORK_NAME: (place.checkpoint / played).read_bytes(),
        STATE_NAME: encode_json({"learner": state.get("learner", {})}),
    }
    write_files(folder, files, place.agent_steps)


def write_config(run: Path, settings: Settings, output: Path) -> None:
    """The settings and what ran, without the paths of the machine."""
    stored = json.loads((run / CONFIG_NAME).read_text(encoding="utf-8"))
    portable = replace(
        settings,
        run=replace(settings.run, runs_dir=RunSettings().runs_dir),
        endpoints=EndpointSettings(),
    )
    record = {
        "settings": settings_to_dict(portable),
        "versions": stored.get("versions", {}),
        "git_commit": stored.get("git_commit"),
    }
    write_atomic(output / CONFIG_NAME, json.dumps(record, indent=2).encode() + b"\n")


def copy_lines(source: Path, target: Path, **wanted: object) -> None:
    """The records with these values; no file without any."""
    records = [
        record
        for record in read_jsonl(source)
        if all(record.get(name) == value for name, value in wanted.items())
    ]
    if records:
        writer = JsonlWriter(target)
        for record in records:
            writer.write(record)
        writer.close()


if __name__ == "__main__":
    sys.exit(main())
