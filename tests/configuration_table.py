"""The tables of docs/configuration.md and docs/cluster.md, made from the settings' dataclasses.

After a change of a setting run `python -m tests.configuration_table`: it writes the tables anew.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from textwrap import dedent

from actor.main import ActorArgs
from common.config import Settings
from common.config_checks import flag_of
from common.environment import variable_of
from launch.fleet.settings import ClusterSettings
from launch.options import LocalArgs
from launch.relay import RelayArgs
from learner.main import LearnerArgs
from replay_server.main import ReplayArgs

DOCS = Path(__file__).resolve().parent.parent / "docs"
CONFIGURATION_DOC = DOCS / "configuration.md"
CLUSTER_DOC = DOCS / "cluster.md"
PROGRAMS: dict[str, type] = {
    "launch/local.py": LocalArgs,
    "python -m actor": ActorArgs,
    "python -m replay_server": ReplayArgs,
    "python -m learner": LearnerArgs,
    "launch/relay.py": RelayArgs,
}


def sections() -> dict[str, type]:
    """Section name and dataclass of each part of `Settings`, in order."""
    default = Settings()
    return {item.name: type(getattr(default, item.name)) for item in fields(Settings)}


def meanings_of(kind: type) -> dict[str, str]:
    """The text under each field of a dataclass."""
    (definition,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for item, text in zip(definition.body, definition.body[1:], strict=False):
        match item, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as meaning)),
            ):
                found[name] = " ".join(meaning.split())
    return found


def _shown_default(item: Field[object]) -> str:
    if item.default is MISSING:
        return ""
    if isinstance(item.default, bool):
        return "on" if item.default else "off"
    return f"`{item.default!r}`" if isinstance(item.default, str) else f"`{item.default}`"


def table_of(kind: type, *, has_variables: bool) -> Iterator[str]:
    """Of the programs, only the launcher reads the environment."""
    meanings = meanings_of(kind)
    yield f"| flag |{' environment |' if has_variables else ''} default | meaning |"
    yield f"|---|{'---|' if has_variables else ''}---|---|"
    for item in fields(kind):
        if item.name != "settings":
            variable = f" `{variable_of(item.name)}` |" if has_variables else ""
            default = _shown_default(item)
            yield f"| `{flag_of(item.name)}` |{variable} {default} | {meanings[item.name]} |"


def expected_blocks() -> dict[str, str]:
    """The text between the markers of each block, by the name in its markers."""
    kinds = {f"section {name}": (kind, True) for name, kind in sections().items()}
    kinds |= {f"program {name}": (kind, kind is LocalArgs) for name, kind in PROGRAMS.items()}
    return {
        name: "\n".join(table_of(kind, has_variables=has_variables))
        for name, (kind, has_variables) in kinds.items()
    }


def cluster_blocks() -> dict[str, str]:
    """The same for the file of a cluster."""
    meanings = meanings_of(ClusterSettings)
    rows = [
        f"| `{item.name}` | {_shown_default(item)} | {meanings[item.name]} |"
        for item in fields(ClusterSettings)
    ]
    return {"section cluster": "\n".join(["| key | default | meaning |", "|---|---|---|", *rows])}


def markers(name: str) -> tuple[str, str]:
    return f"<!-- begin {name} -->\n", f"\n<!-- end {name} -->"


def block_in(text: str, name: str) -> str:
    """What the document says between the markers; empty when they are missing."""
    begin, end = markers(name)
    return text.partition(begin)[2].partition(end)[0]


def main() -> None:
    write_blocks(CONFIGURATION_DOC, expected_blocks())
    write_blocks(CLUSTER_DOC, cluster_blocks())


def write_blocks(document: Path, blocks: Mapping[str, str]) -> None:
    text = document.read_text(encoding="utf-8")
    for name, block in blocks.items():
        begin, end = markers(name)
        before, _, rest = text.partition(begin)
        # Without its newline, which a table that is still empty shares with `begin`.
        _, is_there, after = rest.partition(end.lstrip("\n"))
        if not is_there:
            raise ValueError(f"{document} has no place for the table {name!r}")
        text = before + begin + block + end + after
    document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
