from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import quantus
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.interop.quantus import RobustnessRelevant, RobustnessRest, explain_func

JUDGE = hf.MinNorm(steps=30)


def _digits() -> tuple[nn.Module, np.ndarray, np.ndarray]:
    data = hf.data.mnist()
    net = hf.data.mnist_cnn().module
    x = data.x[:4]
    return net, x.numpy(), net(x).argmax(1).numpy()


@pytest.mark.parametrize("kind", [(RobustnessRest, hf.RobustnessRest), (RobustnessRelevant, hf.RobustnessRelevant)])
def test_a_metric_is_the_area_of_its_criterion(kind: tuple[Any, Any]) -> None:
    net, x, y = _digits()
    metric = kind[0](JUDGE, sizes=(0.1, 0.3), bounds=(0, 1))
    explain = explain_func(hf.Grad(), bounds=(0, 1))
    values = metric(model=net, x_batch=x, y_batch=y, a_batch=explain(net, x, y), batch_size=3)
    cases = hf.TorchModel(net, (0, 1)).ask(torch.as_tensor(x))
    expected = hf.trace(cases, hf.Grad()(cases), kind[1](JUDGE), (0.1, 0.3)).auc()
    np.testing.assert_allclose(values, expected.numpy(), rtol=1e-3)
    explained = metric(model=net, x_batch=x, y_batch=y, a_batch=None, explain_func=explain)
    np.testing.assert_allclose(explained, values, rtol=1e-3)


def test_quantus_evaluates_with_them_beside_its_own() -> None:
    """Quantus' own entry point, explainers from here, metrics from both."""
    net, x, y = _digits()
    metrics = {
        "S̄r": RobustnessRest(JUDGE, sizes=(0.1, 0.3), bounds=(0, 1)),
        "sparseness": quantus.Sparseness(disable_warnings=True),
    }
    a_batch = {
        "Greedy-AS": explain_func(hf.GreedyAS.quick(), bounds=(0, 1))(net, x, y),
        "random": explain_func(hf.Random(), bounds=(0, 1))(net, x, y),
    }
    values = quantus.evaluate(metrics=metrics, xai_methods=a_batch, model=net, x_batch=x, y_batch=y)
    assert set(values) == {"Greedy-AS", "random"}
    assert np.mean(values["Greedy-AS"]["S̄r"]) > np.mean(values["random"]["S̄r"])


@pytest.mark.filterwarnings("ignore:.* input values leave the bounds")
def test_an_explain_func_serves_quantus_own_metrics() -> None:
    net, x, y = _digits()
    metric = quantus.MaxSensitivity(nr_samples=2, disable_warnings=True, return_aggregate=False)
    explain = explain_func(hf.Grad(), bounds=(0, 1))  # the metric moves inputs out of them
    values = metric(model=net, x_batch=x, y_batch=y, a_batch=None, explain_func=explain)
    assert len(values) == 4
    assert np.isfinite(values).all()


def test_colour_tables_and_groups_fit() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 3)).eval()
    x, y = torch.rand(2, 3, 4, 4).numpy(), np.array([0, 1])
    assert explain_func(hf.Grad())(net, x, y).shape == (2, 1, 4, 4)
    separate = hf.Features.pixels((3, 4, 4), "separate")
    assert explain_func(hf.Grad(), features=separate)(net, x, y).shape == (2, 3, 4, 4)
    patches = hf.Features.patches((3, 4, 4), 2)
    grouped = explain_func(hf.Grad(), features=patches)(net, x, y)
    assert grouped.shape == (2, 1, 4, 4)
    assert len(np.unique(grouped[0])) == 4
    table = nn.Linear(6, 3).eval()
    assert explain_func(hf.Grad())(table, np.random.default_rng(0).random((2, 6), np.float32), y).shape == (2, 6)


def test_unequal_groups_and_what_never_moves_keep_their_order() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(100, 3)).double().eval()
    ids = hf.Features.patches((1, 10, 10), 4).ids.clone()
    ids[..., 9] = -1
    features = hf.Features.of(ids)
    x = torch.rand(3, 1, 10, 10).double()
    cases = hf.TorchModel(net, (0, 1)).ask(x, features=features)
    y = cases.label.numpy()
    given = explain_func(hf.LeaveOneOut(), bounds=(0, 1), features=features)(net, x.numpy(), y)
    assert not given[..., 9].any()
    torch.testing.assert_close(cases.features.pool(torch.as_tensor(given)), hf.LeaveOneOut().attribute(cases))


def test_features_may_be_laid_over_each_batch() -> None:
    net, x, y = _digits()

    def superpixels(batch: Tensor) -> hf.Features:
        return hf.Features.superpixels(batch, 20)

    explain = explain_func(hf.Grad(), (0, 1), superpixels)
    metric = RobustnessRest(JUDGE, sizes=(0.1, 0.3), bounds=(0, 1), features=superpixels)
    values = metric(model=net, x_batch=x, y_batch=y, a_batch=None, explain_func=explain, batch_size=3)
    assert len(values) == 4


def test_bad_input_is_refused() -> None:
    net, x, y = _digits()
    with pytest.raises(hf.HoldfastError, match=r"expected a torch\.nn\.Module, got function"):
        explain_func(hf.Grad())(lambda rows: rows, x, y)
    metric = RobustnessRest(JUDGE, bounds=(0, 1))
    with pytest.raises(hf.HoldfastError, match="does not fit x_batch"):
        metric.evaluate_batch(_Model(net), x, y, np.zeros((4, 1, 5, 5)))


