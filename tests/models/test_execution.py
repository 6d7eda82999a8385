from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import holdfast as hf
from holdfast.models.execution import Execution
from holdfast.models.folding import folded
from toys import tiny_photo_net


class Residual(nn.Module):
    """Convolutions and batch norms with a way around them; ``leak`` also uses a convolution's bare output."""

    def __init__(self, leak: bool = False):
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.deep, self.second = nn.Conv2d(6, 6, 3, padding=1, groups=3), nn.BatchNorm2d(6)
        self.alone, self.head, self.leak = nn.BatchNorm2d(6), nn.Linear(6, 4), leak

    def forward(self, x: Tensor) -> Tensor:
        bare = self.stem(x)
        x = self.first(bare).relu()
        x = x + self.second(self.deep(x)).relu()
        x = self.alone(x) + (bare if self.leak else 0)  # follows no convolution: stays
        out: Tensor = self.head(x.mean((2, 3)))
        return out


def net(leak: bool = False) -> Residual:
    torch.manual_seed(0)
    made = Residual(leak)
    for layer in made.modules():
        if isinstance(layer, nn.BatchNorm2d):
            assert layer.running_mean is not None
            assert layer.running_var is not None
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
            layer.weight.data.uniform_(0.5, 2)
            layer.bias.data.normal_()
    return made.eval().requires_grad_(False)


X = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_batch_norms_after_convolutions_are_folded_and_nothing_else_changes() -> None:
    module = net()
    made = folded(module, X)
    torch.testing.assert_close(made(X), module(X))
    norms = [name for name, layer in made.named_modules() if isinstance(layer, nn.BatchNorm2d)]
    assert norms == ["alone"]
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in module.modules()) == 3, "the module itself stays"
    plain = nn.Linear(3, 2)
    assert folded(plain, torch.rand(2, 3)) is plain


class Padded(nn.Conv2d):
    """A convolution that pads its own input, as in networks from TensorFlow."""

    def __init__(self, sizes: tuple[int, int, int, int]):
        super().__init__(3, 4, 3)
        self.own = nn.ZeroPad2d(sizes)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.conv2d(self.own(x), self.weight, self.bias, self.stride, self.padding)


def test_padding_inside_a_convolution_is_folded_where_both_sides_are_equal() -> None:
    for sizes, left in (((1, 1, 2, 2), 0), ((0, 1, 0, 1), 1)):
        module = nn.Sequential(Padded(sizes), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5)).eval()
        expected = module(X)
        made = folded(module, X)
        assert sum(type(layer) is nn.ZeroPad2d for layer in made.modules()) == left
        torch.testing.assert_close(made(X), expected)
        torch.testing.assert_close(module(X), expected)


def test_a_layer_used_twice_is_not_folded() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.norm(self.conv(self.norm(self.conv(x)))).mean((2, 3))
            return out

    module = Twice().eval()
    assert folded(module, X) is module


