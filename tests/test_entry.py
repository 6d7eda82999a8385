"""hf.explain: one input of any kind by any model, in three lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import holdfast as hf
from holdfast.data.network import Network
from holdfast.explanation import HELD, MOVED
from holdfast.inputs import read_subject
from toys import small_net

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202ex"


@pytest.fixture(scope="module")
def digit() -> hf.Explanation:
    return hf.explain(hf.data.mnist_cnn().module, hf.data.mnist().x[0], target=9)


@pytest.fixture(scope="module")
def table() -> Any:
    pandas = pytest.importorskip("pandas")
    generator = np.random.default_rng(0)
    age, income = generator.integers(18, 80, 200), generator.normal(40_000, 9_000, 200).round()
    return pandas.DataFrame({"age": age, "income": income, "debt": generator.normal(9_000, 2_000, 200).round()})


@pytest.fixture(scope="module")
def forest(table: Any) -> Any:
    ensemble = pytest.importorskip("sklearn.ensemble")
    granted = np.where(table["income"] > 2 * table["debt"] + 20_000, "granted", "refused")
    return ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0).fit(table, granted)


# ---------------------------------------------------------------------- what it takes


def test_a_torch_module_and_one_image(digit: hf.Explanation) -> None:
    assert digit.question == "why 7 and not 9?"
    assert digit.method == "greedy-as-quick"
    assert (digit.size, len(digit.order)) == (157, 784)
    assert digit.baselines is not None
    assert digit.baselines.everything <= min(digit.radius) * (1 + 1e-6), "more features are never harder to change"
    assert any("bounds from 0 to 1 are assumed" in note for note in digit.notes)


@pytest.mark.parametrize("form", [lambda x: x, lambda x: x[None], lambda x: x.numpy(), lambda x: x.numpy()[None]])
def test_the_first_axis_may_be_left_out(form: Any) -> None:
    one = hf.explain(hf.data.mnist_cnn(), form(hf.data.mnist().x[3]), method="grad", effort="quick")
    assert tuple(one.x.shape) == (1, 28, 28)
    assert one.classes[one.label] == "0"


def test_pictures_and_files(tmp_path: Path) -> None:
    pixels = (hf.data.mnist().x[0, 0] * 255).byte().numpy()
    Image.fromarray(pixels).save(tmp_path / "seven.png")
    model = hf.data.mnist_cnn().module
    deep = Image.fromarray(pixels.astype(np.uint16) * 257)
    deep.save(tmp_path / "deep.png")
    given = (str(tmp_path / "seven.png"), tmp_path / "deep.png", deep, Image.fromarray(pixels).convert("RGB"), pixels)
    for x in (*given, pixels[None], pixels[None, None]):
        one = read_subject(model, x)
        assert one.x.shape == (1, 1, 28, 28), type(x)
        assert torch.allclose(one.x[0], hf.data.mnist().x[0], atol=2 / 255), type(x)
        assert any("from 0 to 1" in note for note in one.notes)
    with pytest.raises(hf.HoldfastError, match=r"cannot be asked about one input of shape \(3, 28, 28\)"):
        hf.explain(model, Image.fromarray(np.stack([pixels, pixels // 2, pixels], 2)))


def test_bytes_stay_bytes_where_the_box_is_for_them() -> None:
    pixels = torch.randint(0, 255, (1, 6, 6), dtype=torch.uint8)
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 2)).eval()
    assert float(read_subject(net, pixels, bounds=(0, 255)).x.max()) > 1
    assert float(read_subject(hf.TorchModel(net, (0, 255)), pixels).x.max()) > 1
    assert float(read_subject(net, pixels).x.max()) <= 1
    row = np.array([[10, 200, 30]], np.uint8)
    assert read_subject(NET, row).x.tolist() == [[10, 200, 30]], "a row of numbers is no picture"


def test_what_is_assumed_of_images_does_not_depend_on_their_form() -> None:
    net = nn.Sequential(nn.Conv1d(3, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2)).eval()
    x = torch.rand(3, 10)
    one, other = read_subject(net, x), read_subject(net, x[None])
    assert torch.equal(one.x, other.x)
    assert one.model.low is None
    assert other.model.low is None
    wide = read_subject(hf.data.mnist_cnn().module, hf.data.mnist().x[0] * 1.01)
    assert any("not bounded" in note for note in wide.notes)


def test_a_model_made_with_other_columns_is_refused(table: Any, forest: Any) -> None:
    whole, part = hf.Columns.read(table), table[table["age"] < 40]
    model = hf.trees(forest, columns=whole)
    assert hf.explain(model, table.iloc[5], columns=whole, method="random", top=1).size == 1
    with pytest.raises(hf.HoldfastError, match="with other ranges or scales"):
        hf.explain(model, part.iloc[0], columns=part)


def test_estimators_decide_as_they_predict(table: Any) -> None:
    """A threshold moves the decision, two classes have one logit, some have no scores, some read the frame itself."""
    pytest.importorskip("sklearn", minversion="1.5")
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import AdaBoostClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import FixedThresholdClassifier
    from sklearn.multiclass import OneVsOneClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
    from sklearn.svm import LinearSVC

    frame = table.assign(city=["a" if age % 2 else "b" for age in table["age"]])
    y = np.where(frame["income"] > 45_000, "old", "young")
    numbers = table / table.max()
    encoder = make_column_transformer((OneHotEncoder(), ["city"]), (FunctionTransformer(np.cbrt), ["age", "income"]))
    made = [
        (FixedThresholdClassifier(LogisticRegression(), threshold=0.02, pos_label="young"), numbers),
        (OneVsOneClassifier(LinearSVC()), numbers),
        (VotingClassifier([("a", LogisticRegression())], voting="hard"), numbers),
        (make_pipeline(encoder, AdaBoostClassifier(n_estimators=3)), frame),
    ]
    for estimator, rows in made:
        estimator.fit(rows, y)
        columns = hf.Columns.read(rows)
        model: Any = hf.as_model(estimator, columns=columns)
        label = model.ask(columns.encode(rows[:20])).label
        assert [model.classes[one] for one in label.tolist()] == estimator.predict(rows[:20]).tolist(), estimator


def test_classes_called_by_numbers_are_asked_about_by_name() -> None:
    model = hf.TorchModel(NET, (0, 1), classes=["1", "2"])
    label = model.ask(torch.rand(1, 3, generator=torch.Generator().manual_seed(0))).label
    x = torch.rand(3, generator=torch.Generator().manual_seed(0))
    other = [1, 2][1 - int(label)]
    assert hf.explain(model, x, target=other, method="grad").question.endswith(f"and not {other}?")


def test_a_row_of_a_table_by_trees(table: Any, forest: Any) -> None:
    forms = [table.iloc[5], table.iloc[[5]], table.iloc[5].to_dict(), table.iloc[5].to_numpy()]
    found = [hf.explain(forest, row, columns=table, top=1) for row in forms]
    one = found[0]
    assert [other.radius for other in found] == [one.radius] * 4
    assert one.method == "greedy"
    assert one.bound == "exact"
    assert {feature.name for feature in one.top(3)} == {"age", "income", "debt"}
    assert one.top(1)[0].value == f"{table['income'][5]:,.0f}".replace(",", "") or one.top(1)[0].value
    assert one.classes == ("granted", "refused")
    assert one.extra[0][0] == "in words"


def test_a_row_by_a_torch_module_over_the_raw_numbers(table: Any) -> None:
    """The module sees the numbers of the table, radii are in scales."""
    net = nn.Linear(3, 2).eval()
    net.weight.data = torch.tensor([[0.0, 1e-3, -2e-3], [0.0, -1e-3, 2e-3]])
    net.bias.data = torch.tensor([-20.0, 20.0])
    one = hf.explain(net, table.iloc[5], columns=table, top=1, classes=["yes", "no"])
    expected = net(torch.tensor(table.iloc[5].to_numpy(), dtype=torch.float32)).argmax()
    assert one.label == int(expected)
    assert one.top(1)[0].name in ("income", "debt")


def test_an_estimator_that_is_not_read_is_asked_as_a_function(table: Any) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    model = ensemble.AdaBoostClassifier(n_estimators=4).fit(table, table["income"] > 40_000)
    one = hf.explain(model, table.iloc[5], columns=table, top=1)
    assert one.top(1)[0].name == "income"
    assert one.bound == "upper"


def test_a_function_of_vectors_with_names() -> None:
    def scores(rows: Any) -> Any:
        return np.stack([rows[:, 0] - rows[:, 1], rows[:, 1] - rows[:, 0], 0 * rows[:, 0] - 5], 1)

    one = hf.explain(scores, [0.9, 0.2, 0.5], bounds=(0, 1), names=["a", "b", "c"], top=1)
    assert one.top(1)[0].name in ("a", "b")
    one.plot()


def test_a_text() -> None:
    model = Network.parse("text-bilstm").text_model("cpu")
    one = hf.explain(model, "The goalie stopped the puck.", method="random", top=2)
    assert one.size == 2
    assert {feature.name for feature in one.top(5)} == {"The", "goalie", "stopped", "the", "puck"}
    assert one.extra[0][0] == "real words in their place"


def test_somebody_elses_scores() -> None:
    """Scores of pixels, of the input's shape, flat, and a ranking: all are the same explanation."""
    model, x = hf.data.mnist_cnn(), hf.data.mnist().x[0]
    scores = torch.rand(28, 28, generator=torch.Generator().manual_seed(0))
    cases = model.ask(x[None])
    forms = [scores.numpy(), scores[None, None], scores.flatten().tolist()]
    found = [hf.explain(model, x, method=form) for form in forms]
    found.append(hf.explain(model, x, method=hf.Ranking.by_score(cases, scores[None])))
    assert {one.order for one in found} == {found[0].order}
    assert {one.radius for one in found} == {found[0].radius}
    assert found[0].method == "scores"


