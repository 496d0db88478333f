"""Every command of the README works as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.jsonl import last_record
from tests.processes import ROOT, processes_mentioning
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")

# What stands in for patience: minutes become a few agent steps, endless commands get Ctrl-C.
SHORTER = {
    "--max-minutes 3 --run first": "--max-agent-steps 2000 --run first",
    "--max-minutes 5": "--max-agent-steps 300",
    "--run first --resume --max-minutes 3": "--run first --resume --max-agent-steps 3000",
    # All of it takes minutes: tests/integration/test_benchmark_command.py runs it at night.
    "benchmark.py all --quick": "benchmark.py env --quick",
    "--preset smoke": "--preset smoke --max-agent-steps 600",
}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands(text: str) -> list[str]:
    return [line for block in blocks(text, "sh") for line in block.strip().splitlines()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The repository's files with the virtual environment that runs this test."""
    folder = tmp_path_factory.mktemp("checkout") / "warpzone"
    names = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        text=True,
    )
    for name in names.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
    for built in (ROOT / "actor/env/native").glob("_console*.so"):
        shutil.copy2(built, folder / "actor/env/native")
    # The environment is there: make need not install it again.
    for stamp in (".installed", ".installed-dev"):
        (folder / ".venv" / stamp).touch()
    yield folder
    for process in processes_mentioning(str(folder)):
        process.kill()


def environment(**more: str) -> dict[str, str]:
    """Of a person's shell: whatever `make` told this test is not for its own `make`."""
    told = ("MAKE", "ARGS")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    return plain | more


def shell(command: str, folder: Path, timeout_s: float = 200) -> subprocess.CompletedProcess[str]:
    for long, short in SHORTER.items():
        command = command.replace(long, short)
    path = f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


def test_both_languages_have_the_same_commands() -> None:
    assert commands(CHINESE) == commands(README)
    assert blocks(CHINESE, "python") == blocks(README, "python")


def test_both_languages_have_the_same_structure() -> None:
    def levels(text: str) -> list[str]:
        outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        return [line.split(" ")[0] for line in outside.splitlines() if line.startswith("#")]

    def links(text: str) -> list[str]:
        found = re.findall(r"\]\(([^)]+)\)", text)
        return sorted(link for link in found if not link.startswith("README"))

    assert levels(CHINESE) == levels(README)
    assert links(CHINESE) == links(README)


def test_the_commands_of_the_readme_in_order(checkout: Path) -> None:
    """In one test because the later ones look at what the earlier ones made."""
    foreground = [
        line
        for line in commands(README)
        if line not in ("make train", "make test")
        and not line.startswith((". .venv", "python launch/control.py", "python -m "))
    ]

    for command in foreground:
        result = shell(command, checkout)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"

    assert (checkout / "curves.png").stat().st_size > 10_000


def test_make_train_and_control(checkout: Path) -> None:
    control = [line for line in commands(README) if line.startswith("python launch/control.py")]
    train = subprocess.Popen(
        ["bash", "-c", "exec make train"],
        cwd=checkout,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    root = checkout / "runs" / "default"
    try:
        wait_until("stored agent steps", lambda: _stored(root) > 0, 120)
        answers = [
            shell(command.replace("runs/first", "runs/default"), checkout) for command in control
        ]
        os.killpg(train.pid, signal.SIGINT)
        output, _ = train.communicate(timeout=60)
    finally:
        train.kill()
        train.communicate()

    assert [answer.returncode for answer in answers] == [0, 0], answers
    assert "samples_per_insert 2 was passed on" in answers[1].stdout
    last = output.strip().splitlines()
    assert any(re.match(r"results: .*/runs/default$", line) for line in last), output
    assert any(re.match(r"checkpoint: .*/checkpoints/\d{11}$", line) for line in last), output


def _stored(root: Path) -> int:
    steps = (last_record(root / "metrics.jsonl") or {}).get("global_step")
    return steps if isinstance(steps, int) else 0


def test_the_programs_by_hand(checkout: Path) -> None:
    by_hand = [line for line in commands(README) if line.startswith("python -m ")]
    started = [
        subprocess.Popen(
            ["bash", "-c", f"exec {checkout}/.venv/bin/{command}"],
            cwd=checkout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(OMP_NUM_THREADS="1"),
        )
        for command in reversed(by_hand)
    ]
    try:
        wait_until("stored agent steps", lambda: _stored(checkout / "runs" / "by-hand") > 0, 120)
    finally:
        for process in started:
            process.send_signal(signal.SIGINT)
        codes = [process.wait(timeout=20) for process in started]

    assert codes == [130] * len(by_hand)


def test_the_python_of_the_readme(checkout: Path) -> None:
    program = "\n".join(blocks(README, "python"))

    result = subprocess.run(
        [sys.executable, "-c", program + "\nprint(observation.shape)"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout == "(4, 84, 84)\n"
    assert result.stderr == ""


def test_make_test_is_what_this_is() -> None:
    """`make test` itself is not run here: it would run this test."""
    plan = subprocess.check_output(["make", "-n", "test"], cwd=ROOT, text=True)

    assert '-m "not nightly and not faults_only"' in plan
