"""The laws that every explainer keeps, as functions that raise ``AssertionError``."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch

from holdfast.cases import Cases
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.features import Features
from holdfast.models.model import Access
from holdfast.models.torch import TorchModel
from holdfast.ranking import Ranking
from holdfast.testing.subjects import (
    CASES,
    WIDTH,
    broken,
    function_model,
    global_seed,
    image_network,
    inputs,
    network,
)

_FACTOR = 2.5  # how far the stated number of rows may be from the true one


def check_explainer(explainer: Explainer) -> None:
    """Check that an explainer keeps all laws.

    The explainer is run on 5 inputs ``[12]`` between 0 and 1 and a network of 4 classes, so give it short settings that
    fit them. It may refuse models without bounds and images with a ``HoldfastError``.

    >>> from holdfast.explainers.random import Random
    >>> check_explainer(Random())

    Args:
        explainer: An instance of your explainer.

    Raises:
        AssertionError: A law is broken; the message says which.
    """
    for law in LAWS:
        law(explainer)


def settings_are_a_key(explainer: Explainer) -> None:
    """Equal settings give an equal, hashable explainer with the same ``repr``; ``source`` and ``needs`` are set."""
    if not isinstance(explainer, Explainer):
        raise broken(explainer, "must be an instance of holdfast.Explainer")
    twin = copy.deepcopy(explainer)
    if repr(twin) != repr(explainer) or twin != explainer or hash(twin) != hash(explainer):
        raise broken(explainer, "must equal its copy: make it a frozen dataclass whose repr shows all settings")
    if not isinstance(getattr(explainer, "source", None), str):
        raise broken(explainer, "must name its source as text")
    if not isinstance(explainer.needs, Access):
        raise broken(explainer, f"must state what it needs as an Access, got {explainer.needs!r}")


def ranks_every_feature_once(explainer: Explainer) -> None:
    """The order names every feature of every case once; scores are finite and never rise along it."""
    cases = _cases()
    ranking = _rank(explainer, cases)
    _check_ranking(explainer, cases, ranking)
    if ranking.method != repr(explainer):
        raise broken(explainer, f"must name itself as the ranking's method, got {ranking.method!r}")


def needs_no_bounds_or_says_so(explainer: Explainer) -> None:
    """A model without bounds is explained, or refused with a ``HoldfastError``."""
    cases = _cases(bounds=None)
    try:
        ranking = explainer(cases)
    except HoldfastError:
        return
    _check_ranking(explainer, cases, ranking)


def is_deterministic(explainer: Explainer) -> None:
    """The same settings give the same order, whatever the global generators draw, and leave these as they were."""
    orders = []
    for seed in (1, 2):
        with global_seed(seed):
            before = torch.get_rng_state()
            orders.append(_rank(explainer, _cases()).order)
            if not torch.equal(before, torch.get_rng_state()):
                raise broken(explainer, "must not draw from or seed torch's global generator: use holdfast.draws")
    if not torch.equal(*orders):
        raise broken(explainer, "must give the same order for the same seed, and two runs differ")


def batches_do_not_matter(explainer: Explainer) -> None:
    """A case has the same order alone and in a batch."""
    cases = _cases()
    together = _rank(explainer, cases).order
    for case in range(CASES):
        alone = _rank(explainer, cases[case]).order
        if not torch.equal(alone[0], together[case]):
            raise broken(explainer, f"must rank a case alone as in a batch, and case {case} differs")


def padding_comes_last(explainer: Explainer) -> None:
    """Features that a case does not have come after all others."""
    ids = torch.stack([torch.arange(WIDTH), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, -1, -1])])
    cases = TorchModel(network(), (0, 1)).ask(inputs(2), features=Features.of(ids))
    ranking = _rank(explainer, cases)
    _check_ranking(explainer, cases, ranking)
    if ranking.order[1, :5].sort().values.tolist() != list(range(5)):
        raise broken(explainer, "must put features that a case does not have (padding) last")
    if ranking.count.tolist() != [WIDTH, 5]:
        raise broken(explainer, f"must count the features of each case, expected [12, 5], got {ranking.count.tolist()}")


def ranks_a_single_feature(explainer: Explainer) -> None:
    """An input with one feature is ranked, too."""
    cases = TorchModel(network(), (0, 1)).ask(inputs(2), features=torch.zeros(WIDTH, dtype=torch.long))
    _check_ranking(explainer, cases, _rank(explainer, cases))


def answers_targeted_questions(explainer: Explainer) -> None:
    """Cases with a target are explained."""
    cases = _cases()
    targeted = cases.model.ask(cases.x, target=(cases.label + 1) % 4)
    _check_ranking(explainer, targeted, _rank(explainer, targeted))


def leaves_the_model_unchanged(explainer: Explainer) -> None:
    """Weights, attributes and hooks of the network are the same afterwards."""
    net = network()
    weights, hooks = copy.deepcopy(net.state_dict()), _attributes(net)
    _rank(explainer, TorchModel(net, (0, 1)).ask(inputs()))
    same = all(torch.equal(value, weights[name]) for name, value in net.state_dict().items())
    if not same or net.training or _attributes(net) != hooks:
        raise broken(explainer, "must leave the model unchanged, and its weights, mode or hooks differ afterwards")


def refuses_training_mode(explainer: Explainer) -> None:
    """A network in training mode is refused with a ``HoldfastError``."""
    net = network()
    cases = TorchModel(net, (0, 1)).ask(inputs())
    net.train()
    try:
        explainer(cases)
    except HoldfastError:
        return
    raise broken(explainer, "must refuse a module in training mode: implement rank() and leave __call__() alone")


def refuses_models_that_give_too_little(explainer: Explainer) -> None:
    """A model without gradients or scores is explained if ``needs`` says so, and refused otherwise."""
    for access in (Access.DECISIONS, Access.SCORES):
        cases = function_model(access).ask(inputs(2))
        if explainer.needs <= access:
            _check_ranking(explainer, cases, _rank(explainer, cases))
            continue
        try:
            explainer(cases)
        except HoldfastError:
            continue
        raise broken(explainer, f"needs {explainer.needs} and must refuse a model that gives only {access}")


def states_its_cost(explainer: Explainer) -> None:
    """``rows(features)`` is None or within a factor of 2.5 of the rows that go through the model."""
    model = TorchModel(network(classes=10), (0, 1))
    cases = model.ask(inputs())
    before = model.queries
    _rank(explainer, cases)
    rows, stated = (model.queries - before).forward / CASES, explainer.rows(WIDTH)
    if stated is not None and not rows / _FACTOR <= stated <= rows * _FACTOR:
        raise broken(explainer, f"states {stated} rows a case and uses {rows:.0f}: correct rows(), or return None")


def reports_progress_to_the_end(explainer: Explainer) -> None:
    """Progress, if it is reported, never falls and ends with (total, total)."""
    reports: list[tuple[int, int]] = []
    explainer(_cases(), lambda done, total: reports.append((done, total)))
    if reports and (reports != sorted(reports) or reports[-1][0] != reports[-1][1]):
        raise broken(explainer, f"must report progress that rises to (total, total), got {reports[-3:]} at the end")


def ranks_pixels_of_colour_images(explainer: Explainer) -> None:
    """Colour images have one place for each pixel, or are refused with a ``HoldfastError``."""
    images = inputs(2, 48).reshape(2, 3, 4, 4)
    cases = TorchModel(image_network(), (0, 1)).ask(images)
    try:
        ranking = explainer(cases)
    except HoldfastError:
        return
    _check_ranking(explainer, cases, ranking)


LAWS: tuple[Callable[[Explainer], None], ...] = (
    settings_are_a_key,
    ranks_every_feature_once,
    needs_no_bounds_or_says_so,
    is_deterministic,
    batches_do_not_matter,
    padding_comes_last,
    ranks_a_single_feature,
    answers_targeted_questions,
    leaves_the_model_unchanged,
    refuses_training_mode,
    refuses_models_that_give_too_little,
    states_its_cost,
    reports_progress_to_the_end,
    ranks_pixels_of_colour_images,
)
"""All laws, for test frameworks that run them one by one."""


def _cases(bounds: tuple[float, float] | None = (0.0, 1.0)) -> Cases:
    return TorchModel(network(), bounds).ask(inputs())


def _rank(explainer: Explainer, cases: Cases) -> Ranking:
    """Explain cases that no explainer may refuse."""
    try:
        return explainer(cases)
    except HoldfastError as error:
        raise broken(
            explainer, f"must rank {len(cases)} ordinary cases, and raised: {str(error).rstrip('.')}"
        ) from error


def _check_ranking(explainer: Explainer, cases: Cases, ranking: Ranking) -> None:
    """Check a ranking of these cases on its own."""
    if not isinstance(ranking, Ranking):
        raise broken(explainer, f"must return a holdfast.Ranking, got {type(ranking).__name__}")
    expected = (len(cases), cases.features.count)
    if tuple(ranking.order.shape) != expected or tuple(ranking.scores.shape) != expected:
        shape = tuple(ranking.order.shape)
        raise broken(
            explainer, f"must rank every feature of every case, expected order and scores {expected}, got {shape}"
        )
    every = torch.arange(expected[1], device=ranking.order.device)
    if not bool((ranking.order.sort(1).values == every).all()):
        raise broken(explainer, "must name every feature once in each order")
    along = ranking.scores.gather(1, ranking.order)
    if not bool(torch.isfinite(along).all()) or not bool((along[:, :-1] >= along[:, 1:]).all()):
        raise broken(explainer, "must give finite scores that never rise along the order")


def _attributes(net: torch.nn.Module) -> list[tuple[frozenset[str], int]]:
    """Return names of attributes and the number of hooks of every layer."""
    return [
        (frozenset(vars(layer)), len(layer._forward_hooks) + len(layer._forward_pre_hooks) + len(layer._backward_hooks))
        for layer in net.modules()
    ]
