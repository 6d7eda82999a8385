"""An experiment on photographs from end to end, with a network of a library that knows one small one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import holdfast as hf
from holdfast.cli.app import app
from holdfast.experiment import Store, run
from holdfast.experiment.build import build
from holdfast.experiment.results import Results
from holdfast.experiment.toml import load
from holdfast.modalities.photograph import PhotographModality
from holdfast.report import figures
from holdfast.report.page import write_page

TEXT = """
title = "Four photographs"
main = "Greedy-AS"
published = "imagenet"
block = 3
sizes = [0.1, 0.3]
features = "patches:16"

[data]
use = "photographs"

[model]
use = "torchvision:tiny"

[explainers.Grad]
use = "grad"

[explainers.Random]
use = "random"

[explainers.Greedy-AS]
use = "greedy-as-quick"

[criteria."Robustness-S̄r"]
use = "robustness-rest"
robustness = { use = "min-norm", steps = 20 }

[criteria.Insertion]
use = "insertion"
draws = 2

[analyses.sanity]
examples = 2

[gallery]
examples = 2
targets = 1
judge = { use = "min-norm", steps = 20 }
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "photos.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_photographs_from_a_folder_to_a_page(
    tiny_zoo: list[str], experiment: Path, photo_folder: Path, tmp_path: Path
) -> None:
    made = build(load(str(experiment)), "photos", tmp_path, choices={"data": str(photo_folder)})
    assert made.examples == ("n0/0.png", "n1/1.png", "n0/2.png", "n1/3.png"), "going round the classes"
    assert made.cases.x.shape == (4, 3, 64, 64), "as the network wants it"
    assert isinstance(made.cases.model, hf.TorchModel)
    assert made.cases.model.execution.fold, "at a pace that pays"
    with Store.open(tmp_path / "results.db") as store:
        summary = run(made, store)
    assert (summary.missing, summary.failed) == (0, {})
    results = Results(tmp_path / "results.db")
    assert results.study.modality == "photograph"
    explanations = results.explanations()[0]
    assert explanations["Grad"].moves is None, "the changes of the main method alone are kept"
    main = explanations["Greedy-AS"]
    assert main.moves is not None
    assert all(0 < one <= 1 for one in (main.probability, *main.new_probability))
    # Heat is the place of each patch: the top ones are the warmest, and all of a patch the same.
    warm = np.broadcast_to(main.heat.numpy(), (1, 64, 64))[0]
    chosen = np.broadcast_to(main.relevant_mask.numpy(), (1, 64, 64))[0]
    assert float(warm[chosen].min()) > float(warm[~chosen].max())
    assert float(warm.max()) == 1
    assert len(np.unique(warm[:16, :16])) == 1
    shown = PhotographModality().shown(main, "Greedy-AS").details
    assert [words.split(",")[0] for _, words in shown] == ["the order of all features", *["the smallest change"] * 2]
    others = PhotographModality().shown(explanations["Grad"], "Grad").details
    assert [words for _, words in others] == ["the order of all features"]
    tables = write_page(results, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg") >= 2 * (1 + 3 + 3)
    assert "with a line around them" in page
    assert "pertinent" not in page
    cost = next(table for table in tables if table.key == "runtime")
    assert cost.columns[2] == "paper"
    figures.draw_gallery(results, tmp_path / "all.png")
    with Image.open(tmp_path / "all.png") as drawn:
        assert drawn.width > drawn.height > 300


def test_superpixels_and_pixels_of_photographs(
    tiny_zoo: list[str], photo_folder: Path, experiment: Path, tmp_path: Path
) -> None:
    for features in ("superpixels:20", "pixels"):
        experiment.write_text(TEXT.replace("patches:16", features))
        short = build(load(str(experiment)), "photos", tmp_path, choices={"data": str(photo_folder)}, limit=2)
        with Store.open(tmp_path / f"{features}.db") as store:
            summary = run(short, store)
        assert (summary.missing, summary.failed) == (0, {})
        assert short.cases.features.kind.startswith(features.partition(":")[0])


def test_patches_are_the_features_of_photographs_by_default(
    tiny_zoo: list[str], photo_folder: Path, experiment: Path, tmp_path: Path
) -> None:
    experiment.write_text(TEXT.replace('features = "patches:16"\n', ""))
    made = build(load(str(experiment)), "photos", tmp_path, choices={"data": str(photo_folder)}, limit=1)
    assert made.cases.features.count == 16
    assert made.cases.features.kind.startswith("patches")


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        (
            {"network": "resnet50"},
            "model.use should be efficientnet-lite0, torchvision:NAME or timm:NAME for photographs, got 'resnet50'",
        ),
        ({"network": "torchvision"}, "expected the network torchvision:NAME, got torchvision"),
        ({"network": "torchvision:huge"}, "torchvision has no network 'huge'"),
        ({"network": "mnist-cnn"}, "model.use should be efficientnet-lite0, torchvision:NAME or timm:NAME"),
        ({"network": "efficientnet-lite0", "weights": "mine.pth"}, 'should be "embedded" for efficientnet-lite0'),
        ({"weights": "train"}, "the library's own"),
        ({"weights": "none.safetensors"}, "cannot read weights from none.safetensors"),
        ({"data": "nowhere"}, "there is no folder nowhere"),
    ],
)
def test_wrong_choices_are_one_sentence(
    tiny_zoo: list[str], experiment: Path, photo_folder: Path, tmp_path: Path, choices: dict[str, str], told: str
) -> None:
    with pytest.raises(hf.HoldfastError, match=told):
        build(load(str(experiment)), "photos", tmp_path, choices={"data": str(photo_folder)} | choices)


