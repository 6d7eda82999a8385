"""Measure the structure of the package and the time it takes to start, and compare both with their goals.

    python benchmarks/house.py [--revision 450dae6] [--counts-only] [--check]

How it counts:

- Lines are all lines of a ``.py`` file, blank ones and comments included.
- A function has the lines from its ``def`` to its last statement, without decorators. Methods and nested functions are
  functions.
- An import is any import statement, also inside a function or under ``TYPE_CHECKING``, and ``import_module`` of a
  literal name. ``from a import b`` is an import of the module ``a.b`` if there is one, else of ``a``. That Python also
  loads the packages around a module is not counted.
- A cycle is a largest group of modules that reach one another through imports.
- A time is the median of ``REPEATS`` fresh processes after one that is not counted. What is compared takes turns.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "holdfast"
FUNCTION_LINES, FILE_LINES = 60, 350
UPPER_ROOMS, UPPER_LINES = ("experiment", "report", "cli"), 5_800
START_SECONDS, IMPORT_RATIO = 0.5, 1.2
REPEATS = 5

_COMMAND = "import sys; sys.argv = ['holdfast', {option!r}]; from holdfast.cli import main; main()"
_TORCH = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); "
_TIMED = "import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
# Before revision faad7e8 the model was called Classifier.
_NAMES = "import holdfast; getattr(holdfast, 'TorchModel', None) or holdfast.Classifier; holdfast.GreedyAS"


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        name: What is measured.
        value: The measured value.
        goal: The largest value that is good enough. None: the value is for information.
        details: What the value consists of.
    """

    name: str
    value: float
    goal: float | None = None
    details: list[str] = field(default_factory=list)

    @property
    def missed(self) -> bool:
        """Whether the value is above its goal."""
        return self.goal is not None and self.value > self.goal


def python_files(folder: Path) -> list[Path]:
    """Return the Python files in a folder and below, sorted."""
    return sorted(folder.rglob("*.py"))


