"""What is built on Captum equals Captum's own output, and what is not is checked against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from captum import attr as captum
from captum.attr._utils.lrp_rules import Alpha1_Beta0_Rule, EpsilonRule
from torch import Tensor, nn

import holdfast as hf
from holdfast.cases import ANY, explained
from holdfast.models.torch import layers_of
from toys import small_net


class Reusing(nn.Module):
    """Passes twice through one ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(12, 10), nn.Linear(10, 10), nn.Linear(10, 4)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.relu(self.second(self.relu(self.first(x)))))
        return out


def _ready(net: nn.Module) -> nn.Module:
    return net.double().eval().requires_grad_(False)


def _mlp() -> tuple[nn.Module, Tensor]:
    return small_net(), torch.rand(5, 12, generator=torch.Generator().manual_seed(0)).double()


def _cnn() -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6 * 3 * 3, 8),
        nn.ReLU(),
        nn.Linear(8, 4),
    )
    return _ready(net), torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0)).double()


def _reusing() -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    return _ready(Reusing()), torch.rand(5, 12, generator=torch.Generator().manual_seed(0)).double()


ARCHITECTURES = {"MLP": _mlp, "CNN with max-pool": _cnn, "reused ReLU": _reusing}


def _saliency(net: nn.Module, x: Tensor, label: Tensor) -> Tensor:
    attributed: Tensor = captum.Saliency(net).attribute(x.requires_grad_(), target=label, abs=True)
    return attributed.detach()


def _integrated(net: nn.Module, x: Tensor, label: Tensor) -> Tensor:
    attributed: Tensor = captum.IntegratedGradients(net).attribute(x, 0.25, target=label, n_steps=10)
    return attributed.detach()


def _deep_lift(net: nn.Module, x: Tensor, label: Tensor) -> Tensor:
    attributed: Tensor = captum.DeepLift(net).attribute(x.requires_grad_(), torch.full_like(x, 0.25), target=label)
    return attributed.detach()


def _lrp(net: nn.Module, x: Tensor, label: Tensor) -> Tensor:
    for layer in net.modules():
        if isinstance(layer, nn.Flatten):
            layer.rule = EpsilonRule()  # how one tells Captum
    attributed: Tensor = captum.LRP(net).attribute(x.requires_grad_(), target=label)
    return attributed.detach()


def _ablation(net: nn.Module, x: Tensor, label: Tensor) -> Tensor:
    mask = hf.TorchModel(net).ask(x.detach()).features.ids.expand(1, *x.shape[1:])
    attributed: Tensor = captum.FeatureAblation(net).attribute(x, 0.25, target=label, feature_mask=mask)
    return attributed / (x.shape[1] if x.ndim == 4 else 1)  # Captum gives every channel the effect of the whole pixel


PAIRS: dict[str, tuple[hf.Attribution, Callable[[nn.Module, Tensor, Tensor], Tensor]]] = {
    "Grad": (hf.Grad(), _saliency),
    "IntegratedGradients": (hf.IntegratedGradients(0.25), _integrated),
    "DeepLift": (hf.DeepLift(0.25), _deep_lift),
    "Lrp": (hf.Lrp(), _lrp),
    "LeaveOneOut": (hf.LeaveOneOut(0.25), _ablation),
}


@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", PAIRS)
def test_attributions_equal_captums(name: str, architecture: str) -> None:
    explainer, oracle = PAIRS[name]
    net, x = ARCHITECTURES[architecture]()
    cases = hf.TorchModel(net).ask(x)
    if name == "DeepLift" and architecture == "reused ReLU":
        with pytest.raises(hf.HoldfastError, match=r"relu \(ReLU\) is used 2 times in one pass.*nn.ReLU of its own"):
            explainer.attribute(cases)
        return
    expected = cases.features.pool(oracle(net, x.clone(), cases.label))
    torch.testing.assert_close(explainer.attribute(cases), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["IntegratedGradients", "DeepLift", "Lrp", "LeaveOneOut"])
