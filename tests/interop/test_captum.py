from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from captum import attr as captum
from torch import Tensor, nn

import holdfast as hf
from holdfast.interop.captum import AsCaptum, from_captum
from toys import small_net

QUICK = hf.GreedyAS(hf.RobustnessRest(hf.MinNorm(steps=10)), step=0.2, samples=2)


def _x(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0)).double()


def _cnn() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 4))
    return net.double().eval().requires_grad_(False)


# ---------------------------------------------------------------------- from Captum


@pytest.mark.parametrize(
    "make",
    [
        captum.Saliency,
        captum.InputXGradient,
        captum.IntegratedGradients,
        captum.DeepLift,
        captum.GuidedBackprop,
        captum.FeatureAblation,
        lambda net: captum.NoiseTunnel(captum.Saliency(net)),
    ],
)
@pytest.mark.filterwarnings("ignore:Setting backward hooks on ReLU")
def test_any_captum_method_is_an_explainer_in_one_line(make: Any) -> None:
    net, x = _cnn(), _x(3, 3, 6, 6)
    cases = hf.TorchModel(net, (0, 1)).ask(x)
    torch.manual_seed(0)
    ranking = from_captum(make(net))(cases)
    assert ranking.order.shape == (3, 36)
    assert cases.model.queries.forward > 3


def test_it_ranks_by_what_captum_returns() -> None:
    net, x = _cnn(), _x(3, 3, 6, 6)
    cases = hf.TorchModel(net).ask(x)
    expected = captum.InputXGradient(net).attribute(x.clone().requires_grad_(), target=cases.label).sum(1).flatten(1)
    explainer = from_captum(captum.InputXGradient(net))
    torch.testing.assert_close(explainer.attribute(cases), expected.detach())
    assert repr(explainer) == "from_captum(InputXGradient, absolute=False, seed=0)"
    local, weighted = (from_captum(captum.IntegratedGradients(net, multiply_by_inputs=x)) for x in (False, True))
    assert local != weighted, "settings inside Captum's object are part of the key"
    absolute = from_captum(captum.InputXGradient(net), absolute=True)(cases)
    torch.testing.assert_close(absolute.scores, expected.detach().abs())


def test_methods_with_a_feature_mask_are_given_the_features() -> None:
    """What belongs to no feature stays, also in the coalitions of Shapley values."""
    net, x = small_net(), _x(2, 12)
    features = hf.Features.of(torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2, -1, -1, -1]))
    cases = hf.TorchModel(net).ask(x, features=features)
    ablated = from_captum(captum.FeatureAblation(net)).attribute(cases)
    torch.testing.assert_close(ablated, hf.LeaveOneOut().attribute(cases))
    shapley = from_captum(captum.ShapleyValues(net), baselines=0.25).attribute(cases)
    torch.testing.assert_close(shapley, hf.KernelShap(0.25).attribute(cases), rtol=1e-4, atol=1e-6)


def test_a_mask_of_ones_own_is_kept() -> None:
    net, x = small_net(), _x(2, 12)
    cases = hf.TorchModel(net).ask(x, features=torch.arange(12) // 6)
    whole = from_captum(captum.FeatureAblation(net), feature_mask=torch.zeros(1, 12).long())
    assert "feature_mask=tensor(1, 12)#" in repr(whole)
    attributed = whole.attribute(cases) / 6  # Captum gives each of six numbers the effect of all twelve
    fallen = cases.model(x) - cases.model(torch.zeros_like(x))
    torch.testing.assert_close(attributed, fallen.gather(1, cases.label[:, None]).expand(2, 2))


def test_the_seed_seeds_what_captum_draws_and_nothing_else() -> None:
    net, x = small_net(), _x(3, 12)
    cases = hf.TorchModel(net).ask(x)
    torch.manual_seed(5)
    before = torch.rand(1)
    orders = []
    for seed in (0, 0, 1):
        torch.manual_seed(5)
        orders.append(from_captum(captum.GradientShap(net), baselines=_x(9, 12), seed=seed)(cases).order)
        assert torch.equal(torch.rand(1), before)
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])


