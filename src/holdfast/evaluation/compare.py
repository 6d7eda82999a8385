"""``compare``: judge explanations of the same cases by several criteria, and test the differences."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from holdfast.analyses.significance import Significance, significance
from holdfast.as_model import as_model
from holdfast.cases import Cases, check_cases
from holdfast.chunks import Progress
from holdfast.criteria.criterion import Criterion, read_criterion
from holdfast.criteria.removal import Deletion, Insertion
from holdfast.curve import Curve, trace
from holdfast.errors import HoldfastError, unknown_name
from holdfast.evaluation.evaluation import Evaluation
from holdfast.evaluation.methods import named, read_methods
from holdfast.explainers.explainer import Explainer
from holdfast.features import Features
from holdfast.models.model import check_access
from holdfast.progress import part, reported
from holdfast.ranking import Ranking, features_of
from holdfast.reference import reference_points
from holdfast.settings import Natural, read_setting
from holdfast.sizes import SIZES, Size, Sizes, check_size, read_sizes
from holdfast.text import TextModel

CRITERIA = ("robustness-rest", "robustness-relevant", "insertion", "deletion")
"""The criteria of the paper, by name."""

_FEW = 20  # with fewer features, sizes are numbers of them: 5 % would be less than one


def compare(
    model: Any,
    x: Any,
    methods: Mapping[str, Any],
    *,
    criteria: Sequence[Any] | Mapping[str, Any] = CRITERIA,
    sizes: Sizes | None = None,
    main: str | None = None,
    label: Any = None,
    target: Any = None,
    features: Features | Tensor | str | None = None,
    progress: bool | Progress = False,
    seed: int = 0,
) -> Evaluation:
    """Judge explanations of the same cases by several criteria, and test which differences hold.

    >>> net = torch.nn.Linear(3, 2).eval()
    >>> net.weight.data, net.bias.data = torch.tensor([[0.0, 0, 0], [3, 2, 1]]), torch.tensor([1.0, 0])
    >>> x = torch.rand(8, 3, generator=torch.Generator().manual_seed(0))
    >>> model = hf.TorchModel(net, bounds=(0, 1))
    >>> result = compare(model, x, {"mine": x * net.weight[1], "chance": "random"}, criteria=["insertion"])
    >>> {name: round(float(area.mean()), 2) for name, area in result.areas["Insertion"].items()}
    {'mine': 3.26, 'chance': 2.94}

    Args:
        model: The model that is explained, of any library, as ``hf.as_model`` reads it; a bare module has no bounds.
        x: Inputs ``[B, *shape]``, or ``Cases``.
        methods: By name: attributions (see below), a ``Ranking``, or an explainer as an instance, a class or a name
            such as ``"greedy-as"``. Attributions are arrays, tensors, lists, data frames or SHAP's explanations: one
            score a feature ``[B, d]`` or a coordinate ``[B, *shape]``, or with a last axis of all classes, of which
            the explained one is used. They must explain the label of each case, and higher means more relevant.
        criteria: Instances, classes or names; a dict gives them names of its own. Default: those of the paper.
        sizes: Rising shares (float) or numbers (int) of features that are called relevant. Default: 5, 10, … 45 %, or
            the numbers up to half of the features if there are fewer than 20.
        main: The method to test against all others. None: test every pair, which needs larger differences.
        label: The class that is explained, one or one for each input. Default: the prediction.
        target: The class asked about: "why not this one?". Default: any other.
        features: What moves together, as in ``model.ask``.
        progress: True: show a line; a function: called with (done, total).
        seed: Draws the order of features with equal scores, and the samples of intervals.

    Returns:
        Curves, areas and tests.

    Raises:
        HoldfastError: An argument is malformed, or a method or criterion does not fit the model. All arguments are
            checked before any work starts.
    """
    seed, main = read_setting(seed, Natural, "seed"), read_setting(main, str | None, "main")
    with reported(progress, "compare") as report:
        cases = _cases(model, x, label, target, features)
        measures = _criteria(criteria, cases)
        numbers = _sizes(sizes, cases)
        read = read_methods(methods, cases, seed)
        if main is not None and main not in read:
            raise unknown_name("method", main, list(read))
        rankings, curves = _measured(cases, read, measures, numbers, report)
    areas = {name: {one: area(curve) for one, curve in by.items()} for name, by in curves.items()}
    notes = tuple(f"{name}: {note}" for name, ranking in rankings.items() for note in ranking.notes)
    return Evaluation(tuple(read), main, measures, rankings, curves, areas, _tests(areas, measures, main, seed), notes)


def area(curve: Curve) -> Tensor:
    """Return the area under the curve of each case, ``[B]``; with one size the value; NaN where a value is unknown."""
    values = curve.drawable().cpu()
    along = curve.along().double().cpu()
    return values[:, 0] if len(along) == 1 else torch.trapezoid(values, along, dim=1)


def _cases(model: object, x: Any, label: Any, target: Any, features: Any) -> Cases:
    """Return the cases, asked or given."""
    if isinstance(x, Cases):
        if label is not None or target is not None or features is not None:
            raise HoldfastError("cases have a label, a target and features already: give them to model.ask only.")
        if model is not x.model and model is not getattr(x.model, "module", None):
            raise HoldfastError("the cases were asked of another model: give compare the model that made them.")
        check_cases(x)
        return x
    known = as_model(model)
    if isinstance(known, TextModel):
        raise HoldfastError("ask the model of texts first: x = model.ask(sentences), and compare by model.classifier.")
    return known.ask(x, label, target, features)


def _criteria(given: Any, cases: Cases) -> dict[str, Criterion]:
    """Return the criteria by the names that tables use, and check that they fit the model."""
    if isinstance(given, (str, type, Criterion)):
        given = [given]
    if not isinstance(given, (Mapping, Sequence)) or not given:
        raise HoldfastError(f"criteria must be at least one criterion, such as {CRITERIA[:2]}, got {given!r}.")
    read: dict[str, Criterion] = {}
    for one in given:
        criterion = read_criterion(given[one] if isinstance(given, Mapping) else one)
        name = one if isinstance(given, Mapping) else criterion.title
        if not isinstance(name, str) or not name.strip():
            raise HoldfastError(f"the name of a criterion must be a text, got {name!r}.")
        if name in read:
            raise HoldfastError(f"two criteria are called {name}: give them names, as in {{'{name} 2': …}}.")
        _check_criterion(criterion, cases, name)
        read[name] = criterion
    return read


def _check_criterion(criterion: Criterion, cases: Cases, name: str) -> None:
    """Refuse a criterion that does not fit the model, before anything is measured."""
    check_access(criterion, cases.model, Criterion.registry)
    if isinstance(criterion, (Insertion, Deletion)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it comes again when the criterion is measured
            try:
                reference_points(cases, criterion.reference)
            except HoldfastError as error:
                raise HoldfastError(f"criterion {name!r}: {error}") from error


def _sizes(given: Sizes | None, cases: Cases) -> tuple[Size, ...]:
    """Return the sizes of the relevant set; by default, shares of many features or numbers of few."""
    counts = features_of(cases).sum(1)
    if given is None:
        few, alike = int(counts.min()), bool((counts == counts[0]).all())
        return tuple(range(1, (few + 1) // 2 + 1)) if few < _FEW and alike else SIZES
    sizes = read_sizes(given)
    for size in sizes:
        check_size(size)
        if isinstance(size, int) and size > int(counts.max()):
            raise HoldfastError(f"a size must be at most the {int(counts.max())} features there are, got {size}.")
    if len({type(size) for size in sizes}) > 1 or list(sizes) != sorted(set(sizes)):
        raise HoldfastError(f"sizes must be rising shares of the features or rising numbers of them, got {sizes}.")
    return sizes


def _measured(
    cases: Cases,
    methods: Mapping[str, Ranking | Explainer],
    criteria: Mapping[str, Criterion],
    sizes: tuple[Size, ...],
    report: Progress | None,
) -> tuple[dict[str, Ranking], dict[str, dict[str, Curve]]]:
    """Run the explainers, and measure every ranking by every criterion."""
    explainers = [name for name, one in methods.items() if isinstance(one, Explainer)]
    parts, done = len(explainers) + len(methods) * len(criteria), 0
    rankings: dict[str, Ranking] = {}
    for name, one in methods.items():
        if isinstance(one, Explainer):
            with named(name):
                rankings[name] = one(cases, part(report, done, parts))
            done += 1
        else:
            rankings[name] = one
    curves: dict[str, dict[str, Curve]] = {name: {} for name in criteria}
    for title, criterion in criteria.items():
        for name, ranking in rankings.items():
            curves[title][name] = trace(cases, ranking, criterion, sizes, progress=part(report, done, parts))
            done += 1
    last = part(report, parts - 1, parts)
    if last is not None:
        last(1, 1)
    return rankings, curves


def _tests(
    areas: Mapping[str, Mapping[str, Tensor]], criteria: Mapping[str, Criterion], main: str | None, seed: int
) -> Significance | None:
    """Test the differences between the methods; None for one method alone."""
    if len(next(iter(areas.values()))) < 2:
        return None
    return significance(areas, main, {name: one.higher_is_better for name, one in criteria.items()}, seed=seed)