@pytest.mark.parametrize("effort", ["quick", "default", "thorough"])
def test_more_effort_never_gives_a_longer_change(effort: Any) -> None:
    model = hf.TorchModel(small_net(), (0, 1))
    x = torch.rand(12, generator=torch.Generator().manual_seed(1)).double()
    one = hf.explain(model, x, method="grad", effort=effort, top=3)
    quick = hf.explain(model, x, method="grad", effort="quick", top=3)
    for which in (MOVED, HELD):
        assert one.radius[which] <= quick.radius[which] * (1 + 1e-6)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    hf.explain(hf.data.mnist_cnn(), hf.data.mnist().x[0], progress=lambda done, total: told.append((done, total)))
    assert told
    assert told[-1][0] == told[-1][1]


# ---------------------------------------------------------------------- what it gives


def test_it_is_short_to_read(digit: hf.Explanation) -> None:
    assert len(repr(digit).splitlines()) == 3
    assert "why 7 and not 9?" in repr(digit)
    assert "random ones are held" in digit.sentence
    assert f"{digit.radius[HELD]:.3g}" in digit.sentence


def test_plain_data_frames_and_files(digit: hf.Explanation, tmp_path: Path) -> None:
    frame = digit.to_frame()
    assert len(frame) == 784
    assert frame["relevant"].sum() == 157
    assert json.loads(json.dumps(digit.to_dict()))["question"] == "why 7 and not 9?"
    for suffix in ("png", "svg", "json", "html"):
        digit.save(tmp_path / f"why.{suffix}")
        assert (tmp_path / f"why.{suffix}").stat().st_size > 1_000
    assert json.loads((tmp_path / "why.json").read_text())["sentence"] == digit.sentence
    with pytest.raises(hf.HoldfastError, match="suffix"):
        digit.save(tmp_path / "why.doc")
    page = (tmp_path / "why.html").read_text()
    assert "http" not in page.replace("http-equiv", "")