def count_lines(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def long_files(folder: Path, limit: int = FILE_LINES) -> list[str]:
    """Return the files over ``limit`` lines, as ``path: lines``."""
    counts = {path: count_lines(path) for path in python_files(folder)}
    return [f"{path.relative_to(folder.parent)}: {lines}" for path, lines in counts.items() if lines > limit]


def long_functions(folder: Path, limit: int = FUNCTION_LINES) -> list[str]:
    """Return the functions over ``limit`` lines, as ``path name: lines``."""
    long = []
    for path in python_files(folder):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > limit:
                    long.append(f"{path.relative_to(folder.parent)} {node.name}: {lines}")
    return long


def modules(package: Path) -> dict[str, Path]:
    """Return the modules of a package by their full name. A folder's ``__init__.py`` has the name of the folder."""
    named = {}
    for path in python_files(package):
        parts = path.relative_to(package.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def import_graph(package: Path) -> dict[str, set[str]]:
    """Return the modules of the package that each module imports, at any place in it."""
    named = modules(package)
    graph = {}
    for module, path in named.items():
        parent = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {name for node in ast.walk(tree) for name in _imported(node, parent, named)}
        graph[module] = {name for name in imported if name in named}
    return graph


def import_cycles(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the cycles of a graph, each as its members in alphabetical order."""
    reached = {module: _reachable(graph, module) for module in graph}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
        if module in reached[module]
    }
    return sorted(", ".join(sorted(group)) for group in groups)


def _imported(node: ast.AST, parent: str, named: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules that a node of the syntax tree imports. ``parent`` is the package of its module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = parent.rsplit(".", node.level - 1)[0] if node.level else ""
        source = ".".join(part for part in (base, node.module) if part)
        for alias in node.names:
            yield f"{source}.{alias.name}" if f"{source}.{alias.name}" in named else source
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return the modules that ``start`` imports, directly or not."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph[module]
    return seen


def counts(tree: Path) -> list[Figure]:
    """Return what is counted in the files of a source tree."""
    package = tree / "src" / PACKAGE
    figures = []
    for folders in ((package,), (tree / "tests", tree / "benchmarks")):
        where = " and ".join(folder.name for folder in folders)
        functions = [line for folder in folders for line in long_functions(folder)]
        files = [line for folder in folders for line in long_files(folder)]
        figures.append(Figure(f"functions over {FUNCTION_LINES} lines in {where}", len(functions), 0, functions))
        figures.append(Figure(f"files over {FILE_LINES} lines in {where}", len(files), 0, files))
    cycles = import_cycles(import_graph(package))
    figures.append(Figure("import cycles", len(cycles), 0, cycles))
    rooms = {room: sum(count_lines(path) for path in python_files(package / room)) for room in UPPER_ROOMS}
    details = [f"{room}: {lines:,}" for room, lines in rooms.items()]
    figures.append(Figure(f"lines in {' + '.join(UPPER_ROOMS)}", sum(rooms.values()), UPPER_LINES, details))
    figures.append(Figure("lines in the package", sum(count_lines(path) for path in python_files(package))))
    return figures


def times(tree: Path) -> list[Figure]:
    """Return what is timed in fresh processes that import the package from a source tree."""
    options = ("--version", "--help")
    seconds = _medians({option: _command_timer(tree, option) for option in options})
    figures = [Figure(f"seconds of holdfast {option}", seconds[option], START_SECONDS) for option in options]
    for option in options:
        loaded = _python(tree, _TORCH + _COMMAND.format(option=option)).stderr.split()[-1] == "True"
        figures.append(Figure(f"torch is imported by holdfast {option}", int(loaded), 0))
    statements = {"import holdfast": "import holdfast", "the same, TorchModel and GreedyAS": _NAMES}
    seconds = _medians({name: _import_timer(tree, code) for name, code in {**statements, "": "import torch"}.items()})
    for name in statements:
        details = [f"{seconds[name]:.2f} s over {seconds['']:.2f} s"]
        figures.append(Figure(f"{name}, over import torch", seconds[name] / seconds[""], IMPORT_RATIO, details))
    return figures


def _medians(timers: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the median of each timer. They take turns, so that a slow minute of the machine slows all alike."""
    rounds = [{name: timer() for name, timer in timers.items()} for _ in range(REPEATS + 1)][1:]
    return {name: statistics.median(one[name] for one in rounds) for name in timers}


def _command_timer(tree: Path, option: str) -> Callable[[], float]:
    def timer() -> float:
        start = time.perf_counter()
        _python(tree, _COMMAND.format(option=option))
        return time.perf_counter() - start

    return timer


def _import_timer(tree: Path, statement: str) -> Callable[[], float]:
    return lambda: float(_python(tree, _TIMED.format(statement=statement)).stdout)


def _python(tree: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python that takes the package from a source tree."""
    variables = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env=variables, capture_output=True, text=True, check=True
    )


def _extract(revision: str, folder: Path) -> None:
    """Write the files of a git revision into a folder."""
    command = ["git", "archive", "--format=tar", revision, "src", "tests", "benchmarks"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def _print(figures: list[Figure]) -> None:
    print("| what | value | goal | met |\n|---|---|---|---|")
    for figure in figures:
        value = f"{figure.value:.2f}" if isinstance(figure.value, float) else f"{figure.value:,}"
        goal = "" if figure.goal is None else f"<= {figure.goal:,}"
        met = "" if figure.goal is None else "no" if figure.missed else "yes"
        print(f"| {figure.name} | {value} | {goal} | {met} |")
    for figure in figures:
        if figure.details:
            print(f"\n{figure.name}:\n")
            print("\n".join(f"- {line}" for line in figure.details))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", help="A git revision to measure instead of the working tree.")
    parser.add_argument("--counts-only", action="store_true", help="Do not measure times.")
    parser.add_argument("--check", action="store_true", help="Exit with 1 if a goal is missed.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) if options.revision else ROOT
        if options.revision:
            _extract(options.revision, tree)
        figures = counts(tree) + ([] if options.counts_only else times(tree))
    print(f"# {options.revision or 'working tree'}\n")
    _print(figures)
    return int(options.check and any(figure.missed for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