@pytest.mark.parametrize(
    "execution", [Execution(fold=True), Execution(channels_last=True), Execution(fold=True, channels_last=True)]
)
def test_every_form_computes_the_same(execution: Execution) -> None:
    plain, fast = hf.TorchModel(net(), bounds=(0, 1)), hf.TorchModel(net(), bounds=(0, 1), execution=execution)
    assert execution.form(fast.module, X) is not fast.module
    torch.testing.assert_close(fast(X), plain(X))
    for ours, theirs in zip(fast.gradient(X, _first), plain.gradient(X, _first), strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(fast.with_module(copy.deepcopy(fast.module))(X), plain(X))
    assert fast.on("cpu") is fast


def _first(logits: Tensor) -> Tensor:
    return logits[:, 0]


def test_a_form_that_would_compute_something_else_is_not_taken() -> None:
    module = net(leak=True)
    assert not torch.allclose(folded(module, X)(X), module(X))
    assert Execution(fold=True).form(module, X) is module


def test_decisions_are_asked_of_the_module_as_it_is() -> None:
    model = hf.TorchModel(net(), bounds=(0, 1), execution=Execution(fold=True))
    seen: list[int] = []
    itself = model.module  # copies of it carry the hook along
    itself.register_forward_hook(lambda layer, *_: seen.extend([1] if layer is itself else []))
    model(X)
    built = len(seen)
    model(X), model.gradient(X, _first)
    assert len(seen) == built, "passes go through the faster form"
    cases = model.ask(X)
    assert len(seen) == built + 1
    hf.MinNorm(steps=4)(cases, torch.ones(5, 1, 64, dtype=torch.bool))
    assert len(seen) > built + 1, "a witness is measured on the module itself"


def test_low_precision_is_for_searches_that_claim_nothing() -> None:
    x, patches = (
        torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(1)),
        hf.Features.patches((3, 64, 64), 16),
    )
    model = hf.TorchModel(tiny_photo_net(), bounds=(0, 1), execution=Execution(low_precision=torch.bfloat16))
    exact, plain = hf.TorchModel(tiny_photo_net(), bounds=(0, 1)), model.gradient(x, _first)[1]
    torch.testing.assert_close(plain, exact.gradient(x, _first)[1], rtol=0, atol=0)
    rough = model.gradient(x, _first, low_precision=True)[1]
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, plain)
    assert float(torch.cosine_similarity(rough.flatten(1), plain.flatten(1)).min()) > 0.9
    rounded, same = model.ask(x, features=patches), exact.ask(x, features=patches)
    subsets = torch.ones(3, 1, 16, dtype=torch.bool)
    assert torch.equal(hf.MinNorm()(rounded, subsets).radius, hf.MinNorm()(same, subsets).radius)
    values = [hf.RobustnessRest(hf.MinNorm())(same, hf.GreedyAS()(one).top([0.25])) for one in (rounded, same)]
    torch.testing.assert_close(*values, rtol=0.1, atol=0)


