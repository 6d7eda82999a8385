"""Extensions: each kind is one file outside the package, found through an entry point, and appears everywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch

import holdfast as hf
from holdfast.interop.captum import FromCaptum
from holdfast.registry import GROUP, Registry
from toys import small_net

FILES = Path(__file__).with_name("extensions")
KINDS = {
    "attack_corner": ("robustness methods", "corner"),
    "explainer_brightness": ("explainers", "brightness"),
    "criterion_size": ("criteria", "size"),
    "estimator_constant": ("estimators", "numbers"),
    "analysis_spread": ("analyses", "spread"),
    "dataset_inverted": ("data sets", "inverted-mnist"),
    "engine_reversed": ("engines", "reversed"),
}
EXPERIMENT = """
title = "Everything from outside"
main = "Brightness"
block = 2
sizes = [0.25, 0.5]
features = "patches:14"
engine = "reversed"

[data]
use = "inverted-mnist"
count = 2

[explainers.Brightness]
use = "brightness"

[explainers.Grad]
use = "grad"

[explainers.Numbers]
use = "greedy-as"
estimator = { use = "numbers" }
search = { use = "min-norm", steps = 10 }
step = 1

[criteria."Robustness-Sr"]
use = "robustness-relevant"
robustness = { use = "corner" }

[criteria.Size]
use = "size"

[analyses.spread]
examples = 2
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which the files are installed as a package with entry points."""
    info = tmp_path / "packages" / "outside-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    points = "\n".join(f"{module} = {module}" for module in KINDS)
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
    paths = os.pathsep.join([str(FILES), str(info.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def _holdfast(installed: dict[str, str], *arguments: object, code: int = 0) -> str:
    command = [str(Path(sys.executable).with_name("holdfast")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=installed, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_one_file_is_enough_for_list_toml_command_and_report(installed: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(_holdfast(installed, "list", "--json"))
    for title, name in KINDS.values():
        assert name in [row["name"] for row in listed[title]]
    experiment, out = tmp_path / "outside.toml", tmp_path / "out"
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    _holdfast(installed, "run", experiment, "--out", out)
    _holdfast(installed, "report", out / "results.db", "-o", out / "page.html", "--markdown", out / "page.md")
    page, text = (out / "page.html").read_text(encoding="utf-8"), (out / "page.md").read_text(encoding="utf-8")
    for heading in ("Sizes", "Spread of scores", "Win, draw, loss", "Every comparison"):
        assert f"## {heading}" in text
    assert "Size against Grad" in text, "a criterion from outside is compared"
    assert "Size: higher is better" in page, "and has a curve"
    for name, about in (
        ("Brightness", "Features in the order of their value. <small>this test</small>"),
        ("Size", "How many features are called relevant, weighted by their value."),
    ):
        key = re.search(rf'id="(word-[a-z]+-[0-9]+)"><dt>[^/]*(?:/[^/]*)*? {name}</dt><dd>{re.escape(about)}', page)
        assert key, "the glossary has the extension's own words"
        assert page.count(f'href="#{key[1]}"') > 1, "tables link to them"
    picture = tmp_path / "e.png"
    told = _holdfast(installed, "explain", "--digit", 0, "--method", "brightness", "--out", picture, "--json")
    assert json.loads(told)["explanations"][0]["explainer"].startswith("Brightness(")
    assert "Corner(" in _holdfast(installed, "robustness", "--digit", 0, "--method", "corner")


def test_an_extension_that_cannot_be_loaded_is_named(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "packages" / "explainer_taken.py").write_text(
        (FILES / "explainer_brightness.py").read_text().replace('"brightness"', '"grad"')
    )
    points = tmp_path / "packages" / "outside-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"[{GROUP}]\nmine = explainer_taken\n")
    told = " ".join(_holdfast(installed, "list", code=2).split())
    assert (
        "the extension 'mine' cannot be loaded: the explainer explainer_taken.Brightness claims the name 'grad'" in told
    )
    assert "Traceback" not in told


def test_what_a_registered_class_lacks_is_one_sentence() -> None:
    with pytest.raises(hf.HoldfastError, match=r"explainer .*Nameless lacks the class attribute 'source'"):

        class Nameless(hf.Explainer):
            name: ClassVar[str] = "nameless"

    with pytest.raises(hf.HoldfastError, match=r"criterion .*Sideless lacks the class attribute 'higher_is_better'"):

        class Sideless(hf.Criterion):
            name: ClassVar[str] = "sideless"

    with pytest.raises(hf.HoldfastError, match="needs a name of lower-case words joined by hyphens, got 'My One'"):

        class Loud(hf.Explainer):
            name: ClassVar[str] = "My One"
            source: ClassVar[str] = "none"

    with pytest.raises(hf.HoldfastError, match="names a preset 'fast' that it lacks"):

        class Fast(hf.Explainer):
            name: ClassVar[str] = "fast-one"
            source: ClassVar[str] = "none"
            presets: ClassVar[tuple[str, ...]] = ("fast",)


def test_names_of_the_package_and_of_presets_are_taken() -> None:
    code = """