def test_a_distribution_as_long_as_the_batch_is_not_cut_up() -> None:
    net, x = small_net(), _x(5, 12)
    for baselines in (_x(10, 12)[5:], (_x(10, 12)[5:],)):
        attributed = [
            from_captum(captum.GradientShap(net), baselines=baselines).attribute(hf.TorchModel(net, chunk=chunk).ask(x))
            for chunk in (1, 5)
        ]
        torch.testing.assert_close(*attributed)


def test_half_precision_modules_get_what_they_take() -> None:
    net = small_net().bfloat16()
    cases = hf.TorchModel(net).ask(_x(2, 12))
    assert from_captum(captum.Saliency(net))(cases).order.shape == (2, 12)


def test_every_case_may_have_its_own_features_and_arguments() -> None:
    net, x = small_net(), _x(2, 12)
    ids = torch.stack([torch.arange(12) // 3, torch.arange(12) // 4])
    cases = hf.TorchModel(net, chunk=1).ask(x, features=hf.Features.of(ids))
    baselines = _x(4, 12)[2:]
    attributed = from_captum(captum.FeatureAblation(net), baselines=baselines).attribute(cases)
    torch.testing.assert_close(attributed, hf.LeaveOneOut(baselines).attribute(cases))


def test_why_not_t_takes_the_other_attribution_off() -> None:
    net, x = small_net(), _x(2, 12)
    model = hf.TorchModel(net)
    target = (model(x).argmax(1) + 1) % 4
    targeted = model.ask(x, target=target)
    explainer = from_captum(captum.IntegratedGradients(net), n_steps=10)
    torch.testing.assert_close(explainer.attribute(targeted), hf.IntegratedGradients().attribute(targeted))


def test_attributions_of_something_else_are_refused() -> None:
    net, x = _cnn(), _x(2, 3, 6, 6)
    cases = hf.TorchModel(net).ask(x)
    layer = captum.LayerActivation(net, net[0])  # type: ignore[index]  # a Sequential
    with pytest.raises(hf.HoldfastError, match="LayerActivation takes no target"):
        from_captum(layer)

    class Delta(captum.Saliency):  # type: ignore[misc]  # Captum is not typed here
        def attribute(self, inputs: Tensor, target: Any) -> Any:
            return super().attribute(inputs, target=target), torch.zeros(2)

    with pytest.raises(hf.HoldfastError, match="Delta returned tuple for inputs of shape"):
        from_captum(Delta(net))(cases)
    grad_cam = captum.LayerGradCam(net, net[0])  # type: ignore[index]  # a Sequential
    with pytest.raises(
        hf.HoldfastError, match=r"LayerGradCam returned \(2, 1, 4, 4\) for inputs of shape \(2, 3, 6, 6\)"
    ):
        from_captum(grad_cam)(cases)


def test_what_the_cases_decide_cannot_be_given() -> None:
    with pytest.raises(hf.HoldfastError, match="target is set by the cases"):
        from_captum(captum.Saliency(small_net()), target=1)
    with pytest.raises(hf.HoldfastError, match="expected a captum"):
        from_captum(small_net())


def test_a_mask_must_be_made_of_numbers() -> None:
    with pytest.raises(hf.HoldfastError, match="feature_mask must be a tensor or an array"):
        from_captum(captum.FeatureAblation(small_net()), feature_mask="pixels")
    lists = from_captum(captum.FeatureAblation(small_net()), feature_mask=[[0, 0, 1]])
    assert torch.equal(lists.arguments["feature_mask"], torch.tensor([[0, 0, 1]]))


def test_an_explainer_made_of_captum_is_equal_by_its_settings_and_can_be_a_key() -> None:
    net = small_net()
    one, same = (from_captum(captum.IntegratedGradients(net), baselines=_x(1, 12)) for _ in range(2))
    other = from_captum(captum.IntegratedGradients(net), baselines=_x(1, 12), n_steps=5)
    assert one == same
    assert one != other
    assert one != repr(one)
    assert len({one: 1, same: 2, other: 3}) == 2


def test_arrays_are_arguments() -> None:
    net = small_net()
    array = from_captum(captum.IntegratedGradients(net), baselines=_x(1, 12).numpy())
    tensor = from_captum(captum.IntegratedGradients(net), baselines=_x(1, 12))
    assert array == tensor
    cases = hf.TorchModel(net).ask(np.asarray(_x(2, 12)))
    torch.testing.assert_close(array.attribute(cases), tensor.attribute(cases))


def test_a_model_without_layers_and_a_class_are_refused() -> None:
    net = small_net()
    model = hf.FunctionModel(lambda rows: rows[:, :3])
    with pytest.raises(hf.HoldfastError, match="FromCaptum needs layers, and the FunctionModel gives only scores"):
        from_captum(captum.Saliency(net))(model.ask(torch.rand(2, 12)))
    with pytest.raises(hf.HoldfastError, match=r"expected a captum\.attr object .*, got the class Saliency"):
        from_captum(captum.Saliency)


# ---------------------------------------------------------------------- to Captum


def test_an_explainer_may_be_given_by_class_or_name() -> None:
    net, x = small_net(), _x(2, 12)
    expected = AsCaptum(hf.Grad(), net).attribute(x)
    for explainer in (hf.Grad, "grad"):
        torch.testing.assert_close(AsCaptum(explainer, net).attribute(x), expected)


def test_scores_come_back_in_the_shape_of_the_input() -> None:
    net, x = _cnn(), _x(2, 3, 6, 6)
    scores = AsCaptum(hf.LeaveOneOut(), net, bounds=(0, 1)).attribute(x.float())
    assert isinstance(scores, Tensor)
    assert scores.shape == x.shape
    assert scores.dtype == torch.float32
    expected = captum.FeatureAblation(net).attribute(x, target=net(x).argmax(1))
    torch.testing.assert_close(scores, expected.float(), rtol=1e-4, atol=1e-6)


def test_a_feature_mask_makes_features() -> None:
    net, x = _cnn(), _x(2, 3, 6, 6)
    mask = hf.Features.patches((3, 6, 6), 3).ids
    scores = AsCaptum(QUICK, net).attribute(x, feature_mask=mask)
    assert isinstance(scores, Tensor)
    ranking = QUICK(hf.TorchModel(net).ask(x, features=mask))
    torch.testing.assert_close(scores[:, 0, ::3, ::3].flatten(1), ranking.scores)


@pytest.mark.parametrize(
    "target", [2, (2,), torch.tensor(2), torch.tensor([2]), [2, 2, 2], [(2,), (2,), (2,)], torch.tensor([2, 2, 2])]
)
def test_every_form_of_target_names_the_class(target: Any) -> None:
    net, x = small_net(), _x(3, 12)
    method = AsCaptum(hf.IntegratedGradients(), net)
    expected = hf.IntegratedGradients().attribute(hf.TorchModel(net).ask(x, label=2))
    torch.testing.assert_close(method.attribute(x, target=target), expected)
    still = captum.NoiseTunnel(method).attribute(x, target=target, nt_samples=2, stdevs=0.0)
    torch.testing.assert_close(still, expected)


def test_no_target_is_the_prediction() -> None:
    net, x = small_net(), _x(3, 12)
    method = AsCaptum(hf.Grad(), net)
    torch.testing.assert_close(method.attribute(x), method.attribute(x, target=net(x).argmax(1)))


@pytest.mark.filterwarnings("ignore:all features have the same value")
@pytest.mark.filterwarnings("ignore:.* input values leave the bounds")
def test_a_noise_tunnel_goes_around_explainers_of_all_kinds() -> None:
    """Also where its noise leaves the box, and with a mask."""
    net, x = small_net(), _x(2, 12)
    mask = torch.arange(12)[None] // 2
    torch.manual_seed(0)
    for explainer in (QUICK, hf.DeepLift(), hf.Random()):
        method = captum.NoiseTunnel(AsCaptum(explainer, net, bounds=(0, 1)))
        scores = method.attribute(x, nt_samples=3, stdevs=0.3, feature_mask=mask)
        assert scores.shape == x.shape


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_net()

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        out: Tensor = self.net(torch.cat([left.flatten(1), right], 1))
        return out


def test_several_inputs_are_explained_together() -> None:
    x = _x(3, 12)
    parts = x[:, :8].reshape(3, 2, 4), x[:, 8:]
    attributed = AsCaptum(hf.IntegratedGradients(), Two().eval()).attribute(parts, target=1)
    whole = AsCaptum(hf.IntegratedGradients(), small_net()).attribute(x, target=1)
    assert isinstance(attributed, tuple)
    assert isinstance(whole, Tensor)
    assert [part.shape for part in attributed] == [(3, 2, 4), (3, 4)]
    torch.testing.assert_close(torch.cat([part.flatten(1) for part in attributed], 1), whole)
    masks = torch.zeros(1, 2, 4).long(), torch.ones(1, 4).long()
    grouped = AsCaptum(hf.LeaveOneOut(), Two().eval(), (0, 1)).attribute(parts, target=1, feature_mask=masks)
    assert isinstance(grouped, tuple)
    joint = hf.TorchModel(small_net(), (0, 1)).ask(x, label=1, features=torch.arange(12) // 8)
    pair = hf.LeaveOneOut().attribute(joint)
    torch.testing.assert_close(grouped[0][:, 0, 0], pair[:, 0])
    torch.testing.assert_close(grouped[1][:, 0], pair[:, 1])
    assert len(captum.NoiseTunnel(AsCaptum(hf.Grad(), Two().eval())).attribute(parts, target=1)) == 2


def test_a_tuple_of_one_is_the_one() -> None:
    net, x = _cnn(), _x(2, 3, 6, 6)
    method = AsCaptum(hf.IntegratedGradients("blur"), net, (0, 1))
    (attributed,) = method.attribute((x,))
    torch.testing.assert_close(attributed, method.attribute(x))


def test_several_inputs_do_not_change_the_module() -> None:
    module = Two().eval()
    method = AsCaptum(hf.Grad(), hf.TorchModel(module, chunk=2))
    module.train()
    with pytest.raises(hf.HoldfastError, match="training mode"):
        method.attribute((_x(3, 8), _x(3, 4)))
    assert module.training


def test_whole_numbers_in_give_scores_out() -> None:
    attributed = AsCaptum(hf.Grad(), small_net()).attribute(torch.ones(2, 12).long())
    assert isinstance(attributed, Tensor)
    assert attributed.dtype == torch.double
    assert float(attributed.abs().max()) > 0


def test_bad_masks_targets_and_arguments_are_refused() -> None:
    method, x = AsCaptum(hf.Grad(), small_net()), _x(3, 12)
    with pytest.raises(
        hf.HoldfastError, match=r"feature_mask of shape \(1, 5\) does not cover inputs of shape \(3, 12\)"
    ):
        method.attribute(x, feature_mask=torch.zeros(1, 5).long())
    with pytest.raises(hf.HoldfastError, match="the number of its feature, from 0"):
        method.attribute(x, feature_mask=torch.full((1, 12), -1))
    with pytest.raises(hf.HoldfastError, match="feature_mask has 2 tensors for 1 inputs"):
        method.attribute(x, feature_mask=(torch.zeros(1, 12).long(), torch.zeros(1, 12).long()))
    with pytest.raises(hf.HoldfastError, match="target must be one class for each of 3 inputs"):
        method.attribute(x, target=[(1, 2), (1,), (2,)])
    with pytest.raises(hf.HoldfastError, match="label must be a class from 0 to 3"):
        method.attribute(x, target=7)
    with pytest.raises(hf.HoldfastError, match="expected a holdfast explainer"):
        AsCaptum(captum.Saliency(small_net()), small_net())
    with pytest.raises(hf.HoldfastError, match="has its own bounds"):
        AsCaptum(hf.Grad(), hf.TorchModel(small_net()), (0, 1))
