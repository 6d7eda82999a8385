"""The methods that are compared: explainers, rankings and attributions, all checked before any work starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.cases import Cases
from holdfast.curve import check_ranking
from holdfast.errors import HoldfastError
from holdfast.evaluation.attributions import ranking_of
from holdfast.explainers.explainer import Explainer, read_explainer
from holdfast.models.model import check_access
from holdfast.ranking import Ranking
from holdfast.settings import shown_value

EXAMPLE = '{"mine": attributions, "greedy-as": hf.GreedyAS()}'


def read_methods(methods: Any, cases: Cases, seed: int) -> dict[str, Ranking | Explainer]:
    """Read what is compared. Attributions become rankings; explainers are run later.

    Args:
        methods: By name: attributions, a ranking, or an explainer as an instance, a class or a name.
        cases: The cases.
        seed: Draws the order of features with equal scores.

    Returns:
        By name: a ranking of these cases, or an explainer that fits the model.

    Raises:
        HoldfastError: There is no method, or one does not fit the cases; the message names it.
    """
    if not isinstance(methods, Mapping):
        raise HoldfastError(f"methods must be a dict such as {EXAMPLE}, got {type(methods).__name__}.")
    if not methods:
        raise HoldfastError(f"expected at least one method, such as {EXAMPLE}, got none.")
    read = {}
    for name, given in methods.items():
        if not isinstance(name, str) or not name.strip():
            raise HoldfastError(f"the name of a method must be a text, got {shown_value(name)}.")
        with named(name):
            read[name] = _read(given, cases, name, seed)
    return read


@contextmanager
def named(name: str) -> Iterator[None]:
    """Say which method an error is about.

    Args:
        name: The name of the method.

    Raises:
        HoldfastError: The block raised one.
    """
    try:
        yield
    except HoldfastError as error:
        raise HoldfastError(f"method {name!r}: {error}") from error


def _read(given: Any, cases: Cases, name: str, seed: int) -> Ranking | Explainer:
    if isinstance(given, Ranking):
        check_ranking(cases, given)
        return given
    if isinstance(given, (str, type, Explainer)):
        explainer = read_explainer(given)
        check_access(explainer.adapted(cases.model), cases.model, Explainer.registry)
        return explainer
    return ranking_of(given, cases, name, seed)