class _Model:
    def __init__(self, net: nn.Module):
        self.net = net

    def get_model(self) -> nn.Module:
        return self.net


def test_training_mode_is_refused() -> None:
    net, x, y = _digits()
    with pytest.raises(hf.HoldfastError, match="training mode"):
        explain_func(hf.Grad())(nn.Sequential(net, nn.Dropout()), x, y)


def test_inputs_and_targets_come_in_every_form() -> None:
    """Tensors, lists, a batch of one, targets as numbers, columns and floats."""
    net, x, y = _digits()
    explain = explain_func(hf.Grad(), bounds=(0, 1))
    expected = explain(net, x, y)
    for inputs in (torch.as_tensor(x).requires_grad_(), x.astype(np.float64), x.tolist()):
        np.testing.assert_allclose(explain(net, inputs, y), expected, rtol=1e-5)
    for targets in (y.tolist(), torch.as_tensor(y), y[:, None], y.astype(np.float32), y.astype(np.int32)):
        np.testing.assert_allclose(explain(net, x, targets), expected, rtol=1e-5)
    for one in (int(y[0]), y[0], y[:1]):
        np.testing.assert_allclose(explain(net, x[:1], one), expected[:1], rtol=1e-4, atol=1e-6)
    with pytest.raises(hf.HoldfastError, match="targets must be class numbers"):
        explain(net, x, y + 0.5)
    with pytest.raises(hf.HoldfastError, match="targets must be one class for each of 4 inputs"):
        explain(net, x, y[:3])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("text", r"inputs must be an array or a tensor \[B, \*shape\]"),
        (None, "inputs must be an array"),
        ([[1.0], [1.0, 2.0]], "inputs must be an array"),
        (np.array([["a", "b"]]), "inputs must be an array"),
        (torch.zeros(2, 1, 28, 28, device="meta"), "got a meta tensor"),
        (torch.zeros(2, 1, 28, 28, dtype=torch.complex64), "got a complex tensor"),
        (torch.tensor(1.0), "x must be a batch"),
        (torch.zeros(5), "x must be a batch"),
    ],
)
def test_inputs_that_cannot_be_read_are_refused(inputs: Any, message: str) -> None:
    net, _, _ = _digits()
    for bounds in (None, (0, 1)):
        with pytest.raises(hf.HoldfastError, match=message):
            explain_func(hf.Grad(), bounds=bounds)(net, inputs, 0)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("cat", "targets must be one class for each of 4 inputs"),
        (np.array(["a", "b", "c", "d"]), "targets must be one class for each of 4 inputs"),
        ([[1], [1, 2], [1], [1]], "targets must be one class for each of 4 inputs"),
        (torch.zeros(4, device="meta"), "got a meta tensor"),
        (np.zeros(4, complex), "got a complex tensor"),
        (np.array([np.inf, 1, 1, 1]), r"targets must be class numbers, got \[inf, 1\.0, 1\.0, 1\.0\]"),
        (np.array([1e30, 1, 1, 1]), r"targets must be class numbers, got \[1e\+30, 1\.0, 1\.0, 1\.0\]"),
        (np.array([np.nan, 1, 1, 1]), r"targets must be class numbers, got \[nan"),
        (np.array([2**40, 1, 1, 1]), r"targets must be class numbers, got \[1099511627776"),
        ([True, False, True, True], "targets must be class numbers, got"),
        ([0, 1, 2, 10], "label must be a class from 0 to 9"),
    ],
)
def test_targets_that_are_no_classes_are_refused(targets: Any, message: str) -> None:
    net, x, _ = _digits()
    with pytest.raises(hf.HoldfastError, match=message):
        explain_func(hf.Grad(), bounds=(0, 1))(net, x, targets)


def test_bounds_and_features_that_do_not_fit_are_refused() -> None:
    net, x, y = _digits()
    with pytest.raises(hf.HoldfastError, match=r"bounds of shape .* do not fit inputs of shape \(1, 28, 28\)"):
        explain_func(hf.Grad(), bounds=(torch.zeros(3), torch.ones(3)))(net, x, y)

    def fails(batch: Tensor) -> hf.Features:
        raise KeyError("segments")

    with pytest.raises(hf.HoldfastError, match=r"features failed for inputs of shape \(4, 1, 28, 28\): KeyError"):
        explain_func(hf.Grad(), features=fails)(net, x, y)
    metric = RobustnessRest(JUDGE, bounds=(0, 1))
    with pytest.raises(hf.HoldfastError, match="a_batch must be an array or a tensor in the shape of x_batch"):
        metric.evaluate_batch(_Model(net), x, y, np.full((4, 1, 28, 28), "a"))


def test_a_metric_takes_a_batch_of_one() -> None:
    net, x, y = _digits()
    metric = RobustnessRest(JUDGE, sizes=(0.1, 0.3), bounds=(0, 1))
    a = explain_func(hf.Grad(), bounds=(0, 1))(net, x, y)
    alone = metric(model=net, x_batch=x[:1], y_batch=y[:1], a_batch=a[:1])
    together = metric(model=net, x_batch=x, y_batch=y, a_batch=a)
    np.testing.assert_allclose(alone, together[:1], rtol=1e-3)


def test_clipping_gives_one_warning() -> None:
    net, x, y = _digits()
    explain = explain_func(hf.Grad(), bounds=(0, 1))
    explain(net, x + 1e-8, y)  # rounding
    with pytest.warns(hf.HoldfastWarning, match=r"input values leave the bounds \(0, 1\), by up to 0\.5"):
        explain(net, x + 0.5, y)
    explain(net, x + 0.5, y)  # a second warning would be an error
