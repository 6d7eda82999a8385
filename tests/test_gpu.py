"""What only a GPU can show. Run it on one with ``pytest tests/test_gpu.py``; elsewhere it is skipped."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.models.execution import Execution
from holdfast.models.fusion import FusedConvolution
from holdfast.models.recording import Recordings
from holdfast.models.torch import layers_of
from holdfast.robustness.steps import multiplier
from toys import small_net, tiny_photo_net

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that CUDA can use")


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    """Some algorithms of cuDNN add in any order, so that no two runs are equal, recorded or not."""
    torch.backends.cudnn.deterministic = True
    yield
    torch.backends.cudnn.deterministic = False


NORMS = (1.0, 2.0, math.inf)
SIZES = tuple(size / 100 for size in range(5, 50, 5))


def _digit(refused: str | None = None) -> hf.Cases:
    model = hf.TorchModel(hf.data.mnist_cnn().module.to("cuda"), bounds=(0, 1))
    model._recordings.refused = refused
    return model.ask(hf.data.mnist().x[:1].to("cuda"))


def _small(module: nn.Module) -> tuple[hf.Cases, Tensor]:
    generator = torch.Generator().manual_seed(3)
    model = hf.TorchModel(module.to("cuda"), bounds=(-2, 2))
    x = torch.randn(2, 12, generator=generator).double().clamp(-2, 2).to("cuda")
    return model.ask(x), torch.rand(2, 3, 12, generator=generator).to("cuda") < 0.6


def _recordings(cases: hf.Cases) -> Recordings:
    return layers_of(cases.model)._recordings


@pytest.mark.parametrize("p", NORMS)
def test_replayed_searches_are_equal_bit_for_bit(p: float) -> None:
    radii = []
    for refused in ("for this test", None):
        cases = _digit(refused)
        subsets = ~hf.Grad()(cases).top(SIZES)
        method = hf.Judge.quick(p)
        radii.append(method(cases, subsets))
        if refused is None:
            assert len(_recordings(cases)._kept) > 5
            assert _recordings(cases).refused is None
            assert torch.equal(radii[-1].radius, method(cases, subsets).radius), "also when nothing is recorded anew"
    assert torch.equal(radii[0].radius, radii[1].radius)
    assert radii[0].queries == radii[1].queries


def test_replayed_boundary_normals_give_the_same_order() -> None:
    orders = [hf.GreedyAS.quick()(_digit(refused)).order for refused in ("for this test", None)]
    assert torch.equal(*orders)


def test_low_precision_is_recorded_too() -> None:
    x = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0)).to("cuda")
    orders = []
    for refused in ("for this test", None):
        execution = hf.Execution.for_images("cuda")
        model = hf.TorchModel(tiny_photo_net().to("cuda"), bounds=(0, 1), execution=execution)
        model._recordings.refused = refused
        orders.append(hf.GreedyAS(step=1)(model.ask(x, features="patches:16")).order)
    assert torch.equal(*orders)


class Branching(nn.Module):
    """Looks at its values to decide what to compute."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_net()

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.net(x)
        return z * 1.0 if bool(x.sum() > 0) else z + 0.0


class Selecting(Branching):
    """Computes rows that it selects, so that shapes depend on values."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x)
        positive = x.sum(1) > 0
        out[positive] = self.net(x[positive])
        return out


class Stateful(Branching):
    """Returns something else at every other call."""

    calls = 0
    shift: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.arange(4).double())

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        out: Tensor = self.net(x)
        return out + self.shift * (self.calls % 2)


class OnCpu(Branching):
    """Computes a part on the CPU."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x)
        return out + x.detach().cpu().mean().to(x) * 0


@pytest.mark.parametrize("kind", [Branching, Selecting, OnCpu])
def test_a_network_that_cannot_be_recorded_gives_the_same_answer_and_a_note(kind: type[nn.Module]) -> None:
    cases, subsets = _small(kind().eval())
    radii = hf.Judge.quick()(cases, subsets)
    assert any("could not be replayed as a CUDA graph" in note for note in radii.notes)
    torch.cuda.empty_cache()
    assert torch.rand(1, device="cuda").item() < 1, "torch goes on as if nothing had been recorded"
    plain, _ = _small(small_net())
    _recordings(plain).refused = "for this test"
    torch.testing.assert_close(radii.radius, hf.Judge.quick()(plain, subsets).radius, rtol=1e-6, atol=0)
    again, _ = _small(small_net())
    assert hf.Judge.quick()(again, subsets).notes == tuple(note for note in radii.notes if "replayed" not in note), (
        "another network can still be recorded"
    )


def test_a_network_that_keeps_state_is_not_replayed() -> None:
    cases, subsets = _small(Stateful().eval())
    radii = hf.MinNorm()(cases, subsets)
    assert any("computes something else" in note for note in radii.notes)


@pytest.fixture
def neighbour() -> Iterator[None]:
    """Another thread that uses the GPU all the time."""
    stop = threading.Event()

    def work() -> None:
        square = torch.rand(500, 500, device="cuda")  # made here: cuBLAS warns in a thread without a CUDA context
        while not stop.is_set():
            square.matmul(square).sum().item()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()


