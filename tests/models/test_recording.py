"""Recorded steps on a CPU: a stand-in for the CUDA graph runs the step. ``tests/test_gpu.py`` has the real one."""

from __future__ import annotations

import copy
import math
import pickle
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import holdfast as hf
from holdfast.models import recording
from holdfast.models import torch as torch_models
from holdfast.models.model import Model, Queries, Step
from toys import small_net

NORMS = (1.0, 2.0, math.inf)


class StandIn:
    """Runs the step on its own copies of the arguments, as a CUDA graph does."""

    made = 0
    bytes_held = 1
    error: Exception | None = None
    shift = 0.0

    def __init__(self, model: Model, step: Step, tensors: tuple[Tensor, ...], spent: Queries, memory: Any):
        if StandIn.error is not None:
            raise StandIn.error
        self.step, self.spent = step, spent
        self.inputs = [tensor.clone() for tensor in tensors]
        StandIn.made += 1

    def replay(self, model: Model, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        before = model.queries
        for own, tensor in zip(self.inputs, tensors, strict=True):
            own.copy_(tensor)
        out = self.step(model, *self.inputs)
        model.queries = before + self.spent
        return tuple(one + StandIn.shift if one.is_floating_point() else one for one in out)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    """Let steps of at most 64 rows be recorded on the CPU."""
    for module in (recording, torch_models):
        monkeypatch.setattr(module, "should_record", lambda rows, device: rows <= 64)
    monkeypatch.setattr(recording, "_can_record", lambda device: True)
    monkeypatch.setattr(recording, "_on", lambda device: nullcontext())
    monkeypatch.setattr(recording, "_recover", lambda device, memory: None)
    monkeypatch.setattr(recording, "_Recording", StandIn)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    monkeypatch.setattr(StandIn, "made", 0)
    monkeypatch.setattr(StandIn, "error", None)
    monkeypatch.setattr(StandIn, "shift", 0.0)
    return StandIn


def _cases(module: nn.Module | None = None) -> tuple[hf.Cases, Tensor]:
    generator = torch.Generator().manual_seed(7)
    model = hf.TorchModel(small_net() if module is None else module, bounds=(-2, 2))
    cases = model.ask(torch.randn(3, 12, generator=generator).double().clamp(-2, 2))
    return cases, torch.rand(3, 3, 12, generator=generator) < 0.6


def _radii(p: float, cases: hf.Cases, subsets: Tensor) -> list[Tensor]:
    methods = (hf.MinNorm(p, 60), hf.MinNorm(p, 40, restarts=2), hf.Judge.quick(p))
    return [method(cases, subsets).radius for method in methods]


@pytest.mark.parametrize("p", NORMS)
def test_recorded_searches_find_the_same_radii(p: float, recorder: type[StandIn]) -> None:
    cases, subsets = _cases()
    recorded = _radii(p, cases, subsets)
    assert recorder.made > 5
    with pytest.MonkeyPatch.context() as plain:
        for module in (recording, torch_models):
            plain.setattr(module, "should_record", lambda rows, device: False)
        for ours, theirs in zip(recorded, _radii(p, cases, subsets), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0)


def test_recorded_boundary_normals_give_the_same_order(recorder: type[StandIn]) -> None:
    cases = _cases()[0][:1]
    order = hf.GreedyAS(step=1)(cases).order
    assert recorder.made == 1
    with pytest.MonkeyPatch.context() as plain:
        plain.setattr(recording, "should_record", lambda rows, device: False)
        assert torch.equal(order, hf.GreedyAS(step=1)(cases).order)


def test_a_step_runs_once_then_is_recorded_then_replayed(recorder: type[StandIn]) -> None:
    cases, _ = _cases()
    calls = []

    def step(model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        calls.append(len(tensors[0]))
        model.queries += Queries(forward=len(tensors[0]))
        return (tensors[0] * 2,)

    before, made = cases.model.queries, []
    for number in range(4):
        (doubled,) = cases.model.run(step, torch.full((5, 2), float(number)))
        assert doubled.tolist() == [[2.0 * number] * 2] * 5
        made.append(recorder.made)
    assert made == [0, 1, 1, 1]
    assert cases.model.queries - before == Queries(forward=20), "recording a step is not counted"
    cases.model.run(step, torch.zeros(6, 2))
    assert recorder.made == 1, "other shapes need another recording"
    cases.model.run(step, torch.zeros(65, 2))
    cases.model.run(step, torch.zeros(65, 2))
    assert recorder.made == 1, "many rows are not recorded"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("operation not permitted when stream is capturing"), "operation not permitted when stream is"),
        (torch.OutOfMemoryError("CUDA out of memory."), "the GPU has no memory left for it"),
        (None, "its recording computes something else"),
    ],
)
def test_what_cannot_be_recorded_gives_the_same_answer_and_a_note(
    error: Exception | None, reason: str, recorder: type[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, subsets = _cases()
    judged, order = hf.Judge.quick()(cases, subsets), hf.GreedyAS(step=1)(cases[:1])
    assert judged.notes == tuple(note for note in judged.notes if "replayed" not in note)
    cases, subsets = _cases()
    monkeypatch.setattr(StandIn, "error", error)
    monkeypatch.setattr(StandIn, "shift", 0.0 if error else 0.1)
    again, order_again = hf.Judge.quick()(cases, subsets), hf.GreedyAS(step=1)(cases[:1])
    assert torch.equal(judged.radius, again.radius), "the same batches, so the same bits"
    assert torch.equal(order.order, order_again.order)
    for notes in (again.notes, order_again.notes):
        assert any(f"could not be replayed as a CUDA graph ({reason}" in note for note in notes)
    assert judged.queries == again.queries


def test_layers_with_hooks_are_not_recorded(recorder: type[StandIn]) -> None:
    net, seen = small_net(), []
    net[0].register_forward_hook(lambda *_: seen.append(1))
    cases, subsets = _cases(net)
    radii = hf.MinNorm(steps=30)(cases, subsets)
    assert recorder.made == 0
    assert any("its layers have hooks" in note for note in radii.notes)
    assert len(seen) > 20


def test_recording_can_be_switched_off(recorder: type[StandIn]) -> None:
    cases, subsets = _cases()
    model = hf.TorchModel(cases.model.module, bounds=(-2, 2), execution=hf.Execution(record=False))  # type: ignore[attr-defined]
    radii = hf.MinNorm(steps=30)(model.ask(cases.x), subsets)
    assert recorder.made == 0
    assert radii.notes == ()
    assert torch.equal(radii.radius, hf.MinNorm(steps=30)(cases, subsets).radius)
    assert recorder.made > 0


def test_copies_of_a_model_record_anew(recorder: type[StandIn]) -> None:
    cases, subsets = _cases()
    radius = hf.MinNorm(steps=30)(cases, subsets).radius
    made = recorder.made
    for model in (copy.deepcopy(cases.model), pickle.loads(pickle.dumps(cases.model))):
        again = hf.MinNorm(steps=30)(model.ask(cases.x), subsets).radius
        assert torch.equal(radius, again)
    assert recorder.made == 3 * made


def test_old_recordings_are_dropped(recorder: type[StandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_KEPT", 2)
    cases, _ = _cases()

    def step(model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tensors

    for rows in (1, 2, 3, 1):
        for _ in range(2):
            cases.model.run(step, torch.zeros(rows))
    assert recorder.made == 4, "the first one was dropped and is made again"


def test_recordings_that_hold_much_memory_are_dropped(recorder: type[StandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "memory_budget", lambda device: 10)
    monkeypatch.setattr(StandIn, "bytes_held", 6)
    cases, _ = _cases()
    for rows in (1, 2, 1):
        for _ in range(3):
            cases.model.run(_same, torch.zeros(rows))
    assert recorder.made == 3


def _same(model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
    return tensors


def test_a_network_with_a_new_weight_is_recorded_anew(recorder: type[StandIn]) -> None:
    net = small_net()
    cases, subsets = _cases(net)
    for _ in range(2):
        hf.MinNorm(steps=30)(cases, subsets)
    made = recorder.made
    hf.MinNorm(steps=30)(cases, subsets)
    assert recorder.made == made
    first: Any = net[0]
    first.weight = nn.Parameter(first.weight.detach().clone(), requires_grad=False)
    hf.MinNorm(steps=30)(cases, subsets)
    assert recorder.made > made


class FakeGraph:
    """Stands for ``torch.cuda.CUDAGraph``: a replay runs the function again, on the tensors of the recording."""

    def replay(self) -> None:
        for output, new in zip(self.outputs, self.step(None, *self.inputs), strict=True):
            output.copy_(new)

    def __init__(self, step: Step, inputs: list[Tensor], outputs: tuple[Tensor, ...]):
        self.step, self.inputs, self.outputs = step, inputs, outputs


def test_a_replay_sees_tensors_that_changed_and_tensors_that_are_new() -> None:
    def step(model: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return (tensors[0] + tensors[1],)

    made = object.__new__(recording._Recording)
    made._spent, made._inputs, made._given = Queries(), [torch.zeros(3), torch.zeros(3)], [None, None]
    made._outputs = (torch.zeros(3),)
    made._graph = FakeGraph(step, made._inputs, made._outputs)  # type: ignore[assignment]
    model, first, second = _cases()[0].model, torch.ones(3), torch.ones(3)
    results = [made.replay(model, (first, second))[0]]
    results.append(made.replay(model, (first, second))[0])
    first.mul_(5)
    results.append(made.replay(model, (first, second))[0])
    results.append(made.replay(model, (torch.full((3,), 9.0), second))[0])
    assert [one[0].item() for one in results] == [2, 2, 6, 10]


def test_batches_are_not_filled_up_beyond_the_batch_size(recorder: type[StandIn]) -> None:
    net, sizes = small_net(), set()
    cases, subsets = _cases(net)
    model = hf.TorchModel(net, bounds=(-2, 2), chunk=5)
    again = model.ask(cases.x)
    net.register_forward_pre_hook(lambda _, given: sizes.add(len(given[0])))
    hf.MinNorm()(again, subsets)
    assert max(sizes) == 5


def test_filled_batches_that_do_not_fit_memory_are_halved(
    recorder: type[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = _cases()[0][:1]
    order = hf.GreedyAS(step=1)(cases).order
    gradient = cases.model.gradient  # type: ignore[attr-defined]

    def scarce(rows: Tensor, *others: Any, **settings: Any) -> Any:
        if len(rows) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return gradient(rows, *others, **settings)

    monkeypatch.setattr(cases.model, "gradient", scarce)
    assert torch.equal(order, hf.GreedyAS(step=1)(cases).order)


def test_rows_that_cannot_move_do_not_try_all_classes() -> None:
    net = nn.Sequential(nn.Linear(12, 200)).double().eval().requires_grad_(False)
    cases = hf.TorchModel(net).ask(torch.randn(2, 12, generator=torch.Generator().manual_seed(0)).double())
    subsets = torch.tensor([[True] * 12, [False] * 12])[:, None]
    radii = hf.MinNorm(steps=60)(cases, subsets)
    assert torch.isfinite(radii.radius[:, 0]).tolist() == [True, False]
    assert radii.queries.forward < 300
