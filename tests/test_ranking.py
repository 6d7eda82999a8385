from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

import holdfast as hf
from holdfast.ranking import features_of
from toys import small_net


def _cases(n: int = 3) -> hf.Cases:
    return hf.TorchModel(small_net()).ask(torch.rand(n, 12, generator=torch.Generator().manual_seed(0)))


def test_order_falls_with_the_scores_and_ties_keep_their_place() -> None:
    scores = torch.tensor([[0.0, 2, 2, 1] + [0] * 8]).expand(3, -1).double()
    ranking = hf.Ranking.by_score(_cases(), scores)
    assert ranking.order[0, :4].tolist() == [1, 2, 3, 0]
    assert ranking.order[0, 4:].tolist() == list(range(4, 12))


def test_top_takes_shares_and_numbers() -> None:
    ranking = hf.Ranking.by_score(_cases(), torch.arange(12.0).expand(3, -1).double())
    top = ranking.top([0.25, 5, 1.0])
    assert torch.equal(ranking.top(torch.tensor([0.25, 1.0])), top[:, [0, 2]])
    assert top.shape == (3, 3, 12)
    assert top.sum(2)[0].tolist() == [3, 5, 12]
    assert top[0, 0].nonzero()[:, 0].tolist() == [9, 10, 11]
    assert bool((top[:, :-1] <= top[:, 1:]).all()), "nested"


def test_padding_comes_last_and_shares_count_real_features() -> None:
    ids = torch.tensor([[0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1], [0, 0, 0, 0, 1, 1, 1, 1, -1, -1, -1, -1]])
    model = hf.TorchModel(small_net())
    cases = model.ask(torch.rand(2, 12), features=hf.Features.of(ids))
    assert features_of(cases).sum(1).tolist() == [10, 2]
    ranking = hf.Ranking.by_score(cases, torch.arange(10.0).expand(2, -1).double())
    assert ranking.order[1, :2].tolist() == [1, 0]
    assert ranking.top([0.5]).sum(2).tolist() == [[5], [1]]
    assert ranking.top([8]).sum(2).tolist() == [[8], [2]]
    huge = hf.Ranking.by_score(cases, torch.full((2, 10), -1e20).double())
    assert huge.order[1, :2].tolist() == [0, 1]
    assert bool(torch.isfinite(huge.scores).all())


@pytest.mark.parametrize("size", [1.5, -0.1, 0, 13, float("nan"), True, "20%"])
def test_impossible_sizes_are_refused(size: float) -> None:
    ranking = hf.Ranking.by_score(_cases(), torch.rand(3, 12).double())
    with pytest.raises(hf.HoldfastError):
        ranking.top([size])


def test_an_order_names_every_feature_once() -> None:
    with pytest.raises(hf.HoldfastError, match="each of the 3 features"):
        hf.Ranking(torch.tensor([[0, 1, 1]]), torch.zeros(1, 3), torch.tensor([3]))


def test_bad_scores_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match=r"\(3, 12\)"):
        hf.Ranking.by_score(_cases(), torch.rand(3, 11).double())
    with pytest.raises(hf.HoldfastError, match="NaN"):
        hf.Ranking.by_score(_cases(), torch.full((3, 12), torch.nan).double())
    with pytest.raises(hf.HoldfastError, match="at least one size"):
        hf.Ranking.by_score(_cases(), torch.rand(3, 12).double()).top([])


def test_one_size_needs_no_list() -> None:
    ranking = hf.Ranking.by_score(_cases(), torch.arange(12.0).expand(3, -1))
    assert torch.equal(ranking.top(0.25), ranking.top([0.25]))
    assert torch.equal(ranking.top(5), ranking.top([5]))
    assert torch.equal(ranking.top(np.array([0.25, 0.5])), ranking.top([0.25, 0.5]))


def test_arrays_lists_and_whole_numbers_are_scores() -> None:
    expected = hf.Ranking.by_score(_cases(1), torch.arange(12.0)[None]).order
    for scores in (
        np.arange(12.0)[None],
        [list(range(12))],
        torch.arange(12)[None],
        torch.arange(12.0)[None].requires_grad_(),
    ):
        assert torch.equal(hf.Ranking.by_score(_cases(1), scores).order, expected)
    assert torch.equal(hf.Ranking(expected.numpy(), np.zeros((1, 12)), np.array([12])).order, expected)  # type: ignore[arg-type]  # arrays are accepted


def _images(features: Any = None) -> hf.Cases:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2)).eval()
    return hf.TorchModel(net).ask(torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)), features=features)


