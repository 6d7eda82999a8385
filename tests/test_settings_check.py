"""Settings are checked by type and range in one place; extensions of others need no code for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.reference import Reference
from holdfast.settings import Count, Range, Settings, read_setting
from holdfast.sizes import Size
from holdfast.tensors import read_tensor


def _made(cls: Any, **settings: Any) -> Any:
    return cls(**settings)


@dataclass(frozen=True)
class Plain(Settings):
    steps: int = 10
    rate: float = 0.5
    small: Annotated[float, Range(over=0, under=1)] = 0.5
    kind: Literal["a", "b"] = "a"
    sizes: tuple[float, ...] | None = None
    other: Any = None

    def __post_init__(self) -> None:
        assert self.steps + 0 == self.steps, "checked before"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": "ten"}, "Plain.steps must be a whole number, got 'ten'."),
        ({"steps": True}, "Plain.steps must be a whole number, got True."),
        ({"steps": 1.0}, "Plain.steps must be a whole number, got 1.0."),
        ({"rate": "fast"}, "Plain.rate must be a number, got 'fast'."),
        ({"small": math.nan}, "Plain.small must be a number > 0 and < 1, got nan."),
        ({"small": 1}, "Plain.small must be a number > 0 and < 1, got 1."),
        ({"kind": "c"}, "Plain.kind must be one of a, b, got 'c'."),
        ({"sizes": [0.1, "x"]}, "Plain.sizes must be a tuple, each of it a number or None, got [0.1, 'x']."),
    ],
)
def test_a_wrong_setting_is_one_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(hf.HoldfastError) as caught:
        Plain(**settings)
    assert str(caught.value) == said


def test_valid_settings_stay_as_they_are() -> None:
    assert repr(Plain(rate=1)) == "Plain(steps=10, rate=1, small=0.5, kind='a', sizes=None, other=None)"
    assert Plain(rate=math.inf).rate == math.inf
    made = Plain(steps=np.int64(3), sizes=[0.1])  # type: ignore[arg-type]  # accepted beside the types
    assert (type(made.steps), made.sizes) == (int, (0.1,))


def _odd(value: object) -> Any:
    """Return a value that a type checker would refuse."""
    return value


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: hf.MinNorm(steps=_odd("ten")), "MinNorm.steps must be a whole number >= 1, got 'ten'."),
        (lambda: hf.KernelShap(samples=_odd(1.5)), "KernelShap.samples must be a whole number >= 2, got 1.5."),
        (lambda: hf.PGD(first=math.nan), "PGD.first must be a finite number > 0, got nan."),
        (lambda: hf.GreedyAS(step=-1), "GreedyAS.step must be at least one feature, got -1."),
        (lambda: hf.GreedyAS(objective=_odd(3)), "GreedyAS.objective: expected a holdfast criterion, got int."),
        (lambda: hf.MinNorm(steps=10**12), "MinNorm.steps must be a whole number <= 2147483647, got 1000000000000."),
    ],
)
def test_the_settings_of_extensions_are_checked(make: Any, said: str) -> None:
    with pytest.raises(hf.HoldfastError) as caught:
        make()
    assert str(caught.value) == said


def test_an_extension_of_another_package_is_checked_before_its_own_check() -> None:
    @dataclass(frozen=True)
    class Other(hf.Attribution):
        absolute: bool = False
        seed: int = 0
        depth: int = 2
        source: ClassVar[str] = "an example"

        def __post_init__(self) -> None:
            if self.depth < 2:
                raise hf.HoldfastError("too shallow.")

        def attribute(self, cases: hf.Cases, progress: Any = None) -> torch.Tensor:
            return cases.features.pool(cases.x)

    with pytest.raises(hf.HoldfastError, match=r"Other\.depth must be a whole number"):
        Other(depth="deep")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(hf.HoldfastError, match="too shallow"):
        Other(depth=1)


def test_a_union_names_what_is_wrong() -> None:
    assert read_setting(None, Count | None, "n") is None
    with pytest.raises(hf.HoldfastError, match="n must be a whole number >= 1, got 0"):
        read_setting(0, Count | None, "n")


@dataclass(frozen=True)
class Unions(Settings):
    which: hf.Criterion | Literal["auto"] = "auto"
    size: Size | Literal["auto"] = "auto"
    judge: hf.Robustness | hf.Criterion = hf.Insertion()  # noqa: RUF009  # frozen
    one: hf.RobustnessRest | None = None
    several: tuple[Reference, ...] = (0.0,)


def test_a_union_takes_every_kind_that_it_names() -> None:
    made = Unions("insertion", 3, "min-norm", several=[0.5, "blur"])  # type: ignore[arg-type]  # converted
    assert made == Unions(hf.Insertion(), 3, hf.MinNorm(), several=(0.5, "blur"))
    assert (Unions().which, Unions().size) == ("auto", "auto")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"which": 5}, "which: expected a holdfast criterion, got int"),
        ({"size": "x"}, "size is a share of the features"),
        ({"one": "insertion"}, "one must be a RobustnessRest, got 'insertion'"),
        ({"several": 0.5}, "several must be a tuple or a list, got 0.5"),
        ({"several": ["x"]}, r"several\[0\] must be a number"),
    ]
    for settings, says in wrong:
        with pytest.raises(hf.HoldfastError, match=says):
            Unions(**settings)


def test_tensors_of_any_layout_are_read() -> None:
    dense = torch.eye(2)
    for given in (dense.to_sparse(), dense.tolist(), dense.numpy()[::-1][::-1]):
        assert torch.equal(read_tensor(given, "x"), dense)
    for wrong in (dense.to("meta"), dense * 1j, object(), [[1], [1, 2]], np.array(["a"], dtype=object), None):
        with pytest.raises(hf.HoldfastError, match=r"^x must be a tensor or an array.*\.$"):
            read_tensor(wrong, "x")


class Failing(nn.Module):
    def __init__(self, error: BaseException | None):
        super().__init__()
        self.net, self.error = nn.Linear(3, 2), error

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if self.error is not None:
            raise self.error
        scores: torch.Tensor = self.net(rows.detach())
        return scores


def test_what_a_model_raises_is_named_with_its_place() -> None:
    model = hf.TorchModel(Failing(KeyError("weights")).eval())
    with pytest.raises(hf.HoldfastError, match=r"failed in its forward pass \(rows \[9, 3\]\): KeyError: 'weights'\.$"):
        model.ask(torch.rand(1, 3))
    with pytest.raises(KeyboardInterrupt):
        hf.TorchModel(Failing(KeyboardInterrupt()).eval()).ask(torch.rand(1, 3))


def test_a_model_without_gradients_is_named() -> None:
    cases = hf.TorchModel(Failing(None).eval()).ask(torch.rand(1, 3))
    for explainer in (hf.Grad(), hf.IntegratedGradients()):
        with pytest.raises(hf.HoldfastError, match="the model gives no gradient"):
            explainer(cases)