def test_recording_works_while_another_thread_uses_the_gpu(neighbour: None) -> None:
    cases = _digit()
    subsets = ~hf.Grad()(cases).top(SIZES)
    radius = hf.MinNorm()(cases, subsets).radius
    assert torch.equal(radius, hf.MinNorm()(cases, subsets).radius)


def test_two_threads_share_a_model() -> None:
    cases = _digit()
    subsets = ~hf.Grad()(cases).top(SIZES)
    radius, found = hf.MinNorm()(cases, subsets).radius, []
    threads = [threading.Thread(target=lambda: found.append(hf.MinNorm()(cases, subsets).radius)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all(torch.equal(radius, one) for one in found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 7, 784, 5000])
def test_the_kernel_solves_what_torch_solves(n: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(n)
    weight, limit, value = (torch.rand(33, n, generator=generator, dtype=dtype) for _ in range(3))
    weight[torch.rand(33, n, generator=generator) < 0.2] = 0
    limit[torch.rand(33, n, generator=generator) < 0.1] = math.inf
    limit[torch.rand(33, n, generator=generator) < 0.2] = 0
    goal = torch.rand(33, generator=generator, dtype=dtype) * n / 4
    goal[0] = 0
    ours = multiplier(weight.to("cuda"), limit.to("cuda"), value.to("cuda"), goal.to("cuda")).cpu()
    torch.testing.assert_close(ours, multiplier(weight, limit, value, goal), rtol=1e-4, atol=1e-6)


class Padded(nn.Conv2d):
    """A convolution with a padding layer inside, as in networks that were converted from TensorFlow."""

    def __init__(self, channels: int):
        super().__init__(channels, channels, 3, groups=channels)
        self.static_padding = nn.ZeroPad2d((0, 1, 1, 0))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.static_padding(x))


class Blocks(nn.Module):
    """Convolutions of all kinds that are fused, and one whose output is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 20, 3, 2, 1)
        self.wide = nn.Conv2d(20, 20, 5, 2, 2, groups=20, bias=False)
        self.padded = Padded(20)
        self.narrow = nn.Conv2d(20, 16, 1)
        self.twice = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.norm, self.relu, self.relu6 = nn.BatchNorm2d(20), nn.ReLU(inplace=True), nn.ReLU6()
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu6(self.norm(self.stem(x)))
        x = self.relu(self.wide(x))
        x = self.narrow(self.padded(x))
        x = x + self.twice(x).relu()
        scores: Tensor = self.head(x.mean((2, 3)))
        return scores


@pytest.mark.parametrize("low", [None, torch.float16])
def test_convolutions_with_their_activations_in_one_kernel_compute_the_same(low: torch.dtype | None) -> None:
    torch.manual_seed(0)
    net = Blocks().eval().to("cuda")
    x = torch.rand(3, 3, 37, 29, device="cuda")
    form = Execution(fold=True, channels_last=True).form(net, x[:2])
    layers = [layer for layer in form.modules() if isinstance(layer, FusedConvolution)]
    assert [(layer.depthwise, layer.limits) for layer in layers] == [
        (False, (0, 6)),
        (True, (0, math.inf)),
        (True, (-math.inf, math.inf)),
        (False, (-math.inf, math.inf)),
        (False, (-math.inf, math.inf)),
    ]
    found = []
    for module in (net, form):
        points = x.clone().requires_grad_(True)
        with torch.autocast("cuda", dtype=low, enabled=low is not None):
            scores = module(points)
        (slope,) = torch.autograd.grad(1000 * scores.float()[:, 1].sum(), points)  # half precision has no tiny numbers
        found.append((scores.detach().float(), slope))
    (ours, our_slope), (theirs, their_slope) = found
    assert (ours - theirs).abs().max() <= 2e-3 * theirs.abs().max()  # cuDNN rounds factors to ten bits
    assert torch.cosine_similarity(our_slope.flatten(1), their_slope.flatten(1)).min() > 0.999


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [3, 5, 7])
def test_depthwise_kernels_equal_torch(size: int, stride: int) -> None:
    torch.manual_seed(size)
    conv = nn.Conv2d(33, 33, size, stride, size // 2, groups=33).double().to("cuda").requires_grad_(False)
    fused = FusedConvolution(copy.deepcopy(conv).float(), (-0.1, 0.2))
    x = torch.randn(2, 33, 19, 23, device="cuda", dtype=torch.double, requires_grad=True)
    single = x.detach().float().requires_grad_(True)
    exact = conv(x).clamp(-0.1, 0.2)
    slope = torch.randn_like(exact)
    (theirs,) = torch.autograd.grad(exact, x, slope)
    value = fused(single)
    (ours,) = torch.autograd.grad(value, single, slope.float())
    assert torch.allclose(value.double(), exact, atol=1e-5)
    near = (ours.double() - theirs).abs() > 1e-4  # a value at a limit up to rounding may count as clamped
    assert near.float().mean() < 1e-3


def test_fused_kernels_keep_nan() -> None:
    conv = nn.Conv2d(16, 16, 3, padding=1, groups=16).to("cuda").requires_grad_(False)
    x = torch.zeros(1, 16, 5, 5, device="cuda")
    x[0, 0, 0, 0] = math.nan
    assert FusedConvolution(conv, (0, 6))(x).isnan().sum() == 4