def test_attributions_in_the_shape_of_the_input_are_summed_over_features_with_their_signs() -> None:
    values = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    for features, expected in (
        (None, values.sum(1).flatten(1)),
        ("patches:2", torch.nn.functional.avg_pool2d(values, 2, divisor_override=1).sum(1).flatten(1)),
        (hf.Features.pixels((3, 4, 4), "separate"), values.flatten(1)),
    ):
        ranking = hf.Ranking.by_score(_images(features), values.numpy())
        torch.testing.assert_close(ranking.scores, expected)


def test_a_map_of_an_image_has_one_channel() -> None:
    values = torch.randn(2, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    for given in (values, values[:, 0]):
        assert torch.equal(hf.Ranking.by_score(_images(), given).scores, values.flatten(1))
    separate = hf.Ranking.by_score(_images(hf.Features.pixels((3, 4, 4), "separate")), values)
    assert torch.equal(separate.scores, values.expand(-1, 3, -1, -1).flatten(1))


def test_attributions_of_grouped_columns_are_summed() -> None:
    model = hf.TorchModel(small_net())
    cases = model.ask(torch.rand(2, 12), features=hf.Features.columns([[0, 1], [2], [3, 4, 5]], n=12))
    values = torch.randn(2, 12)
    expected = torch.stack([values[:, :2].sum(1), values[:, 2], values[:, 3:6].sum(1)], 1)
    torch.testing.assert_close(hf.Ranking.by_score(cases, values).scores, expected)


@pytest.mark.parametrize("shape", [(2, 17), (2, 3, 4), (2, 2, 4, 4), (1, 3, 4, 4), (3, 4, 4), (2, 1, 1, 1), (2,)])
def test_scores_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(hf.HoldfastError, match="scores"):
        hf.Ranking.by_score(_images(), torch.rand(shape))


def test_inputs_are_not_cases() -> None:
    with pytest.raises(hf.HoldfastError, match=r"expected cases, made by model\.ask\(x\), got Tensor"):
        hf.Ranking.by_score(torch.rand(3, 12), torch.rand(3, 12))  # type: ignore[arg-type]  # wrong on purpose


def test_its_text_is_short_and_says_how_many() -> None:
    order = torch.arange(900).flip(0)[None].repeat(3, 1)
    ranking = hf.Ranking(order, torch.rand(3, 900), torch.full((3,), 900), "Grad")
    assert repr(ranking) == "Ranking(3 cases, 900 features, by Grad)"
    uneven = hf.Ranking(torch.arange(2)[None].repeat(2, 1), torch.ones(2, 2), torch.tensor([1, 2]), "a\x1b" * 99)
    assert repr(uneven).startswith(r"Ranking(2 cases, 1 to 2 features, by a\x1ba")
    assert len(repr(uneven)) < 120
    empty = hf.Ranking(torch.zeros(0, 2, dtype=torch.long), torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    assert repr(empty) == "Ranking(0 cases, 0 features)"


def test_a_plot_shows_the_first_features_by_name() -> None:
    names = ["$age$", "<script>", "a\x1b", *map(str, range(27))]
    features = hf.Features.columns(30, names=names)
    scores = torch.arange(60.0).reshape(2, 30)
    cases = hf.TorchModel(small_net(inputs=30)).ask(scores / 60, features=features)
    ranking = hf.Ranking.by_score(cases, -scores)
    for given, first in ((None, "feature 0"), (features, r"\$age\$"), (cases, r"\$age\$")):
        [ax] = ranking.plot(1, given).axes
        assert ax.get_yticklabels()[0].get_text() == first
        assert [bar.get_width() for bar in ax.patches if isinstance(bar, Rectangle)] == (-scores[1, :20]).tolist()
    [ax] = ranking.plot(features=features, top=3).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [r"\$age\$", "<script>", r"a\x1b"]
    assert ranking.plot()._repr_png_()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"case": 2}, "case must be from 0 to 1, got 2"),
        ({"case": "first"}, "case must be"),
        ({"top": 0}, "top must be a whole number >= 1"),
        ({"features": hf.Features.columns(3)}, "expected the 2 features of the ranking or its cases, got 3"),
        ({"features": ["a", "b"]}, "expected the 2 features of the ranking or its cases, got list"),
    ],
)
def test_a_plot_refuses_what_does_not_fit(arguments: Any, said: str) -> None:
    ranking = hf.Ranking(torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 2), torch.tensor([2, 2]))
    with pytest.raises(hf.HoldfastError, match=said):
        ranking.plot(**arguments)