import holdfast as hf
for name in ("random", "judge-quick"):
    base = hf.Explainer if name == "random" else hf.Attack
    try:
        type("Mine", (base,), {"name": name, "source": "me"})
    except hf.HoldfastError as error:
        print(error)
print(len(hf.Explainer.registry.classes()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    first, second, count = done.stdout.splitlines()
    assert "Mine claims the name 'random', which holdfast.explainers.random.Random has" in first
    assert "Mine claims the name 'judge-quick', which holdfast.robustness.judge.Judge has" in second
    assert int(count) == len(hf.Explainer.registry.classes())


def test_a_class_that_needs_settings_is_listed_and_named_in_a_sentence() -> None:
    with pytest.raises(hf.HoldfastError, match="the explainer FromCaptum cannot be made without settings"):
        hf.Explainer.registry.instance(FromCaptum, hf.Explainer)  # type: ignore[type-abstract]  # only its subclasses


def test_a_class_may_be_defined_again() -> None:
    registry: Registry[object] = Registry("thing", "holdfast.criteria")
    for _ in range(2):  # as a notebook's cell is run again

        @dataclass(frozen=True)
        class Thing:
            name: ClassVar[str] = "thing"

        registry.add(Thing)
    assert registry.maker("thing") is Thing


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    with pytest.raises(hf.HoldfastError, match=r"there is no explainer 'gard': did you mean grad"):
        hf.Explainer.registry.maker("gard")


def test_gradients_of_a_model_without_them_are_refused_in_one_place() -> None:
    model = hf.FunctionModel(lambda rows: rows[:, :2], bounds=(0, 1))
    cases = model.ask(torch.rand(1, 4))
    with pytest.raises(hf.HoldfastError, match=r"needs gradients, and the FunctionModel gives only scores: use one of"):
        hf.Grad()(cases)
    with pytest.raises(hf.HoldfastError, match="DeepLift needs layers"):
        hf.DeepLift()(cases)
    subsets = torch.ones(1, 1, 4, dtype=torch.bool)
    for measure in (hf.RobustnessRest(hf.MinNorm()), hf.MinNorm()):
        with pytest.raises(hf.HoldfastError, match="needs gradients"):
            measure(cases, subsets)
    assert hf.Judge()(cases, subsets).notes[0].startswith("Judge needs gradients, and this model gives only scores")


def test_class_and_feature_names() -> None:
    model = hf.TorchModel(small_net(), classes=["cat", "dog", "cow", "hen"])
    x = torch.rand(2, 12).double()
    cases = model.ask(x, features=hf.Features.columns(12, names=[f"column {letter}" for letter in "abcdefghijkl"]))
    other = next(name for name in model.classes if name != model.class_name(int(cases.label[0])))
    assert int(model.ask(x[:1], target=other.upper()).target[0]) == model.classes.index(other)
    assert cases.features.name(2) == "column c"
    assert cases.features.number("column c") == 2
    with pytest.raises(hf.HoldfastError, match=r"there is no class 'dgo': did you mean dog"):
        model.ask(x, target="dgo")
    with pytest.raises(hf.HoldfastError, match=r"there is no feature 'column z': did you mean"):
        cases.features.number("column z")
    with pytest.raises(hf.HoldfastError, match="2 classes are named, and the model has 4"):
        hf.TorchModel(small_net(), classes=["cat", "dog"]).ask(x)
    with pytest.raises(hf.HoldfastError, match="3 names are given for 2 features"):
        hf.Features.columns(2, names=["a", "b", "c"])
