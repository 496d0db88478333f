from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import ConfigError
from launch.fleet.placement import ActorWish
from launch.fleet.settings import ClusterSettings, read_cluster_file


def written(folder: Path, text: str) -> str:
    path = folder / "cluster.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_holds_the_cluster_and_the_settings_of_the_run(tmp_path: Path) -> None:
    text = '[cluster]\naddress = "auto"\nactors = 64\n[run]\nrun = "first"\n[env]\nstage = "1-2"\n'

    file = read_cluster_file(written(tmp_path, text))

    assert file.cluster == ClusterSettings(address="auto", actors=64)
    assert file.cluster.wish == ActorWish(actors=64)
    assert file.sections == {"run": {"run": "first"}, "env": {"stage": "1-2"}}


def test_without_a_file_it_is_this_machine() -> None:
    file = read_cluster_file("")

    assert file.cluster.is_local
    assert file.cluster.wish == ActorWish()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[cluster]\nactor = 3", "cluster: unknown setting 'actor'; did you mean 'actors'?"),
        ("[cluster]\nactors = 0", 'expected a whole number from 1 to 10000, or "auto", got 0'),
        ('[cluster]\nactors_per_node = "many"', "cluster.actors_per_node: expected a whole number"),
        ("[cluster]\nactors = true", "cluster.actors: expected int | str, got True"),
        ('[cluster]\naddress = "there"', "expected local, auto or HOST:PORT, got 'there'"),
        ('[cluster]\naddress = "127.0.0.1:99999999"', "expected a port from 1 to 65535, got"),
        ('[cluster]\naddress = "127.0.0.1:0"', "expected a port from 1 to 65535, got"),
        ('[cluster]\naddress = "127.0.0.1:\u00b2"', "expected local, auto or HOST:PORT"),
        (
            "[xyz]\na = 1",
            "unknown section 'xyz'; known are cluster, run, env, actor, replay, learner, ",
        ),
        ("[clustre]\nactors = 1", "unknown section 'clustre'; did you mean 'cluster'?"),
        ("[cluster]\nport = 65533", "cluster.port: expected 0 to 65532, got 65533"),
        ('[cluster]\nkeys = "never"', 'write one of "auto", "always"'),
        ('[cluster]\nhost = "a b"', "cluster.host: expected a name without blanks"),
        (
            '[cluster]\nhost = "0.0.0.0"',
            "address that actors connect to, got '0.0.0.0'",
        ),
        ('[cluster]\nhost = "::"', "expected the address that actors connect to, got '::'"),
        ("cluster = 3", "section 'cluster' must be a table"),
        ("[actor]\nactors = 3", "write the number of actors as actors = N below [cluster]"),
        ('[endpoints]\nkeys_dir = "keys"', "leave [endpoints] out"),
        ("[cluster", "is not valid toml"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_cluster_file(written(tmp_path, text))

    assert expected in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
