from __future__ import annotations

from pathlib import Path

import pytest

import holdfast as hf
from holdfast.experiment.build import build
from holdfast.experiment.toml import load, named
from studies import SMALL, checksums_of

BAD = {
    # key, what stands there, what is said
    'use = "mnist"': (
        'use = "mist"',
        "data.name should be 'mnist', 'fashion-mnist', 'photographs', 'texts' or 'eraser-movies', got 'mist'",
    ),
    "count = 3": ("count = 0", "data.count should be greater than or equal to 1, got 0"),
    "first = 10": ("frist = 10", "data.frist is not a setting: use one of name, root, first, count"),
    'use = "grad"': ('use = "gard"', "explainers.Grad.use should be one of greedy-as, .*, got 'gard'"),
    'use = "random"': ('use = "random"\nsead = 1', "explainers.Random.sead is not a setting of random: use seed"),
    "step = 0.2": ("step = -0.2", "explainers.Greedy-AS: step must be a share over 0"),
    'group = "ablation"\nsamples = 2': (
        'group = "ablation"\nsamples = 2.5',
        "explainers.One-Step Banzhaf.samples should be a valid integer, got 2.5",
    ),
    'group = "ablation"': (
        'group = "other"',
        "explainers.One-Step Banzhaf.group should be 'table', 'ablation' or 'probe'",
    ),
    'score = "margin"': (
        'score = "gap"',
        "criteria.Insertion, margin.score should be 'logit', 'probability' or 'margin'",
    ),
    'use = "robustness-rest"\nrobustness = { use = "min-norm", steps = 12 }': (
        'use = "robustness-rest"\nrobustness = { use = "minorm" }',
        "criteria.Robustness-S̄r.robustness.use should be one of judge, .*, got 'minorm'",
    ),
    'use = "robustness-relevant"\nrobustness = { use = "min-norm", steps = 12 }': (
        'use = "robustness-relevant"\nrobustness = "min-norm"',
        "criteria.Robustness-Sr.robustness should be a table such as { use = \"…\" }, got 'minnorm'",
    ),
    'main = "Greedy-AS"': ('main = "Greedy"', "main should be one of Grad, Random, .*, got 'Greedy'"),
    'methods = ["Grad", "Random"]': (
        'methods = ["Grat"]',
        "analyses.sensitivity.methods should be of Grad, .*, got 'Grat'",
    ),
    "seeds = 2": ("seeds = 1", "analyses.diagnostics.seeds should be greater than or equal to 2, got 1"),
    'criteria = ["Insertion", "Insertion, margin"]': (
        'criteria = ["In"]',
        "digits.criteria should be of Robust.*, got 'In'",
    ),
    "references = { first = 200, count = 5 }": ("references = 3", r"references should be \{ first = N, count = N \}"),
    'title = "A small experiment"': ("title = ", "is not TOML"),
    "[analyses.references]": (
        "[analyses.refrences]",
        "analyses.refrences is not a setting: use one of references, sanity",
    ),
    "sizes = [0.1, 0.3]": ("sizes = [0.1, 30]", "sizes.1 should be less than 1, got 30"),
    "sizes = [0.1, 0.3]\n": ("sizes = [0.3, 0.1]\n", "sizes should be shares of the features that rise"),
    "sizes = [0.1, 0.3]\n\n": ("sizes = [0.1]\n\n", "sizes should be Value should have at least 2 items"),
    "count = 5 }": ('count = "five" }', r"references should be \{ first = N, count = N \}"),
    'values = ["uniform", 0, 1]': ('values = ["uniform", 0, 0]', "'Insertion, reference 0' is named twice"),
    'values = ["uniform", 0, 1]\n': ("values = [nan]\n", r"analyses.references.values.0 should be a finite number"),
    'values = ["uniform", 0, 1]\ndraws': ('values = ["red"]\ndraws', r"analyses.references.values.0 should be"),
    'of = "Grad"': ('of = "Gred"', "explainers.EG, other digits.of should be one of Grad, .*, got 'Gred'"),
    "samples = 2\n\n[analyses.diag": ("radius = inf\n\n[analyses.diag", "sensitivity.radius should be a finite number"),
    "[features]": ("[feature]", "feature is not a setting: use one of title, main, data"),
}


@pytest.mark.parametrize("key", BAD)
def test_a_bad_key_is_named_with_what_may_stand_there(key: str, tmp_path: Path) -> None:
    there, said = BAD[key]
    text = SMALL.read_text(encoding="utf-8")
    assert text.count(key) == 1
    path = tmp_path / "bad.toml"
    path.write_text(text.replace(key, there), encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match=said):
        load(str(path))


