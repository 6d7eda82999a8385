from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.data.digit_experiments import MnistCnn
from holdfast.experiment import plan_of
from holdfast.experiment.build import build
from holdfast.experiment.toml import load, named
from studies import SMALL, checksums_of

# What stands in the file, what is written in its place, and what is said.
STRUCTURE = [
    (
        'group = "ablation"',
        'group = "other"',
        "explainers.One-Step Banzhaf.group should be 'table', 'ablation' or 'probe'",
    ),
    ('title = "A small experiment"', "title = ", "Invalid value"),
    ("sizes = [0.1, 0.3]", "sizes = [0.1, 30]", "sizes.1 should be less than 1, got 30"),
    (
        "sizes = [0.1, 0.3]",
        "sizes = [0.3, 0.1]",
        "sizes should be rising shares of the features, or rising numbers of them",
    ),
    ("sizes = [0.1, 0.3]", "sizes = [0.1]", "sizes should have at least 2 values, got \\[0.1\\]"),
    ('features = "patches:7"', 'feature = "patches:7"', "feature is not a setting: use one of title, main, data"),
    ('[explainers.Grad]\nuse = "grad"', "[explainers.Grad]", "explainers.Grad.use is missing"),
    (
        'samples = 2\n\n[explainers."One',
        'search = 3\n\n[explainers."One',
        "Greedy-AS.search should be a name or a table such as { use",
    ),
    ("block = 2", "block = 0", "block should be greater than or equal to 1, got 0"),
]
VALUES = [
    (
        'use = "mnist"',
        'use = "mist"',
        "data.use: there is no data set 'mist'.* mnist.*eraser-movies, fashion-mnist, mnist, photo",
    ),
    ("count = 3", "count = 0", "data: MnistData.count must be a whole number >= 1, got 0"),
    ("count = 3", 'count = "3"', "data.count should be a valid integer, got '3'"),
    ("first = 10", "frist = 10", "data.frist is not a setting of mnist: use root, first, count"),
    (
        'use = "grad"',
        'use = "gard"',
        "explainers.Grad.use: there is no explainer 'gard'.* grad .*anchor, bbmp, .*, random",
    ),
    ('use = "random"', 'use = "random"\nsead = 1', "explainers.Random.sead is not a setting of random: use seed"),
    ("step = 0.2", "step = -0.2", "explainers.Greedy-AS: GreedyAS.step must be a share over 0"),
    (
        "step = 0.2",
        "objective = 3",
        "Greedy-AS.objective is not a setting of greedy-as-quick: use budget, step, samples",
    ),
    (
        'use = "grad"',
        'use = "grad"\nsearch = "pgd"',
        "explainers.Grad.search is not a setting: grad searches for nothing",
    ),
    (
        '"ablation"\nsamples = 2',
        '"ablation"\nsamples = 2.5',
        "One-Step Banzhaf.samples should be a valid integer, got 2.5",
    ),
    (
        'score = "margin"',
        'score = "gap"',
        "Insertion, margin.score should be 'logit', 'probability' or 'margin', got 'gap'",
    ),
    (
        'use = "robustness-rest"\nrobustness = { use = "min-norm", steps = 12 }',
        'use = "robustness-rest"\nrobustness = { use = "minorm" }',
        "criteria.Robustness-S̄r.robustness.use: there is no robustness method 'minorm'.* min-norm.*judge, judge-quick",
    ),
    (
        'use = "robustness-relevant"\nrobustness = { use = "min-norm", steps = 12 }',
        'use = "robustness-relevant"\nrobustness = 7',
        'criteria.Robustness-Sr.robustness should be a name or a table such as { use = "…" }, got 7',
    ),
    ('main = "Greedy-AS"', 'main = "Greedy"', "main should be one of Grad, Random, Greedy-AS, got 'Greedy'"),
    ('main = "Greedy-AS"', 'main = "One-Step Banzhaf"', "main should be one of Grad, Random, Greedy-AS, got 'One-Step"),
    (
        'methods = ["Grad", "Random"]',
        'methods = ["Grat"]',
        "analyses.sensitivity.methods should be of Grad, .*, got 'Grat'",
    ),
    ('methods = ["Grad", "Random"]', 'methods = "Grad"', "analyses.sensitivity.methods should be a list.*, got 'Grad'"),
    ("seeds = 2", "seeds = 1", "analyses.diagnostics: DiagnosticsAnalysis.seeds must be a whole number >= 2, got 1"),
    (
        "examples = 2\ncascade",
        "examples = 0\ncascade",
        "SanityAnalysis.examples must be a whole number >= 1, got 0",
    ),
    (
        "radius = 0.1",
        "radius = inf",
        "SensitivityAnalysis.radius must be a finite number > 0, got inf",
    ),
    ('["Insertion", "Insertion, margin"]', '["In"]', "digits.criteria should be of Robust.*, got 'In'"),
    ('of = "Grad"', 'of = "Gred"', "explainers.EG, other digits.of should be one of Grad, .*, got 'Gred'"),
    ("{ first = 200, count = 5 }", "3", r"digits.references should be \{ first = N, count = N \}, .*, got 3"),
    ("count = 5 }", 'count = "five" }', r"references should be \{ first = N, count = N \}"),
    ("count = 5 }", "count = 5, by = 2 }", r"references should be \{ first = N, count = N \}"),
    ("count = 5 }", "count = 5000 }", "EG, other digits.references asks for more than the 1000 examples there are"),
    (
        "[analyses.references]",
        "[analyses.refrences]",
        "analyses: there is no analysis 'refrences'.* references.*sanity, sens",
    ),
    ("[analyses.references]", "[analyses.runtime]", "there is no analysis 'runtime'"),
    ("[gallery]", "[analyses.substitution]\n[gallery]", "analyses.substitution is about words: leave it out"),
    ('["uniform", 0, 1]', '["uniform", 0, 0]', "'Insertion, reference 0' is named twice"),
    (
        '["uniform", 0, 1]',
        "[nan]",
        "analyses.references.values.0 should be a finite number or 'blur', 'mean' or 'uniform'",
    ),
    ('["uniform", 0, 1]', '["red"]', "analyses.references.values.0 should be a valid number or 'blur', .*, got 'red'"),
    ('["uniform", 0, 1]', '["words"]', 'analyses.references.values.0 should not be "words" for mnist: it has none'),
    ('["uniform", 0, 1]', "3", "analyses.references.values should be a list, got 3"),
    ("patches:7", "patches:x", "features must be pixels, patches:N or superpixels:N, got 'patches:x'"),
    ("patches:7", "words", "features must be pixels, patches:N or superpixels:N, got 'words'"),
    ("targets = 1", "targets = -1", "gallery: Gallery.targets must be a whole number >= 0, got -1"),
    ("targets = 1", "top = 1.5", "gallery: Gallery.top must be a share over 0 and at most 1"),
    ("targets = 1", "tops = 1", "gallery.tops is not a setting of the gallery: use examples, top, targets, judge"),
    ("block = 2", 'block = 2\nengine = "rai"', "engine: there is no engine 'rai'.* ray.*local, ray"),
    ("[gallery]", '[model]\nuse = "mnist-cn"\n[gallery]', "model.use should be mnist-cnn for mnist, got 'mnist-cn'"),
    (
        "[gallery]",
        '[model]\nuse = "mnist-cnn"\nepochs = 0\n[gallery]',
        "MnistCnn.epochs must be a whole .* >= 1, got 0",
    ),
]