def test_names_and_texts_are_shown_and_never_run(tmp_path: Path) -> None:
    model = hf.TorchModel(small_net(), (0, 1), classes=[HOSTILE, "b", "c", "d"])
    x = torch.rand(12, generator=torch.Generator().manual_seed(0)).double()
    one = hf.explain(model, x, method="grad", names=[f"{HOSTILE}{number}" for number in range(12)], top=2)
    one.save(tmp_path / "why.html")
    html = one._repr_html_()
    assert html is not None
    for text in ((tmp_path / "why.html").read_text(), html):
        assert "<script>" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "&lt;script&gt;" in (tmp_path / "why.html").read_text()
    assert "\x1b" not in repr(one)
    one.save(tmp_path / "why.png")
    one.save(tmp_path / "why.svg")


def test_hostile_texts_are_shown_and_never_run(tmp_path: Path) -> None:
    model = Network.parse("text-bilstm").text_model("cpu")
    one = hf.explain(model, f"$x$ goalie {HOSTILE} {'a' * 300} _b", method="random", top=2)
    one.save(tmp_path / "text.html")
    assert "<script>" not in (tmp_path / "text.html").read_text()
    one.save(tmp_path / "text.png")
    one.save(tmp_path / "text.svg")


def test_baselines_are_of_the_same_size(digit: hf.Explanation) -> None:
    """Moving a random set of the same size is harder than moving the relevant ones, on this digit."""
    assert digit.baselines is not None
    assert digit.baselines.random[MOVED] > digit.radius[MOVED]
    assert digit.baselines.random[HELD] < digit.radius[HELD]