def test_why_not_t_is_the_difference_of_two_attributions(name: str) -> None:
    """These are linear in the score they explain."""
    net, x = _cnn()
    model = hf.TorchModel(net)
    label = model(x).argmax(1)
    target = (label + 1) % 4
    explainer = PAIRS[name][0]
    both = explainer.attribute(model.ask(x, target=target))
    torch.testing.assert_close(
        both, explainer.attribute(model.ask(x)) - explainer.attribute(model.ask(x, label=target)), rtol=1e-6, atol=1e-9
    )


def test_targeted_and_untargeted_cases_mix_in_one_batch() -> None:
    net, x = _cnn()
    model = hf.TorchModel(net)
    plain, targeted = model.ask(x), model.ask(x, target=(model(x).argmax(1) + 1) % 4)
    mixed = hf.Cases(model, x, plain.label, torch.where(torch.arange(5) < 2, ANY, targeted.target), plain.features)
    expected = torch.cat([hf.Lrp().attribute(plain)[:2], hf.Lrp().attribute(targeted)[2:]])
    torch.testing.assert_close(hf.Lrp().attribute(mixed), expected)


@pytest.mark.parametrize("kind", [hf.DeepLift, hf.Lrp])
@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
def test_the_network_is_left_as_it_was(kind: Callable[[], hf.Attribution]) -> None:
    net, x = _cnn()
    marks = {name: set(vars(layer)) for name, layer in net.named_modules()}
    kind()(hf.TorchModel(net).ask(x))
    assert {name: set(vars(layer)) for name, layer in net.named_modules()} == marks
    assert not any(layer._forward_hooks or layer._backward_hooks for layer in net.modules())


@pytest.mark.parametrize("kind", [hf.DeepLift, hf.Lrp])
def test_logits_behind_a_softmax_are_explained(kind: Callable[[], hf.Attribution]) -> None:
    net, x = _mlp()
    whole = nn.Sequential(*net.children(), nn.Softmax(1)).eval()
    if kind is hf.Lrp:
        with pytest.raises(hf.HoldfastError, match="no rule for a layer of this network, Softmax"):
            kind().attribute(hf.TorchModel(whole).ask(x))
    else:
        plain = kind().attribute(hf.TorchModel(net).ask(x))
        torch.testing.assert_close(kind().attribute(hf.TorchModel(whole).ask(x)), plain)


def test_deep_lift_says_when_activations_escape_it() -> None:
    net, x = _mlp()

    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([net[0], net[2], net[4]])  # type: ignore[index]  # a Sequential

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.layers[2](torch.relu(self.layers[1](torch.relu(self.layers[0](x)))))
            return out

    with pytest.warns(hf.HoldfastWarning, match="miss the change of the score"):
        hf.DeepLift()(hf.TorchModel(Functional().eval()).ask(x))


def test_a_layers_own_rule_is_kept_and_left_in_place() -> None:
    net, x = _mlp()
    net[0].rule = rule = Alpha1_Beta0_Rule()  # type: ignore[index]  # a Sequential
    own = hf.Lrp().attribute(hf.TorchModel(net, chunk=2).ask(x))
    assert net[0].rule is rule  # type: ignore[index]  # a Sequential
    plain = hf.Lrp().attribute(hf.TorchModel(small_net()).ask(x))
    assert not torch.allclose(own, plain)
    torch.testing.assert_close(own, captum.LRP(net).attribute(x.requires_grad_(), target=net(x).argmax(1)).detach())


def test_lrp_names_the_layer_it_has_no_rule_for() -> None:
    torch.manual_seed(0)
    net = _ready(nn.Sequential(nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3)))
    with pytest.raises(hf.HoldfastError, match="no rule for a layer of this network, GELU"):
        hf.Lrp()(hf.TorchModel(net).ask(torch.rand(2, 12)))


def test_lrp_names_a_layer_that_is_used_twice() -> None:
    torch.manual_seed(0)
    twice = nn.Linear(12, 12)
    net = _ready(nn.Sequential(twice, nn.ReLU(), twice, nn.ReLU(), nn.Linear(12, 3)))
    with pytest.raises(hf.HoldfastError, match=r"\(Linear\) is used 2 times"):
        hf.Lrp()(hf.TorchModel(net).ask(torch.rand(2, 12)))