def _changed(folder: Path, there: str, other: str) -> str:
    text = SMALL.read_text(encoding="utf-8")
    assert text.count(there) == 1
    path = folder / "bad.toml"
    path.write_text(text.replace(there, other), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("there", "other", "said"), STRUCTURE)
def test_a_file_of_another_structure_is_refused_when_it_is_read(
    there: str, other: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(hf.HoldfastError, match=f"bad.toml.*{said}"):
        load(_changed(tmp_path, there, other))


@pytest.mark.parametrize(("there", "other", "said"), VALUES)
def test_a_wrong_value_is_named_with_what_is_allowed_before_a_network_is_made(
    there: str, other: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the network is made last")

    monkeypatch.setattr(MnistCnn, "model", never)
    settings = load(_changed(tmp_path, there, other))
    with pytest.raises(hf.HoldfastError, match=said) as caught:
        build(settings, "bad", tmp_path)
    assert "\n" not in str(caught.value)


def test_an_extension_without_settings_is_a_name_alone(tmp_path: Path) -> None:
    path = _changed(
        tmp_path,
        'robustness = { use = "min-norm", steps = 12 }\n\n[criteria."Robustness-Sr"]',
        'robustness = "min-norm"\n\n[criteria."Robustness-Sr"]',
    )
    made = build(load(path), "short", tmp_path)
    assert made.measures[0].criterion == hf.RobustnessRest(hf.MinNorm())


def test_a_key_of_very_many_parts_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    many = "a." * 70_000
    for text in (
        f"{many}b = 1",
        f"[{many}b]",
        f"x = {{{many}b = 1}}",
        f'x = {{y = """a"""", {many}b = 1}}',
        f'x = {{y = """\n " """, {many}b = 1}}',
        'x = {y = "\\"", ' + '"a".' * 200 + "b = 1}",
        f'y = "\\"" # "\n{many}b = 1',
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(hf.HoldfastError, match=r"a\.toml: a key has more than 64 parts\.$"):
            load(str(path))
    whole = (files("holdfast.experiment") / "named" / "paper-mnist-quick.toml").read_text(encoding="utf-8")
    numbers = ", ".join(f"0.{number:03}" for number in range(1, 200))
    for more in (f"title = '{many}'", f'title = """\n{many}\n"""', f"# {many}", f"sizes = [{numbers}]"):
        key = more.split(" =")[0]
        kept = "\n".join(line for line in whole.splitlines() if not line.startswith(f"{key} ="))
        path.write_text(f"{more}\n{kept}", encoding="utf-8")
        assert load(str(path)).main, "dots in texts, comments and numbers are allowed"


def test_experiments_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        hf.HoldfastError,
        match=r"there is no experiment 'papper'.* paper-.*paper-fashion, paper-imagenet, paper-mnist, .*FILE.toml",
    ):
        load("papper")
    with pytest.raises(hf.HoldfastError, match="cannot read the experiment"):
        load(str(tmp_path / "none.toml"))


def test_the_named_ones_are_the_papers() -> None:
    texts = ["paper-text", "paper-text-quick", "people-movies", "people-movies-quick"]
    digits = ["paper-fashion", "paper-imagenet", "paper-mnist", "paper-mnist-quick"]
    assert named() == sorted([*digits, "paper-tabular", *texts])
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
    assert settings.model is not None
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
    assert made.cases.model.classes[9] == "ankle boot"
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
    with pytest.raises(hf.HoldfastError, match=r"cannot write .*file/x/weights-.*.safetensors"):
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