# ---------------------------------------------------------------------- what it refuses

NET = nn.Linear(3, 2).eval()
WRONG: list[tuple[str, Any]] = [
    ("expected a torch module", lambda: hf.explain(3, [1.0])),
    ("got NoneType", lambda: hf.explain(None, [1.0])),
    ("training mode", lambda: hf.explain(nn.Linear(3, 2), [1.0, 2, 3])),
    ("no image file 'nothing.png'", lambda: hf.explain(NET, "nothing.png")),
    ("cannot be asked about one input of shape", lambda: hf.explain(NET, [1.0, 2])),
    ("explain one of them", lambda: hf.explain(hf.data.mnist_cnn(), hf.data.mnist().x[:2])),
    ("no effort 'slow'", lambda: hf.explain(NET, [1.0, 2, 3], effort="slow")),  # type: ignore[arg-type]
    ("no explainer 'gready'", lambda: hf.explain(NET, [1.0, 2, 3], method="gready")),
    ("names are given for 3 features", lambda: hf.explain(NET, [1.0, 2, 3], names=["a"])),
    ("names are given for 3 features", lambda: hf.explain(NET, [1.0, 2, 3], names=["a", "b", "c", "d"])),
    ("must be one text for each feature, got int", lambda: hf.explain(NET, [1.0, 2, 3], names=5)),  # type: ignore[arg-type]
    ("cannot be asked about one input", lambda: hf.explain(NET, [1.0, 2, 3], bounds=([0, 0], [1, 1]))),
    ("top takes a number", lambda: hf.explain(NET, [1.0, 2, 3], method="grad").top("3")),  # type: ignore[arg-type]
    ("top takes a number", lambda: hf.explain(NET, [1.0, 2, 3], method="grad").top(-1)),
    ("saved to a path", lambda: hf.explain(NET, [1.0, 2, 3], method="grad").save(5)),  # type: ignore[arg-type]
    ("got one text", lambda: hf.explain(NET, [1.0, 2, 3], names="abc")),
    ("at most the 3 features", lambda: hf.explain(NET, [1.0, 2, 3], top=4)),
    ("top", lambda: hf.explain(NET, [1.0, 2, 3], top="a")),  # type: ignore[arg-type]
    ("no class 'x'", lambda: hf.explain(NET, [1.0, 2, 3], target="x")),
    ("scores must be", lambda: hf.explain(NET, [1.0, 2, 3], method=[1.0, 2])),
    ("pass columns=", lambda: hf.explain(NET, {"a": 1.0})),
    ("has its own bounds", lambda: hf.explain(hf.data.mnist_cnn(), hf.data.mnist().x[0], bounds=(0, 1))),
    ("made without these columns", lambda: hf.explain(hf.TorchModel(NET), [1.0, 2], columns=[{"a": 1, "b": 2}])),
    ("progress must be", lambda: hf.explain(NET, [1.0, 2, 3], progress=3)),  # type: ignore[arg-type]
    ("p must be", lambda: hf.explain(NET, [1.0, 2, 3], p=3)),
    ("one text", lambda: hf.explain(Network.parse("text-bilstm").text_model("cpu"), 3)),
    ("normalize is for torch modules", lambda: hf.as_model(len, normalize=(0, 1))),
]


@pytest.mark.parametrize(
    ("message", "call"), WRONG, ids=[f"{number} {message}" for number, (message, _) in enumerate(WRONG)]
)
def test_what_is_wrong_is_one_sentence(message: str, call: Any) -> None:
    with pytest.raises(hf.HoldfastError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_explanation_of_a_command_job_cannot_be_drawn_without_its_display() -> None:
    one = hf.explain(hf.TorchModel(small_net(), (0, 1)), torch.rand(12).double(), method="grad", top=2)
    bare = replace(one, display=None)
    assert bare._repr_html_() is None
    with pytest.raises(hf.HoldfastError, match=r"not made by hf\.explain"):
        bare.plot()