# ---------------------------------------------------------------------- Shapley values


def _game(players: int = 7) -> hf.Cases:
    x = torch.rand(3, players, generator=torch.Generator().manual_seed(3)).double() + 0.1
    return hf.TorchModel(small_net(1, players)).ask(x)


def test_few_features_have_exact_shapley_values() -> None:
    cases = _game()
    exact = captum.ShapleyValues(layers_of(cases.model).module).attribute(cases.x, target=cases.label)
    torch.testing.assert_close(hf.KernelShap(samples=200).attribute(cases).float(), exact, rtol=1e-4, atol=1e-7)


@pytest.mark.filterwarnings("ignore:You are providing multiple inputs")
def test_sampled_shapley_values_err_no_more_than_captums() -> None:
    cases = _game(12)
    exact = hf.KernelShap(samples=5000).attribute(cases)
    torch.testing.assert_close(exact.sum(1), _score(cases, cases.x) - _score(cases, torch.zeros_like(cases.x)))
    ours, theirs = [], []
    for seed in range(5):
        torch.manual_seed(seed)
        ours.append(hf.KernelShap(samples=200, seed=seed).attribute(cases) - exact)
        shap = captum.KernelShap(layers_of(cases.model).module)
        attributed = shap.attribute(cases.x, target=cases.label, n_samples=200)
        theirs.append(attributed - exact)
    mean_square = [float(torch.stack(errors).square().mean()) for errors in (ours, theirs)]
    assert mean_square[0] <= mean_square[1]
    assert mean_square[0] < 0.05 * float(exact.square().mean())


def _score(cases: hf.Cases, x: Tensor) -> Tensor:
    return explained(cases.model(x), cases.label, cases.target)


def test_too_few_samples_say_how_many_are_needed() -> None:
    with pytest.raises(hf.HoldfastError, match="needs at least 24 samples, got 20"):
        hf.KernelShap(samples=20)(_game(12))


# ---------------------------------------------------------------------- expected gradients


def test_expected_gradients_of_a_linear_model_in_closed_form() -> None:
    net = nn.Linear(12, 4).double().eval().requires_grad_(False)
    x, references = torch.rand(3, 12).double(), torch.rand(9, 12).double()
    cases = hf.TorchModel(net).ask(x)
    drawn = hf.ExpectedGradients(references, 4000).attribute(cases)
    exact = (x - references.mean(0)) * net.weight[cases.label]
    assert float((drawn - exact).abs().max()) < 0.02


def test_expected_gradients_agree_with_captums_gradient_shap() -> None:
    net, x = _mlp()
    references = torch.rand(6, 12, generator=torch.Generator().manual_seed(5)).double()
    cases = hf.TorchModel(net).ask(x)
    torch.manual_seed(0)
    attributed = captum.GradientShap(net).attribute(x, references, n_samples=4000, target=cases.label).detach()
    ours = hf.ExpectedGradients(references, 4000).attribute(cases)
    assert float((ours - attributed).abs().max()) < 0.02 * float(attributed.abs().max()) + 0.005


def test_expected_gradients_without_data_or_bounds_are_refused() -> None:
    with pytest.raises(hf.HoldfastError, match="needs a model with bounds"):
        hf.ExpectedGradients()(_game())
    with pytest.raises(hf.HoldfastError, match=r"references must be \[N, 7\], got \(3, 5\)"):
        hf.ExpectedGradients(torch.rand(3, 5))(_game())


# ---------------------------------------------------------------------- references


@pytest.mark.parametrize(
    "kind", [hf.IntegratedGradients, hf.DeepLift, hf.LeaveOneOut, hf.KernelShap, hf.Bbmp, hf.Anchor]
)
def test_a_reference_of_the_wrong_shape_is_refused(kind: Callable[..., Any]) -> None:
    with pytest.raises(hf.HoldfastError, match=r"reference must be a number or have the shape of one input \(7,\)"):
        kind(reference=torch.zeros(5))(_game())
    with pytest.raises(hf.HoldfastError, match="reference must be a number, a tensor or one of"):
        kind(reference="black")