def test_padded_batches_have_few_sizes_and_change_nothing() -> None:
    model = hf.TorchModel(net(), bounds=(0, 1), execution=Execution(pad_batches=True))
    sizes: set[int] = set()

    def note(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        sizes.add(len(given[0]))

    model.module.register_forward_pre_hook(note)
    model(X)
    sizes.clear()
    plain = hf.TorchModel(net(), bounds=(0, 1))
    for count in (1, 2, 3, 5):
        torch.testing.assert_close(model(X[:count]), plain(X[:count]))
        torch.testing.assert_close(model.gradient(X[:count], _first)[1], plain.gradient(X[:count], _first)[1])
    assert sizes == {1, 2, 3, 6}
    assert model.queries.forward == 5 + 2 * (1 + 2 + 3 + 5), "padding rows are not counted"


def test_tuning_finds_an_execution_and_keeps_what_is_computed() -> None:
    model = hf.TorchModel(net(), bounds=(0, 1))
    tuned = model.tuned(X)
    assert tuned is not model
    assert tuned.chunk(X) >= 1
    assert tuned.chunk(torch.rand(1, 3, 64, 64)) == model.chunk(torch.rand(1, 3, 64, 64)), "measured for one shape"
    assert tuned.execution.low_precision is None, "half precision is for GPUs"
    torch.testing.assert_close(tuned(X), model(X))
    assert replace(model.execution) == Execution(), "the model itself stays"


def test_inputs_that_do_not_fit_are_refused_before_tuning() -> None:
    with pytest.raises(hf.HoldfastError, match="failed in its forward pass"):
        hf.TorchModel(net(), bounds=(0, 1)).tuned(torch.rand(2, 5, 8, 8))


class Activated(nn.BatchNorm2d):
    """A batch norm that does more, as some libraries have."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu()


def _followed(*layers: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(4)).eval()


def test_what_only_looks_like_a_pair_is_left_alone() -> None:
    for module in (
        _followed(nn.Conv2d(3, 5, 3), Activated(5)),
        _followed(nn.Conv2d(3, 5, 3), nn.ReLU(inplace=True), nn.BatchNorm2d(5)),
        _followed(nn.ConvTranspose2d(3, 5, 3), nn.BatchNorm2d(5)),
        _followed(parametrizations.weight_norm(nn.Conv2d(3, 5, 3)), nn.BatchNorm2d(5)),
        _followed(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5, track_running_stats=False)),
    ):
        expected = module(X)
        assert folded(module, X) is module
        torch.testing.assert_close(Execution(fold=True, channels_last=True).form(module, X)(X), expected)


def test_asking_leaves_the_precision_of_convolutions_as_it_was() -> None:
    conv = getattr(torch.backends.cudnn, "conv", None)
    if conv is None:
        pytest.skip("torch before 2.9 has one switch, and nothing to mix it up with")
    before = conv.fp32_precision
    try:
        conv.fp32_precision = "tf32"
        for execution in (Execution(), Execution(exact_decisions=True)):
            hf.TorchModel(net(), bounds=(0, 1), execution=execution).ask(X)
            assert conv.fp32_precision == "tf32"
    finally:
        conv.fp32_precision = before


def test_numbers_that_half_precision_cannot_hold_are_computed_in_full() -> None:
    class Loud(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = tiny_photo_net()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.net(x)
            return out if out.dtype == torch.float32 else out * float("inf")  # as an overflow would

    x, patches = (
        torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)),
        hf.Features.patches((3, 64, 64), 16),
    )
    model = hf.TorchModel(Loud().eval(), bounds=(0, 1), execution=Execution(low_precision=torch.bfloat16))
    exact = hf.TorchModel(Loud().eval(), bounds=(0, 1))
    orders = [hf.GreedyAS.quick()(one.ask(x, features=patches)).order for one in (model, exact)]
    assert torch.equal(*orders)
    assert model.execution == Execution(low_precision=torch.bfloat16), "the model itself stays"


def test_an_execution_is_copied_to_another_process_and_device() -> None:
    model = hf.TorchModel(net(), bounds=(0, 1), execution=Execution.for_images("cpu"))
    model(X)
    sent = copy.deepcopy(model)  # travels as it would to another process
    assert sent._form is None
    assert sent.execution == model.execution
    torch.testing.assert_close(sent(X), model(X))
    there = model.execution.on("cuda")
    assert (there.exact_decisions, there.pad_batches, there.low_precision) == (True, True, torch.float16)
    assert there.on("cpu") == model.execution
    assert Execution().on("cuda") == Execution(), "the plain execution stays plain"


def test_padded_batches_keep_to_the_chunk_size() -> None:
    model = hf.TorchModel(net(), bounds=(0, 1), chunk=5, execution=Execution(pad_batches=True))
    sizes: list[int] = []
    model.module.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    model(torch.rand(13, 3, 8, 8))
    sizes.clear()
    model(torch.rand(13, 3, 8, 8))
    assert max(sizes) == 5


@pytest.mark.parametrize("explainer", [hf.DeepLift(), hf.GreedyAS.quick(), hf.LeaveOneOut(), hf.IntegratedGradients()])
def test_explanations_are_the_same_for_every_execution(explainer: hf.Explainer) -> None:
    x, patches = (
        torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)),
        hf.Features.patches((3, 64, 64), 16),
    )
    executions = (Execution(), Execution(fold=True, channels_last=True, pad_batches=True))
    orders = [
        explainer(hf.TorchModel(tiny_photo_net(), bounds=(0, 1), execution=one).ask(x, features=patches)).order[:, :4]
        for one in executions
    ]
    assert torch.equal(*orders)


def test_recording_alone_makes_no_other_execution() -> None:
    execution = Execution(record=False)
    assert execution.on("cuda") == execution
    assert hf.TorchModel(net(), bounds=(0, 1), execution=execution).tuned(X).execution.record is False
