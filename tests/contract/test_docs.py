"""The documents name only what exists: links, files, modules, dependencies, error messages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("actor", "common", "launch", "learner", "replay_server")
FOLDERS = (*PACKAGES, "tests", "docs")
DOCUMENTS = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("README*.md"),
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        ROOT / "SECURITY.md",
    ]
)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]+")
MODULE = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.[a-z_]\w*)+")
PLACEHOLDER = re.compile(r"NNNN|PEER|\*|<")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def code_words(document: Path) -> Iterator[str]:
    """Words in backticks and in fenced blocks, without the punctuation around them."""
    for code in CODE.findall(document.read_text(encoding="utf-8")):
        for word in code.strip("`").split():
            yield word.strip("'\"`,;:().[]")


@cache
def slugs_of(document: Path) -> frozenset[str]:
    """Anchors as GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    cleaned = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return frozenset(heading.replace(" ", "-") for heading in cleaned)


def module_exists(dotted: str) -> bool:
    """Whether the module is there, or the module before a last name."""
    parts = dotted.split(".")
    for length in (len(parts), len(parts) - 1):
        place = ROOT.joinpath(*parts[:length])
        # An extension module has a stub in place of a source.
        is_file = place.with_suffix(".py").exists() or place.with_suffix(".pyi").exists()
        if is_file or (length == len(parts) and place.is_dir()):
            return True
    return False


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        if "://" in target or target.startswith("mailto:"):
            continue
        place = (document.parent / target).resolve() if target else document
        if not place.exists():
            broken.append(target)
        elif anchor and place.suffix == ".md" and anchor not in slugs_of(place):
            broken.append(f"{target}#{anchor}")

    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_file_and_module_that_is_named_exists(document: Path) -> None:
    words = [word for word in code_words(document) if not PLACEHOLDER.search(word)]
    files = {word for word in words if PATH.fullmatch(word)}
    modules = {word for word in words if MODULE.fullmatch(word)}
    modules -= {word for word in modules if word.endswith((".py", ".md", ".toml", ".sh"))}

    missing = {file for file in files if not (ROOT / file).exists()}
    missing |= {module for module in modules if not module_exists(module)}

    assert missing == set()


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[\[<>=~! ]", entry)[0] for group in groups for entry in group}
    decision = (ROOT / "docs/decisions/0009-dependencies.md").read_text(encoding="utf-8")

    reasons = set(re.findall(r"^\| `([\w-]+)` \|", decision, re.MULTILINE))

    assert reasons == names - {project["name"]}


def test_decisions_are_numbered_without_gaps_and_complete() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("*.md"))
    parts = ("**Status:**", "## Context", "## Options considered", "## Decision", "## Consequences")

    numbers = [int(path.name[:4]) for path in decisions]
    incomplete = {
        path.name: part
        for path in decisions
        for part in parts
        if part not in path.read_text(encoding="utf-8")
    }

    assert numbers == list(range(1, len(decisions) + 1))
    assert incomplete == {}


@cache
def texts_in_code() -> str:
    """Texts of the programs but docstrings, and constant parts of f-strings, one per line."""
    found = [""]
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            found += [
                " ".join(node.value.split())
                for node in nodes
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
                if id(node) not in docstrings
            ]
    return "\n".join([*found, ""])


def symptom_messages() -> list[str]:
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    rows = [line for line in text.partition("## Symptoms")[2].splitlines() if "|" in line]
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_there_are_at_least_ten_symptoms() -> None:
    assert len(symptom_messages()) >= 10


def constant_parts(message: str) -> list[list[str]]:
    """Runs of words between what varies: dots, numbers, quoted names, endpoints and flags."""
    parts: list[list[str]] = [[]]
    for word in message.split():
        if re.search(r"\.\.\.|\d|'|://|^--", word):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def is_in_code(words: list[str]) -> bool:
    """As one text, or as the end of one and the beginning of another, where a value is put in."""
    texts = texts_in_code()
    return " ".join(words) in texts or any(
        " ".join(words[:cut]) + "\n" in texts and "\n" + " ".join(words[cut:]) in texts
        for cut in range(1, len(words))
    )


@pytest.mark.parametrize("message", symptom_messages())
def test_every_message_among_the_symptoms_is_in_the_code(message: str) -> None:
    unknown = [" ".join(part) for part in constant_parts(message) if not is_in_code(part)]

    assert unknown == []


def test_no_text_tells_to_install_a_copy_over_the_checkout() -> None:
    """Without -e the checkout is no longer what is run, without -c the versions are any."""
    sources = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]

    telling = [
        named(path)
        for path in (*DOCUMENTS, *sources)
        if re.search(r"pip install ['\"]?\.\[", path.read_text(encoding="utf-8"))
    ]

    assert telling == []
