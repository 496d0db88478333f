"""The templates of docs/deploy: what can be checked without the engine that they are for.

Programs take their flags, validators find no fault where they are installed, and what must hold
for every container and unit does.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actor.main import ActorArgs
from common.cli import Program, parse_args, settings_from_config_flag
from common.errors import HostUnknown
from common.settings_files import load_settings
from launch.control import ControlArgs
from launch.healthy import HealthyArgs
from launch.keys import KeysArgs
from launch.options import parse_local
from launch.relay import RelayArgs
from learner.main import LearnerArgs
from replay_server.main import ReplayArgs

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs" / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SCRIPT = DEPLOY / "slurm" / "train.sbatch"
USER = 10_001
DRAWN_INDEX = re.compile(r"\$+\(\( .* % 10000 \)\)")
KINDS: dict[str, Any] = {
    "actor": ActorArgs,
    "learner": LearnerArgs,
    "replay_server": ReplayArgs,
    "launch/relay.py": RelayArgs,
}


def check_command(words: list[str], config: Path) -> None:
    """Let the program parse its words, without starting it; `words` are those after `python`."""
    if words[0] == "-m":
        words = words[1:]
    name, *flags = words
    if name in ("launch/local.py", "docs/deploy/slurm/submit.py"):
        parse_local(flags)
        return
    program = Program(name=name, description="")
    if name == "launch/control.py":
        parse_args(program, flags, ControlArgs())
        return
    if name in ("launch/healthy.py", "launch/keys.py"):
        first, *rest = flags
        is_probe = name == "launch/healthy.py"
        flags = ["--peer", first, *rest] if is_probe else flags
        parse_args(program, flags, HealthyArgs() if is_probe else KeysArgs())
        return
    at = flags.index("--config") + 1
    flags[at] = str(config)
    parse_args(program, flags, KINDS[name](settings=settings_from_config_flag(flags)))


def python_words(text: str) -> list[str]:
    """The words after `python` in a line of a shell; a number that is drawn there is 7."""
    line = DRAWN_INDEX.sub("7", text.replace("$$", "$"))
    return shlex.split(line.rpartition("exec python ")[2])


def readme_lines() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    return [line.partition(" #")[0] for block in blocks for line in block.splitlines()]


def run_validator(name: str, *words: str) -> None:
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{name} is not installed")
    result = subprocess.run(
        [found, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def pod_specs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in MANIFESTS:
        for document in documents(path):
            template = document.get("spec", {}).get("template")
            if template is not None:
                yield document["metadata"]["name"], template["spec"]


def test_hadolint_finds_no_fault_with_the_image() -> None:
    run_validator("hadolint", "Dockerfile")


def test_the_image_runs_without_rights_and_has_both_variants() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    users = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)

    assert users == [f"{USER}:{USER}"]
    assert {"build-cpu", "build-cuda"} <= stages
    assert "FROM build-${VARIANT} AS installed" in text
    check_command(yaml.safe_load(command), DEPLOY / "run.toml")


def test_only_what_is_named_gets_into_the_image() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]

    assert rules[0] == "*"
    assert "**/*.nes" in rules
    assert all((ROOT / rule[1:]).exists() for rule in rules if rule.startswith("!"))


def test_the_containers_of_compose_are_confined_and_take_their_flags() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))

    for name, service in compose["services"].items():
        assert service["user"] == f"{USER}:{USER}", name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "ports" not in service, name
        words = service["command"]
        is_shell = service.get("entrypoint", [""])[0] == "sh"
        check_command(python_words(words[0]) if is_shell else list(words), DEPLOY / "run.toml")
        if probe := service.get("healthcheck"):
            assert probe["test"][:2] == ["CMD", "python"]
            check_command(probe["test"][2:], DEPLOY / "run.toml")
    assert compose["networks"]["lines"] == {"internal": True}


def test_compose_itself_finds_no_fault() -> None:
    docker = shutil.which("docker")
    plugin = docker and subprocess.run(
        [docker, "compose", "version"], capture_output=True, check=False, timeout=30
    )
    if not plugin or plugin.returncode != 0:
        pytest.skip("docker compose is not installed")
    run_validator("docker", "compose", "--file", "compose.yaml", "config", "--quiet")


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_schemas_of_kubernetes_allow_the_manifests(path: Path) -> None:
    validate = pytest.importorskip("kubernetes_validate")

    for document in documents(path):
        validate.validate(document, validate.latest_version(), strict=True)


def test_pods_are_confined_have_probes_and_take_their_flags() -> None:
    specs = dict(pod_specs())

    assert specs.keys() == {"replay", "learner", "actor"}
    for spec in specs.values():
        assert spec["securityContext"]["runAsUser"] == USER
        assert spec["securityContext"]["runAsNonRoot"] is True
        for container in (*spec["initContainers"], *spec["containers"]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        (program,) = spec["containers"]
        words = program["args"]
        is_shell = program.get("command", [""])[0] == "sh"
        check_command(python_words(words[0]) if is_shell else list(words), DEPLOY / "run.toml")
        for kind in ("startupProbe", "livenessProbe"):
            probe = program[kind]["exec"]["command"]
            assert probe[0] == "python"
            check_command(probe[1:], DEPLOY / "run.toml")


def test_every_volume_of_a_pod_is_there() -> None:
    claimed = {"replay": {"runs"}}
    for name, spec in pod_specs():
        volumes = {volume["name"] for volume in spec["volumes"]} | claimed.get(name, set())
        mounted = {
            mount["name"]
            for container in (*spec["initContainers"], *spec["containers"])
            for mount in container["volumeMounts"]
        }

        assert mounted == volumes


def test_pods_and_containers_have_the_same_settings() -> None:
    (config,) = (
        document
        for document in documents(DEPLOY / "kubernetes" / "config.yaml")
        if document["kind"] == "ConfigMap"
    )

    assert config["data"]["run.toml"] == (DEPLOY / "run.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_no_fault_with_the_units(path: Path, tmp_path: Path) -> None:
    for unit in UNITS:
        # It looks for what is started, and for units that are wanted.
        text = unit.read_text(encoding="utf-8")
        text = text.replace("/opt/warpzone/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(text.replace("/opt/warpzone", str(ROOT)), "utf-8")

    run_validator(
        "systemd-analyze",
        *("verify", "--recursive-errors=no", "--man=no", str(tmp_path / path.name)),
    )


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_the_units_start_what_exists(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    (started,) = re.findall(r"^ExecStart=\S+/python (.*)$", text, re.MULTILINE)
    config = tmp_path / "far.toml"
    config.write_text("[run]\nrun = 'far'\n", encoding="utf-8")

    check_command(shlex.split(started.replace("%i", "7")), config)
    assert "RestartPreventExitStatus=2\n" in text


@pytest.mark.parametrize("line", [line for line in readme_lines() if "python " in line])
def test_the_programs_take_the_flags_that_the_page_shows(line: str) -> None:
    words = shlex.split(line.rpartition("python ")[2].replace("/opt/warpzone/", ""))

    check_command(words, DEPLOY / "run.toml")


def test_the_page_looks_at_runs_where_the_templates_put_them() -> None:
    shown = re.findall(r"--run-dir (\S+)", "\n".join(readme_lines()))
    run = load_settings(DEPLOY / "run.toml").run

    assert set(shown) == {f"{run.runs_dir}/{run.run}", "/var/lib/warpzone/far"}
    assert all("--runs-dir /var/lib/warpzone " in unit.read_text("utf-8") for unit in UNITS)


def test_the_page_installs_and_enables_every_unit() -> None:
    names = {unit.name.removesuffix(".service") for unit in UNITS}

    for beginning in ("sudo cp ", "sudo systemctl enable --now "):
        lines = " ".join(line for line in readme_lines() if line.startswith(beginning))
        assert set(re.findall(r"warpzone-\w+@?", lines)) == names


def test_units_of_which_a_run_has_several_have_their_number() -> None:
    for unit in UNITS:
        started = re.findall(r"^ExecStart=.*$", unit.read_text(encoding="utf-8"), re.MULTILINE)
        assert ("--index %i" in started[0]) == ("@" in unit.name), unit.name


def test_bash_and_shellcheck_find_no_fault_with_the_job() -> None:
    run_validator("bash", "-n", str(SCRIPT))
    run_validator("shellcheck", str(SCRIPT))


def test_no_engine_gives_up_a_program_whose_peers_have_no_address_yet() -> None:
    (job,) = (
        one for one in documents(DEPLOY / "kubernetes" / "learner.yaml") if one["kind"] == "Job"
    )
    rules = job["spec"]["podFailurePolicy"]["rules"]
    final = [
        code for rule in rules if "onExitCodes" in rule for code in rule["onExitCodes"]["values"]
    ]
    kept = [
        re.findall(r"^RestartPreventExitStatus=(.*)$", unit.read_text(), re.M) for unit in UNITS
    ]

    assert final == [2]
    assert kept == [["2"]] * len(UNITS)
    assert HostUnknown.exit_code not in final
