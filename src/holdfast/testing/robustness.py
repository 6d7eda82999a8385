"""The laws of Robustness-S, for authors of attacks, certificates and exact methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from holdfast.cases import ANY, Cases
from holdfast.errors import HoldfastError
from holdfast.features import Features
from holdfast.models.model import Access
from holdfast.models.torch import TorchModel
from holdfast.robustness import Attack, Certificate, Exact, ExactLinear, MinNorm, Radii, Robustness

_CLOSE = 1e-6  # relative difference that rounding explains


@dataclass(frozen=True, eq=False)
class _Question:
    """Cases with nested subsets ``[B, K, d]``; ``exact [B, K]`` are the true radii where they are known."""

    name: str
    cases: Cases
    subsets: Tensor
    exact: Tensor | None = None


def check_robustness(method: Robustness, cases: Sequence[Cases] = ()) -> None:
    """Check that a robustness method obeys the laws of Robustness-S.

    The method is asked about linear models, with and without a box, and about a small ReLU network. It may refuse some
    of them with a ``HoldfastError``. The laws are:

    - *kind*: the method is an ``Attack``, a ``Certificate`` or an ``Exact`` method, and its radii say so.
    - *numbers*: no radius is negative or NaN.
    - *proof*: an attack proves nothing, a certificate everything.
    - *mask*, *box*, *decision*, *class*, *length*: a witness moves only free features, lies in the box, changes the
      decision to ``new_class``, and is as far from x as the radius says. *no witness*: elsewhere it is x itself.
    - *monotone*: freeing more features never increases the radius.
    - *bound*: a proven radius is never above the true one, nor above that of a witness.
    - *determinism*, *global state*, *model*: the same question has the same answer, and neither the generator of
      torch nor the model changes.
    - *cost*, *name*: queries are counted and the settings are recorded.
    - *radius alone*, *batch*: neither the call for radii alone nor the other cases change a radius.
    - *empty subset*, *changed label*, *target*: radii of degenerate and targeted questions are right.
    - *informative*: on some question the method finds or proves something.

    >>> check_robustness(MinNorm(steps=20))

    Args:
        method: The method, with settings that keep it fast.
        cases: Further cases to ask about, for a method that is made for other models.

    Raises:
        AssertionError: A law does not hold; the message is one sentence that names it.
    """
    if not isinstance(method, (Attack, Certificate, Exact)):
        raise _broken(method, "kind", "it derives from none of Attack, Certificate and Exact")
    answers = []
    for question in [*_questions(method.p), *(_asked(f"cases {i}", one) for i, one in enumerate(cases))]:
        try:
            radii = method(question.cases, question.subsets)
        except HoldfastError:
            continue
        answers.append(radii)
        for law in _LAWS:
            law(method, question, radii)
    if not answers:
        raise _broken(method, "informative", "it refuses every question: pass cases that it accepts")
    if not any(_informative(method, radii) for radii in answers):
        raise _broken(method, "informative", "it finds and proves nothing on any question")


def _informative(method: Robustness, radii: Radii) -> bool:
    if isinstance(method, Certificate):
        return bool((radii.radius > 0).any())
    return bool((radii.witnessed if isinstance(method, Attack) else radii.proven).any())


# ---------------------------------------------------------------------- the laws


def _kind(method: Robustness, question: _Question, radii: Radii) -> None:
    bound = "upper" if isinstance(method, Attack) else "lower" if isinstance(method, Certificate) else "exact"
    _require(radii.bound == bound, method, "kind", f"its bound is {radii.bound!r} and should be {bound!r}")
    _require(radii.method == repr(method), method, "name", "the radii do not record its repr")
    wrong = radii.radius.isnan() | (radii.radius < 0)
    _require(~wrong, method, "numbers", f"a radius is negative or NaN on {question.name}")
    if not isinstance(method, Exact):
        proven = radii.proven if isinstance(method, Certificate) else ~radii.proven
        _require(proven, method, "proof", "an attack proves nothing and a certificate everything it says")


def _witness(method: Robustness, question: _Question, radii: Radii) -> None:
    cases, at = question.cases, radii.witnessed
    b, k = radii.radius.shape
    x = cases.x[:, None].expand_as(radii.witness)
    same = (radii.witness == x).flatten(2).all(2)
    none = same & (torch.isinf(radii.radius) | torch.tensor(isinstance(method, Certificate)))
    _require(at | none, method, "no witness", f"a row of {question.name} without a witness has a radius or a point")
    _require(~at | ~torch.isinf(radii.radius), method, "no witness", "an infinite radius has a new class")
    if isinstance(method, Certificate):
        _require(~at, method, "no witness", "a certificate has witnesses")
    case = torch.arange(b, device=at.device).repeat_interleave(k)
    free = cases.features.expand(question.subsets.flatten(0, 1), case).expand(b * k, *cases.x.shape[1:])
    moved = (radii.witness != x).flatten(0, 1)
    _require(~(moved & ~free), method, "mask", f"a witness moves a feature that is not free on {question.name}")
    if cases.model.low is not None and cases.model.high is not None:
        inside = (radii.witness >= cases.model.low) & (radii.witness <= cases.model.high)
        _require(inside.flatten(2).all(2) | ~at, method, "box", f"a witness leaves the box on {question.name}")
    decided = cases.model(radii.witness.flatten(0, 1), exact=True).argmax(1).view(b, k)
    aimed = cases.target[:, None] != ANY
    changed = torch.where(aimed, decided == cases.target[:, None], decided != cases.label[:, None])
    _require(changed | ~at, method, "decision", f"a witness does not change the decision on {question.name}")
    _require((decided == radii.new_class) | ~at, method, "class", "the class of a witness is not new_class")
    length = torch.linalg.vector_norm((radii.witness - x).flatten(2), method.p, dim=2)
    close = torch.isclose(length, radii.radius, rtol=_CLOSE, atol=_CLOSE * float(cases.x.abs().max()))
    _require(close | ~at, method, "length", f"a radius is not the distance of its witness on {question.name}")


def _monotone(method: Robustness, question: _Question, radii: Radii) -> None:
    falling = radii.radius[:, 1:] <= radii.radius[:, :-1]
    _require(falling, method, "monotone", f"freeing more features increases a radius on {question.name}")


def _bound(method: Robustness, question: _Question, radii: Radii) -> None:
    if isinstance(method, Attack):
        return  # its witnesses have been checked
    most = question.exact
    if most is None and question.cases.model.access >= Access.GRADIENTS:
        most = MinNorm(method.p, steps=60)(question.cases, question.subsets).radius
    if most is not None:
        below = radii.radius <= most * (1 + _CLOSE)
        _require(below | ~radii.proven, method, "bound", f"a proven radius is above a known one on {question.name}")


def _repeat(method: Robustness, question: _Question, radii: Radii) -> None:
    cases, subsets = question.cases, question.subsets
    state, before, queries = torch.get_rng_state(), _state(cases), cases.model.queries
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        generator = torch.get_rng_state()
        again = method(cases, subsets)
        spent = cases.model.queries - queries
        untouched = torch.equal(torch.get_rng_state(), generator)
    torch.set_rng_state(state)
    same = torch.equal(again.radius, radii.radius) and torch.equal(again.witness, radii.witness)
    _require(same, method, "determinism", f"two calls give different answers on {question.name}")
    _require(untouched, method, "global state", "it draws from or seeds torch's global generator")
    unchanged = all(torch.equal(a, b) for a, b in zip(before, _state(cases), strict=True))
    _require(unchanged, method, "model", f"it changes the model of {question.name}")
    _require(again.queries == spent, method, "cost", "the queries of the radii are not those of the model")
    alone = method.radius(cases, subsets)
    _require(torch.equal(alone, radii.radius), method, "radius alone", "radius() differs from the radii of a call")
    rtol = 1e-5 if cases.x.dtype == torch.float64 else 1e-3
    one = method(cases[1], subsets[1:2]).radius if len(cases) > 1 else radii.radius[1:2]
    close = torch.isclose(one, radii.radius[1:2], rtol=rtol, atol=0)
    _require(close, method, "batch", f"a case asked by itself has another radius on {question.name}")


def _degenerate(method: Robustness, question: _Question, radii: Radii) -> None:
    cases, subsets = question.cases, question.subsets
    empty = method(cases, torch.zeros_like(subsets[:, :2]))
    infinite = empty.censored if isinstance(method, Attack) else empty.unreachable
    _require(infinite, method, "empty subset", "it should be censored by an attack and unreachable by proof otherwise")
    label = (cases.label + 1) % len(cases.model.classes)
    other = cases.model.ask(cases.x, label=label, features=cases.features)
    changed = method(other, subsets[:, -1:])
    differs = other.model(other.x, exact=True).argmax(1) != label
    zero = (changed.radius[:, 0] == 0) | ~differs
    _require(zero, method, "changed label", "a label that the model does not give has a radius other than 0")


def _target(method: Robustness, question: _Question, radii: Radii) -> None:
    cases = question.cases
    target = (cases.label + 1) % len(cases.model.classes)
    targeted = cases.model.ask(cases.x, label=cases.label, target=target, features=cases.features)
    try:
        aimed = method(targeted, question.subsets)
    except HoldfastError:
        return  # some methods solve untargeted questions alone
    reached = (aimed.new_class == target[:, None]) | ~aimed.witnessed
    _require(reached, method, "target", f"a witness has another class than the target on {question.name}")
    _bound(method, _Question(f"{question.name} with a target", targeted, question.subsets), aimed)


_LAWS: tuple[Callable[[Robustness, _Question, Radii], None], ...] = (
    _kind,
    _witness,
    _monotone,
    _bound,
    _repeat,
    _degenerate,
    _target,
)


def _require(holds: bool | Tensor, method: Robustness, law: str, sentence: str) -> None:
    if not bool(torch.as_tensor(holds).all()):
        raise _broken(method, law, sentence)


def _broken(method: object, law: str, sentence: str) -> AssertionError:
    return AssertionError(f"{method!r} breaks the law of {law!r}: {sentence}.")


def _state(cases: Cases) -> list[Tensor]:
    """Return copies of the numbers that make up the model, with its mode and gradients."""
    if not isinstance(cases.model, TorchModel):
        return [cases.model(cases.x, exact=True)]
    module = cases.model.module
    modes = torch.tensor([one.training for one in module.modules()])
    grads = [torch.zeros(0) if one.grad is None else one.grad.clone() for one in module.parameters()]
    flags = torch.tensor([one.requires_grad for one in module.parameters()])
    return [*(value.clone() for value in module.state_dict().values()), modes, flags, *grads]


# ---------------------------------------------------------------------- the questions


def _questions(p: float) -> list[_Question]:
    generator = torch.Generator().manual_seed(0)
    free = TorchModel(_network(generator, 6, 3))
    boxed = TorchModel(_network(generator, 6, 2), bounds=(0, 1))
    relu = TorchModel(_network(generator, 12, 24, 24, 4), bounds=(-2, 2))
    x, wide = (torch.rand(4, n, generator=generator).double() for n in (6, 12))
    groups = Features.columns([[0, 1], [2, 3], 4, 5, 6, [7, 8, 9], [10, 11]])
    linear = _asked("a linear model", free.ask(x))
    inside = _asked("a linear model in a box", boxed.ask(x))
    return [
        _Question(linear.name, linear.cases, linear.subsets, _linear_radii(linear, p)),
        _Question(inside.name, inside.cases, inside.subsets, ExactLinear(p)(inside.cases, inside.subsets).radius),
        _asked("a ReLU network", relu.ask(4 * wide - 2, features=groups)),
    ]


def _asked(name: str, cases: Cases) -> _Question:
    """Ask about four random subsets, each inside the next, the last one all features."""
    d = cases.features.count
    order = torch.rand(len(cases), d, generator=torch.Generator().manual_seed(0)).argsort(1).argsort(1)
    subsets = torch.stack([order < math.ceil(d * (i + 1) / 4) for i in range(4)], 1)
    return _Question(name, cases, subsets.to(cases.x.device))


def _network(generator: torch.Generator, *widths: int) -> nn.Sequential:
    """Return linear layers with ReLU in between, without use of torch's global generator."""
    layers: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs).double(), nn.ReLU()]
    network = nn.Sequential(*layers[:-1]).eval().requires_grad_(False)
    for parameter in network.parameters():
        scale = 1 / math.sqrt(parameter.shape[-1])
        parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return network


def _linear_radii(question: _Question, p: float) -> Tensor:
    """Return ``min_j m_j / ||w_y - w_j on S||_q`` of a linear model without a box."""
    model = question.cases.model
    layer = model.module[0] if isinstance(model, TorchModel) and isinstance(model.module, nn.Sequential) else None
    if not isinstance(layer, nn.Linear):
        raise TypeError("the closed form is of a linear layer.")
    q = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[p]
    label, logits = question.cases.label, layer(question.cases.x)
    margins = logits.gather(1, label[:, None]) - logits
    weights = (layer.weight[label][:, None] - layer.weight)[:, None] * question.subsets[:, :, None]
    lengths: Tensor = margins[:, None] / torch.linalg.vector_norm(weights, q, dim=3)
    return lengths.masked_fill(nn.functional.one_hot(label, logits.shape[1])[:, None] > 0, math.inf).amin(2)
