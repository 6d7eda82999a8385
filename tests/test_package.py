"""The wheel: what is in it, and that it runs in an environment with nothing but what it depends on."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holdfast"

PREDICT = """
import holdfast as hf

digits, model = hf.data.mnist(), hf.data.mnist_cnn()
print(hf.__file__)
print(hf.__version__)
print(model.ask(digits.x[:1]).label.item() == digits.y[0].item())
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds the wheel and the packages it declares as dependencies."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def site(self) -> Path:
        return self.folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"

    def run(self, *command: str | Path) -> str:
        return _run(*command, cwd=self.folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("environment"))
    venv.create(made.folder, with_pip=False)
    pip = (sys.executable, "-m", "pip", "--python", made.bin / "python", "--disable-pip-version-check")
    _run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", wheel, cwd=made.folder)
    requires = _installed(made.site).requires
    _link(_dependencies(requires or ()), made.site)
    return made


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("holdfast/")}
    source = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert inside == {path.relative_to(PACKAGE.parent).as_posix() for path in source}
    assert {"holdfast/py.typed", "holdfast/__init__.pyi", "holdfast/data/files/mnist-cnn.safetensors"} <= inside


def test_the_installed_package_predicts_an_embedded_digit(environment: Environment) -> None:
    file, version, right = environment.run(environment.bin / "python", "-c", PREDICT).splitlines()
    assert Path(file) == environment.site / "holdfast" / "__init__.py"
    assert version == _installed(environment.site).version
    assert right == "True"


def test_the_installed_command_prints_its_version(environment: Environment) -> None:
    version = _installed(environment.site).version
    assert environment.run(environment.bin / "holdfast", "--version").startswith(f"holdfast {version}")


def test_the_installed_package_runs_as_a_module(environment: Environment) -> None:
    assert "greedy-as" in environment.run(environment.bin / "python", "-m", "holdfast", "list")


def _run(*command: str | Path, cwd: Path) -> str:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _installed(site: Path) -> Distribution:
    [folder] = site.glob("holdfast-*.dist-info")
    return Distribution.at(folder)


def _dependencies(requires: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed packages that the requirements name, and those that these name in turn."""
    closure: dict[str, Distribution] = {}
    waiting = [(Requirement(line), "") for line in requires]
    while waiting:
        requirement, extra = waiting.pop()
        key = f"{requirement.name.lower()}[{','.join(sorted(requirement.extras))}]"
        if key in closure or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
            continue
        closure[key] = distribution(requirement.name)
        lines = closure[key].requires or ()
        waiting += [(Requirement(line), extra) for line in lines for extra in ("", *requirement.extras)]
    return closure


def _link(packages: dict[str, Distribution], site: Path) -> None:
    """Make the packages importable from another environment."""
    for package in packages.values():
        for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(str(package.locate_file(top)))