def test_experiments_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        hf.HoldfastError,
        match="there is no experiment 'papper': use one of paper-fashion, paper-imagenet, paper-mnist, ",
    ):
        load("papper")
    with pytest.raises(hf.HoldfastError, match="cannot read the experiment"):
        load(str(tmp_path / "none.toml"))


def test_the_named_ones_are_the_papers() -> None:
    texts = ["paper-text", "paper-text-quick", "people-movies", "people-movies-quick"]
    assert named() == ["paper-fashion", "paper-imagenet", "paper-mnist", "paper-mnist-quick", *texts]
    full = load("paper-mnist")
    table = [name for name, piece in full.explainers.items() if piece.group == "table"]
    assert table == ["Grad", "IG", "EG", "SHAP", "LOO", "BBMP", "CFX", "Random", "Greedy-AS"]
    made = build(full, "paper-mnist", Path("nowhere"), limit=1)
    assert made.sizes == tuple(percent / 100 for percent in range(5, 50, 5))
    by_name = {method.name: method for method in made.methods}
    assert by_name["SHAP"].explainers["both"] == hf.KernelShap.paper()
    assert by_name["Greedy-AS"].explainers["rest"] == hf.GreedyAS()
    fitted = by_name["Greedy-AS, paper's regression"].explainers["rest"]
    assert isinstance(fitted, hf.GreedyAS)
    assert (fitted.estimator, fitted.samples, fitted.step) == (
        hf.GreedyAS.paper().estimator,
        hf.GreedyAS.paper().samples,
        hf.GreedyAS.paper().step,
    )
    assert made.measures[0].criterion == hf.RobustnessRest(hf.Judge())


def test_more_examples_than_there_are(tmp_path: Path) -> None:
    path = tmp_path / "far.toml"
    path.write_text(SMALL.read_text(encoding="utf-8").replace("first = 10", "first = 999"), encoding="utf-8")
    with pytest.raises(hf.HoldfastError, match="ask for more than the 1000 examples there are"):
        build(load(str(path)), "far", tmp_path)


def test_fashion_needs_its_files_and_trains_its_network(
    tmp_path: Path, idx_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load("paper-fashion")
    with pytest.raises(hf.HoldfastError, match=r"Fashion-MNIST is not embedded: name the folder .* --data FOLDER"):
        build(settings, "paper-fashion", tmp_path)
    monkeypatch.setattr("holdfast.data.digits._FASHION_CHECKSUM", checksums_of(idx_folder))
    with pytest.raises(hf.HoldfastError, match="references asks for more than the 300 examples there are"):
        build(settings, "paper-fashion", tmp_path, choices={"data": str(idx_folder)})
    kept = {name: table for name, table in settings.explainers.items() if table.group != "probe"}
    network = settings.model.model_copy(update={"epochs": 1})
    short = settings.model_copy(update={"model": network, "explainers": kept})
    seen: list[int] = []

    def count(done: int, total: int) -> None:
        seen.append(done)

    planned = build(short, "paper-fashion", tmp_path / "plan", choices={"data": str(idx_folder)}, limit=2, train=False)
    assert not (tmp_path / "plan").exists(), "a plan trains nothing"
    made = build(short, "paper-fashion", tmp_path, choices={"data": str(idx_folder)}, limit=2, progress=count)
    assert len(plan_of(made).jobs) == len(plan_of(planned).jobs)
    assert made.about["accuracy of the network"].endswith("% of 300 test images")
    assert made.classes[9] == "ankle boot"
    assert seen == [1]
    again = build(short, "paper-fashion", tmp_path, choices={"data": str(idx_folder)}, limit=2, progress=count)
    assert seen == [1], "the trained network is kept"
    assert set(plan_of(again).jobs) == set(plan_of(made).jobs)


def test_a_network_that_cannot_be_kept_is_one_sentence(
    tmp_path: Path, idx_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.data.digits._FASHION_CHECKSUM", checksums_of(idx_folder))
    (tmp_path / "file").touch()
    settings = load("paper-fashion")
    kept = {name: table for name, table in settings.explainers.items() if table.group != "probe"}
    with pytest.raises(hf.HoldfastError, match="cannot keep the trained network"):
        build(
            settings.model_copy(update={"explainers": kept}),
            "x",
            tmp_path / "file" / "x",
            choices={"data": str(idx_folder)},
            limit=1,
        )


def test_digits_are_not_taken_for_clothes(idx_folder: Path) -> None:
    with pytest.warns(hf.HoldfastWarning, match="is not the known file of that name"):
        hf.data.fashion_mnist(idx_folder)
