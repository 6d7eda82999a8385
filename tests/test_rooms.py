"""The house plan: imports go one way, and the facade is for users."""

from __future__ import annotations

import ast
from pathlib import Path

import holdfast

ROOT = Path(holdfast.__file__).parent

# Each room may import from rooms above it. A model makes cases, so cases come before the model they carry along.
ORDER = [
    "version",
    "errors",
    "chunks",
    "features",
    "cases",
    "pace",
    "scores",
    "model",
    "reference",
    "ranking",
    "robustness",
    "criteria",
    "explainers",
    "curve",
    "analyses",
    "text",
    "data",
    "experiment",
    "report",
    "interop",
    "cli",
]


def _imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    guarded = {
        id(line)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in node.body
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "holdfast":
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.split(".")[0] == "holdfast"]
    return found


def _rooms() -> dict[Path, str]:
    return {
        path: path.relative_to(ROOT).parts[0].removesuffix(".py")
        for path in ROOT.rglob("*.py")
        if path != ROOT / "__init__.py"
    }


def test_every_room_is_on_the_plan() -> None:
    assert set(_rooms().values()) == set(ORDER)


def test_imports_only_look_back() -> None:
    wrong = []
    for path, room in _rooms().items():
        for module in _imports(path):
            parts = module.split(".")
            if len(parts) == 1:
                wrong.append(f"{path.name} imports the facade")
            elif ORDER.index(parts[1]) > ORDER.index(room):
                wrong.append(f"{room} imports {module}")
    assert wrong == []
