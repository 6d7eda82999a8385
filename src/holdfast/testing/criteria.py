"""The laws that every criterion keeps, as functions that raise ``AssertionError``."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.criteria.criterion import Criterion
from holdfast.draws import generator
from holdfast.errors import HoldfastError
from holdfast.models.model import Access
from holdfast.models.torch import TorchModel
from holdfast.testing.subjects import (
    CASES,
    WIDTH,
    SelectedColumns,
    broken,
    function_model,
    global_seed,
    inputs,
    network,
)

_BOUNDS = (0.0, 1.0)
_ROUNDING = 1e-6


def check_criterion(criterion: Criterion, rtol: float = 5e-3) -> None:
    """Check that a criterion keeps all laws.

    The criterion is run on 5 inputs ``[12]`` between 0 and 1, which are the bounds, and a network of 4 classes. Give
    it settings that treat all columns alike, such as a constant reference.

    >>> from holdfast.criteria.removal import Insertion
    >>> check_criterion(Insertion(reference=0.25), rtol=1e-9)

    Args:
        criterion: An instance of your criterion.
        rtol: The relative difference of values that rounding may cause. A search may end elsewhere if the order of
            columns changes; a closed form may not.

    Raises:
        AssertionError: A law is broken; the message says which.
    """
    for law in LAWS:
        law(criterion, rtol)


def settings_are_a_key(criterion: Criterion, rtol: float) -> None:
    """Equal settings give an equal, hashable criterion with the same ``repr``; direction and ``needs`` are set."""
    if not isinstance(criterion, Criterion):
        raise broken(criterion, "must be an instance of holdfast.Criterion")
    twin = copy.deepcopy(criterion)
    if repr(twin) != repr(criterion) or twin != criterion or hash(twin) != hash(criterion):
        raise broken(criterion, "must equal its copy: make it a frozen dataclass whose repr shows all settings")
    if not isinstance(getattr(criterion, "higher_is_better", None), bool):
        raise broken(criterion, "must state whether higher_is_better")
    if not isinstance(criterion.needs, Access):
        raise broken(criterion, f"must state what it needs as an Access, got {criterion.needs!r}")


def gives_one_value_a_subset(criterion: Criterion, rtol: float) -> None:
    """Values are ``[B, K]`` in the model's precision, never NaN, and at most the ceiling; also for a target."""
    cases = _cases()
    targeted = cases.model.ask(cases.x, target=(cases.label + 1) % 4)
    for each in (cases, targeted):
        relevant = _relevant()
        values, ceiling = _measure(criterion, each, relevant), criterion.ceiling(each, relevant)
        if values.shape != relevant.shape[:2] or values.dtype != cases.x.dtype:
            kind = f"{values.dtype} of shape {tuple(values.shape)}"
            raise broken(criterion, f"must return {cases.x.dtype} of shape {tuple(relevant.shape[:2])}, got {kind}")
        if bool(values.isnan().any()):
            raise broken(criterion, "must not return NaN: a value that was not found is inf")
        if bool((values > ceiling * (1 + _ROUNDING))[torch.isfinite(values)].any()):
            raise broken(criterion, "must not exceed its own ceiling()")


def is_deterministic(criterion: Criterion, rtol: float) -> None:
    """The same settings give the same values, whatever the global generators draw, and leave these as they were."""
    values = []
    for seed in (1, 2):
        with global_seed(seed):
            before = torch.get_rng_state()
            values.append(_measure(criterion, _cases(), _relevant()))
            if not torch.equal(before, torch.get_rng_state()):
                raise broken(criterion, "must not draw from or seed torch's global generator: use holdfast.draws")
    if not torch.equal(*values):
        raise broken(criterion, "must give the same values for the same settings, and two runs differ")


def batches_do_not_matter(criterion: Criterion, rtol: float) -> None:
    """Values are the same for a case alone and in a batch, and for any batch size of the model."""
    cases, relevant = _cases(), _relevant()
    whole = _measure(criterion, cases, relevant)
    parts = [_measure(criterion, cases[case], relevant[case : case + 1]) for case in range(CASES)]
    if not _close(torch.cat(parts), whole, _ROUNDING):
        raise broken(criterion, "must measure a case alone as in a batch, and values differ")
    small = TorchModel(network(), _BOUNDS, chunk=3).ask(inputs())
    if not _close(_measure(criterion, small, relevant), whole, _ROUNDING):
        raise broken(criterion, "must not depend on the model's batch size, and values differ")


def subsets_are_measured_one_by_one(criterion: Criterion, rtol: float) -> None:
    """The order in which subsets are listed does not matter; arrays of subsets are accepted."""
    cases, relevant = _cases(), _relevant()
    values, reverse = _measure(criterion, cases, relevant), _measure(criterion, cases, relevant.flip(1).numpy())
    if not _close(reverse.flip(1), values, rtol):
        raise broken(criterion, "must not depend on the order of the subsets, and values differ")


