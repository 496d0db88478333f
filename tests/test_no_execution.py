"""Nothing in the packages runs what it reads: no pickle in any disguise, no eval, no torch.load.

One command reads weights of an earlier trainer, and only with `weights_only=True`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("actor", "common", "launch", "learner", "replay_server")
PICKLES = frozenset({"pickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"})
FORBIDDEN_MODULES = PICKLES | {"yaml", "multiprocessing"}
"""multiprocessing pickles what it hands over; yaml.load builds any object."""
COMMAND_STARTER = "torch.distributed.elastic.multiprocessing"
"""Not that module: it starts commands for launch/ranks.py. Functions it would pickle."""
FORBIDDEN_BUILTINS = frozenset({"eval", "exec", "compile", "__import__"})
FORBIDDEN_METHODS = frozenset({"recv_pyobj", "send_pyobj", "recv_serialized", "unsafe_load"})
FORBIDDEN_FUNCTIONS = frozenset(
    {"torch.load", "torch.save", "torch.jit.load", "torch.hub.load", "torch.package"}
)
PLAIN_LOADERS = frozenset({"launch/backfill_global_step.py"})
"""May read weights of the trainer before this one, with `weights_only=True`: SECURITY.md."""
ARRAY_READERS = frozenset({"numpy.load", "numpy.lib.npyio.NpzFile"})


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What each name of a file stands for, with its module."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                shown = alias.asname or alias.name.partition(".")[0]
                names[shown] = alias.name if alias.asname else shown
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.AST, names: dict[str, str]) -> str:
    """`np.load` as `numpy.load`; empty for what is no plain chain of names."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = full_name(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def violations(text: str, *, may_load_weights: bool = False) -> list[str]:
    tree = ast.parse(text)
    names = imported_names(tree)
    modules = [name.removeprefix(COMMAND_STARTER) for name in names.values()]
    found = [name for name in modules if set(name.split(".")) & FORBIDDEN_MODULES]
    allowed = _plain_loads(tree, names) if may_load_weights else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            found += [] if node in allowed else _forbidden_mentions(node, names)
        if isinstance(node, ast.Call):
            found += _forbidden_calls(node, names)
    return found


def _plain_loads(tree: ast.AST, names: dict[str, str]) -> set[ast.AST]:
    """The functions of calls of `torch.load` that say `weights_only=True` in so many words."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and full_name(node.func, names) == "torch.load":
            words = {word.arg: word.value for word in node.keywords}
            flag = words.get("weights_only")
            is_plain = isinstance(flag, ast.Constant) and flag.value is True
            found |= {node.func} if is_plain and None not in words else set()
    return found


def _forbidden_mentions(node: ast.Name | ast.Attribute, names: dict[str, str]) -> list[str]:
    """Also without a call: a function may be passed on."""
    name = full_name(node, names)
    method = node.attr if isinstance(node, ast.Attribute) else ""
    is_builtin = isinstance(node, ast.Name) and name in FORBIDDEN_BUILTINS
    is_wrong = is_builtin or name in FORBIDDEN_FUNCTIONS or method in FORBIDDEN_METHODS
    return [name or method] if is_wrong else []


def _forbidden_calls(node: ast.Call, names: dict[str, str]) -> list[str]:
    name = full_name(node.func, names)
    if name in ARRAY_READERS:
        words = {word.arg: word.value for word in node.keywords}
        flag = words.get("allow_pickle")
        is_off = flag is None or (isinstance(flag, ast.Constant) and flag.value is False)
        return [] if is_off and None not in words else [name]
    if name in ("importlib.import_module", "builtins.__import__") and node.args:
        word = node.args[0]
        text = word.value if isinstance(word, ast.Constant) else ""
        return [name] if str(text).partition(".")[0] in FORBIDDEN_MODULES else []
    return []


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_runs_what_it_reads(path: Path) -> None:
    may_load = str(path.relative_to(ROOT)) in PLAIN_LOADERS

    assert violations(path.read_text(encoding="utf-8"), may_load_weights=may_load) == []


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("import torch\ntorch.load(path, weights_only=True)", True),
        ("import torch\ntorch.load(path)", False),
        ("import torch\ntorch.load(path, weights_only=False)", False),
        ("import torch\ntorch.load(path, weights_only=flag)", False),
        ("import torch\ntorch.load(path, weights_only=True, **words)", False),
        ("import torch\nread = torch.load", False),
        ("import torch\ntorch.jit.load(path, weights_only=True)", False),
    ],
)
def test_who_may_load_weights_may_load_nothing_else(text: str, is_plain: bool) -> None:
    assert (violations(text, may_load_weights=True) == []) is is_plain


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "from torch import multiprocessing",
        "import multiprocessing.pool",
        "import yaml",
        "from joblib import load",
        "def f():\n    import marshal",
        "import importlib\nimportlib.import_module('dill')",
        "eval('1')",
        "map(exec, words)",
        "__import__(name)",
        "socket.recv_pyobj()",
        "context.socket(1).send_pyobj(x)",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=True)",
        "import torch as t\nt.save(x, path)",
        "from torch import load\nload(path)",
        "from torch import load as read\nread(path)",
        "import torch.jit\ntorch.jit.load(path)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import numpy as np\nnp.load(path, allow_pickle=flag)",
        "import numpy as np\nnp.load(path, **words)",
        "from numpy import load\nload(path, allow_pickle=True)",
    ],
)
def test_every_disguise_is_seen(text: str) -> None:
    assert violations(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "import json\njson.load(file)",
        "import numpy as np\nnp.load(path)",
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "import re\nre.compile('x')",
        "network.eval()",
        "from safetensors.torch import load\nload(content)",
        "import torch\ntorch.compile(network)",
    ],
)
def test_what_only_looks_alike_is_let_through(text: str) -> None:
    assert violations(text) == []