def test_digits_are_not_for_networks_of_photographs(tiny_zoo: list[str], tmp_path: Path) -> None:
    with pytest.raises(hf.HoldfastError, match="should be mnist-cnn for mnist"):
        build(load("paper-mnist-quick"), "x", tmp_path, choices={"network": "torchvision:tiny"})


def test_more_photographs_than_there_are_is_all_of_them(
    tiny_zoo: list[str], experiment: Path, photo_folder: Path, tmp_path: Path
) -> None:
    assert len(build(load(str(experiment)), "x", tmp_path, choices={"data": str(photo_folder)}).cases) == 4
    experiment.write_text(TEXT.replace("[model]", "first = 4\n[model]"))
    with pytest.raises(hf.HoldfastError, match="more than the 4 examples there are"):
        build(load(str(experiment)), "x", tmp_path, choices={"data": str(photo_folder)})


def test_the_named_experiment_plans_offline() -> None:
    answer = CliRunner().invoke(app, ["run", "paper-imagenet", "--dry-run", "--limit", "2", "--json"])
    assert answer.exit_code == 0, answer.output
    assert '"cases": 2' in answer.output


def test_one_photograph_on_the_command_line(tiny_zoo: list[str], photo_folder: Path, tmp_path: Path) -> None:
    photo, out = photo_folder / "n0" / "0.png", tmp_path / "why.png"
    arguments = ["explain", str(photo), "--model", "timm:tiny", "--features", "patches:16", "--out", str(out)]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    assert "patches of 16 x 16" in answer.output
    with Image.open(out) as drawn:
        alone = drawn.height
    label = next(word for word in answer.output.split("why ")[1].split("?")[:1])
    other = "1" if label != "1" else "2"
    answer = CliRunner().invoke(app, [*arguments, "--target", other])
    assert answer.exit_code == 0, answer.output
    assert f"why {label} and not {other}?" in answer.output
    with Image.open(out) as drawn:
        assert drawn.height > 1.5 * alone, "the pair: why this class, and why not that one"
    answer = CliRunner().invoke(app, ["robustness", str(photo), "--model", "timm:tiny", "--subset", "rest:20%"])
    assert answer.exit_code == 0, answer.output


def test_a_mask_is_cut_as_its_photograph_is(tiny_zoo: list[str], photo_folder: Path, tmp_path: Path) -> None:
    photo = photo_folder / "n0" / "0.png"  # 100 x 80, of which the middle 64 x 64 are seen
    mask = np.zeros((80, 100), dtype=np.uint8)
    mask[8:24, 18:34] = 255  # the first patch of what is seen
    Image.fromarray(mask).save(tmp_path / "mask.png")
    arguments = ["robustness", str(photo), "--model", "timm:tiny", "--features", "patches:16"]
    answer = CliRunner().invoke(app, [*arguments, "--mask", str(tmp_path / "mask.png")])
    assert answer.exit_code == 0, answer.output
    assert "1 of 16 patches" in answer.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["explain", "x.png", "--model", "resnet50"], "must be digits, imagenet, torchvision:NAME or timm:NAME"),
        (["explain", "nowhere.jpg", "--model", "timm:tiny"], "cannot read the image nowhere.jpg"),
        (["explain", "--photo", "0", "--digit", "1"], "name only one of"),
        (["explain", "--photo", "0", "--model", "digits"], "--photo is for --model imagenet"),
        (["explain", "--digit", "0", "--model", "imagenet"], "--digit is for the digit network"),
        (["explain", "--photo", "999"], "--photo must be between 0 and"),
        (["explain", "--digit", "0", "--target", "--5"], "there is no class"),
    ],
)
def test_wrong_questions_about_photographs_are_one_sentence(
    tiny_zoo: list[str], arguments: list[str], told: str
) -> None:
    answer = CliRunner().invoke(app, arguments)
    assert isinstance(answer.exception, hf.HoldfastError)
    assert told in str(answer.exception)


def test_a_name_that_two_classes_share_asks_for_the_number() -> None:
    model = hf.TorchModel(torch.nn.Linear(2, 3).eval(), (0, 1), classes=("crane", "cat", "crane"))
    assert int(model.ask(torch.rand(1, 2), label="Cat").label) == 1
    with pytest.raises(hf.HoldfastError, match="2 classes are called 'crane': use a number, 0 or 2"):
        model.ask(torch.rand(1, 2), label="crane")
    with pytest.raises(hf.HoldfastError, match=r"there is no class 'ran'.*id you mean crane"):
        model.ask(torch.rand(1, 2), label="ran")


def test_a_figure_of_no_photographs_is_refused_before_anything_is_written(small_results: Path, tmp_path: Path) -> None:
    arguments = ["report", str(small_results), "-o", str(tmp_path / "page.html"), "--figure", str(tmp_path / "x.png")]
    answer = CliRunner().invoke(app, arguments)
    assert "holds no photographs" in str(answer.exception)
    assert not (tmp_path / "page.html").exists()