def the_order_of_features_does_not_matter(criterion: Criterion, rtol: float) -> None:
    """If features and the network's inputs are permuted together, values stay the same."""
    order = torch.arange(WIDTH).flip(0)  # every feature moves
    permuted = TorchModel(SelectedColumns(network(), order.argsort()), _BOUNDS).ask(inputs()[:, order])
    expected = _measure(criterion, _cases(), _relevant())
    if not _close(_measure(criterion, permuted, _relevant()[:, :, order]), expected, rtol):
        raise broken(criterion, "must not depend on the order of the features, and values differ")


def features_that_the_model_ignores_do_not_matter(criterion: Criterion, rtol: float) -> None:
    """A feature that the network does not read changes no value, relevant or not."""
    x = torch.cat([inputs(), torch.full((CASES, 1), 0.7).double()], 1)
    wider = TorchModel(SelectedColumns(network(), torch.arange(WIDTH)), _BOUNDS).ask(x)
    expected = _measure(criterion, _cases(), _relevant())
    for joins in (False, True):
        relevant = torch.cat([_relevant(), torch.full((*_relevant().shape[:2], 1), joins)], 2)
        if not _close(_measure(criterion, wider, relevant), expected, rtol):
            raise broken(criterion, "must ignore a feature that the model does not read, and values differ")


def refuses_malformed_subsets(criterion: Criterion, rtol: float) -> None:
    """Subsets of another shape or type are refused with a ``HoldfastError``."""
    cases, relevant = _cases(), _relevant()
    for wrong in (relevant[:, :, :5], relevant[:2], relevant.float()):
        try:
            criterion(cases, wrong)
        except HoldfastError:
            continue
        kind = f"{wrong.dtype} of shape {tuple(wrong.shape)}"
        raise broken(criterion, f"must refuse subsets that are {kind}: implement measure() and leave __call__() alone")


def refuses_training_mode(criterion: Criterion, rtol: float) -> None:
    """A network in training mode is refused with a ``HoldfastError``."""
    net = network()
    cases = TorchModel(net, _BOUNDS).ask(inputs())
    net.train()
    try:
        criterion(cases, _relevant())
    except HoldfastError:
        return
    raise broken(criterion, "must refuse a module in training mode: implement measure() and leave __call__() alone")


def refuses_models_that_give_too_little(criterion: Criterion, rtol: float) -> None:
    """A model without gradients or scores is measured if ``needs`` says so, and refused otherwise."""
    for access in (Access.DECISIONS, Access.SCORES):
        cases = function_model(access).ask(inputs())
        if criterion.needs <= access:
            _measure(criterion, cases, _relevant())
            continue
        try:
            criterion(cases, _relevant())
        except HoldfastError:
            continue
        raise broken(criterion, f"needs {criterion.needs} and must refuse a model that gives only {access}")


def reports_progress_to_the_end(criterion: Criterion, rtol: float) -> None:
    """Progress, if it is reported, never falls and ends with (total, total)."""
    reports: list[tuple[int, int]] = []
    cases = TorchModel(network(), _BOUNDS, chunk=4).ask(inputs())
    criterion(cases, _relevant(), progress=lambda done, total: reports.append((done, total)))
    if reports and (reports != sorted(reports) or reports[-1][0] != reports[-1][1]):
        raise broken(criterion, f"must report progress that rises to (total, total), got {reports[-3:]} at the end")


LAWS: tuple[Callable[[Criterion, float], None], ...] = (
    settings_are_a_key,
    gives_one_value_a_subset,
    is_deterministic,
    batches_do_not_matter,
    subsets_are_measured_one_by_one,
    the_order_of_features_does_not_matter,
    features_that_the_model_ignores_do_not_matter,
    refuses_malformed_subsets,
    refuses_training_mode,
    refuses_models_that_give_too_little,
    reports_progress_to_the_end,
)
"""All laws, for test frameworks that run them one by one."""


def _cases() -> Cases:
    return TorchModel(network(), _BOUNDS).ask(inputs())


def _relevant() -> Tensor:
    """Return random subsets, bool ``[5, 4, 12]``."""
    return torch.rand(CASES, 4, WIDTH, generator=generator(1)) < 0.4


def _measure(criterion: Criterion, cases: Cases, relevant: object) -> Tensor:
    """Measure subsets that no criterion may refuse."""
    try:
        values: object = criterion(cases, relevant)
    except HoldfastError as error:
        raise broken(criterion, f"must measure ordinary subsets, and raised: {str(error).rstrip('.')}") from error
    if not isinstance(values, Tensor):
        raise broken(criterion, f"must return a tensor, got {type(values).__name__}")
    return values


def _close(values: Tensor, expected: Tensor, rtol: float) -> bool:
    """Whether values agree; censored ones must be censored in both."""
    return values.shape == expected.shape and torch.allclose(values, expected, rtol=rtol, atol=_ROUNDING)
