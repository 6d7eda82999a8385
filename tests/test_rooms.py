"""The plan of the package: imports go one way, files and functions are short, and the facade is for users."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from house import FILE_LINES, FUNCTION_LINES, import_cycles, import_graph, long_files, long_functions

PACKAGE = Path(holdfast.__file__).parent
GRAPH = import_graph(PACKAGE)
FOLDERS = [PACKAGE, Path(__file__).parent, Path(__file__).parents[1] / "benchmarks"]

# A room may import from the rooms above it. A model makes cases, and cases carry a model: so the Model itself comes
# first, then cases, then the kinds of models.
ORDER = [
    "version",
    "errors",
    "files",
    "clock",
    "draws",
    "prose",
    "palette",
    "figures",
    "registry",
    "settings",
    "tensors",
    "chunks",
    "progress",
    "kernels",
    "sizes",
    "feature_shapes",
    "features",
    "domain",
    "columns",
    "models.model",
    "cases",
    "tree_ensembles",
    "models",
    "ranking",
    "reference",
    "robustness",
    "criteria",
    "explainers",
    "curve",
    "text",
    "as_model",
    "model_files",
    "table",
    "published",
    "templates",
    "analyses",
    "evaluation",
    "baselines",
    "ranked_feature",
    "explanation",
    "explaining",
    "data",
    "modalities",
    "inputs",
    "entry",
    "experiment",
    "report",
    "interop",
    "testing",
    "cli",
    "__main__",
]


def _room(module: str) -> str:
    """Return the room of a module: the longest beginning of its name that is on the plan, or its first part."""
    parts = module.split(".")[1:]
    beginnings = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in beginnings if name in ORDER), parts[0])


def test_the_plan_lists_every_room_and_no_other() -> None:
    rooms = {_room(module) for module in GRAPH if module != "holdfast"}
    assert rooms == set(ORDER)


def test_rooms_import_only_from_rooms_above_them() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, imported in GRAPH.items()
        for other in imported - {"holdfast"}
        if module != "holdfast" and ORDER.index(_room(other)) > ORDER.index(_room(module))
    ]
    assert wrong == []


def test_modules_import_one_another_in_no_cycle() -> None:
    assert import_cycles(GRAPH) == []


def test_no_module_imports_the_facade() -> None:
    assert [module for module, imported in GRAPH.items() if "holdfast" in imported] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_files_and_functions_are_short(folder: Path) -> None:
    assert long_files(folder, FILE_LINES) + long_functions(folder, FUNCTION_LINES) == []


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    package = tmp_path / "toy"
    (package / "inner").mkdir(parents=True)
    sources = {
        "__init__.py": "",
        "a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from toy.b import B",
        "b.py": "def make():\n    from . import c",
        "c.py": "from importlib import import_module\nmodule = import_module('toy.a')",
        "d.py": "from toy.inner import e, name",
        "inner/__init__.py": "from toy.inner.e import name",
        "inner/e.py": "import os\nfrom ..a import A",
    }
    for name, source in sources.items():
        (package / name).write_text(source)
    graph = import_graph(package)
    assert graph["toy.a"] == {"toy.b"}
    assert graph["toy.d"] == {"toy.inner", "toy.inner.e"}
    assert graph["toy.inner.e"] == {"toy.a"}
    assert import_cycles(graph) == ["toy.a, toy.b, toy.c"]


def test_a_function_is_counted_without_its_decorators(tmp_path: Path) -> None:
    body = "\n".join(["    x = 1"] * 4)
    (tmp_path / "one.py").write_text(f"@cache\n@other(\n  1\n)\ndef long():\n{body}\n")
    assert long_functions(tmp_path, 4) == [f"{tmp_path.name}/one.py long: 5"]
    assert long_functions(tmp_path, 5) == []
    assert long_files(tmp_path, 8) == [f"{tmp_path.name}/one.py: 9"]
    assert long_files(tmp_path, 9) == []
