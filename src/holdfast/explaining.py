"""From cases to explanations: rank the features, and measure the radii of the relevant ones."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from holdfast.baselines import Baselines
from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.draws import generator
from holdfast.explainers.explainer import Explainer
from holdfast.explanation import HELD, MOVED, Explanation
from holdfast.ranking import Ranking, features_of
from holdfast.robustness import Radii, Robustness


def explain_cases(
    cases: Cases,
    method: str,
    explainer: Explainer,
    judge: Robustness,
    size: float | int,
    progress: Progress | None = None,
    judging: Progress | None = None,
    *,
    seed: int | None = None,
) -> list[Explanation]:
    """Rank the features of every case, and measure both radii of the first ones.

    Args:
        cases: The cases to explain.
        method: The name of the explainer.
        explainer: Ranks the features.
        judge: Measures the radii.
        size: The size of the relevant set: a share (float) or a number (int).
        progress: Called with (done, total) during the ranking.
        judging: Called with (done, total) while radii are measured.
        seed: Measure baselines too: a random subset of the same size from this seed, and all features. None: do not.

    Returns:
        One explanation for each case.
    """
    before = cases.model.queries
    ranking = explainer(cases, progress)
    cost = cases.model.queries - before
    return [
        replace(one, cost=cost, explainer=repr(explainer))
        for one in judge_ranking(cases, method, ranking, judge, size, judging, seed=seed)
    ]


def judge_ranking(
    cases: Cases,
    method: str,
    ranking: Ranking,
    judge: Robustness,
    size: float | int,
    progress: Progress | None = None,
    *,
    seed: int | None = None,
) -> list[Explanation]:
    """Measure both radii of the first features of a ranking.

    Args:
        cases: The cases of the ranking.
        method: The name of the explainer.
        ranking: The ranking of the features.
        judge: Measures the radii.
        size: The size of the relevant set: a share (float) or a number (int).
        progress: Called with (done, total) while radii are measured.
        seed: Measure baselines too: a random subset of the same size from this seed, and all features. None: do not.

    Returns:
        One explanation for each case.
    """
    relevant = ranking.top([size])
    subsets = [relevant, ~relevant]
    if seed is not None:
        random = _random(cases, relevant, seed)
        subsets += [random, ~random, torch.ones_like(relevant)]
    radii = judge(cases, torch.cat(subsets, 1), progress=progress)
    chance, sizes = _probabilities(cases, radii), relevant.sum(2)[:, 0].tolist()
    return [
        replace(_explanation(cases, ranking, radii, case, sizes[case], chance[case]), method=method, p=float(judge.p))
        for case in range(len(cases))
    ]


def _probabilities(cases: Cases, radii: Radii) -> Tensor:
    """Return the probability of each label, and of the new classes after the changes, ``[B, 1 + K]``; NaN for none."""
    model = cases.model
    before = model.probabilities(model(cases.x, exact=True)).gather(1, cases.label[:, None])
    after = model.probabilities(model(radii.witness.flatten(0, 1), exact=True))
    after = after.gather(1, radii.new_class.flatten().clamp_min(0)[:, None]).view_as(radii.radius)
    return torch.cat([before, after.masked_fill(radii.new_class < 0, math.nan)], 1)


def _explanation(cases: Cases, ranking: Ranking, radii: Radii, case: int, size: int, chance: Tensor) -> Explanation:
    """Return the explanation of one case; its first two radii are of the relevant features and of all others."""
    return Explanation(
        method="",
        x=cases.x[case].cpu(),
        features=cases[case].features.bind(cases.x[:1].cpu()),
        classes=cases.model.classes,
        label=int(cases.label[case]),
        target=int(cases.target[case]),
        order=tuple(ranking.order[case, : int(ranking.count[case])].tolist()),
        size=size,
        radius=_pair(radii.radius[case]),
        new_class=_whole_pair(radii.new_class[case]),
        moves=(radii.witness[case, :2] - cases.x[case]).cpu(),
        probability=float(chance[0]),
        new_probability=_pair(chance[1:]),
        bound=radii.bound,
        proven=(bool(radii.proven[case, MOVED]), bool(radii.proven[case, HELD])),
        lower=_pair(radii.lower[case]),
        witness=None if cases.model.domain is None else radii.witness[case, :2].cpu(),
        baselines=None if radii.radius.shape[1] == 2 else _baselines(radii, case),
        uncertain=None if ranking.uncertain is None else float(ranking.uncertain[case]),
        judging=radii.queries,
        notes=_notes(ranking, radii, case, size),
        explainer=ranking.method,
        judge=radii.method,
    )


def _random(cases: Cases, relevant: Tensor, seed: int) -> Tensor:
    """Return a random subset of the features that each case has, of the size of the relevant ones, ``[B, 1, d]``."""
    drawn = torch.rand(cases.features.count, generator=generator(seed)).to(cases.x.device)
    drawn = drawn.expand(len(cases), -1).masked_fill(~features_of(cases), math.inf)
    return (drawn.argsort(1).argsort(1) < relevant.sum(2))[:, None]


def _baselines(radii: Radii, case: int) -> Baselines:
    radius, proven = radii.radius[case, 2:].tolist(), radii.proven[case, 2:].tolist()
    return Baselines((radius[0], radius[1]), radius[2], (proven[0], proven[1], proven[2]))


def _notes(ranking: Ranking, radii: Radii, case: int, top: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*ranking.notes, *_ties(ranking, case, top), *radii.notes]))


def _ties(ranking: Ranking, case: int, top: int) -> tuple[str, ...]:
    """Return a note if features on both sides of the cut have equal scores."""
    along = ranking.scores[case].gather(0, ranking.order[case])[: int(ranking.count[case])]
    if not 0 < top < len(along) or float(along[top - 1]) != float(along[top]):
        return ()
    equal = int((along[:top] == along[top]).sum())
    return (
        f"{equal} of the {top} relevant features have the same score as some that are not: the seed chose among them.",
    )


def _pair(values: Tensor) -> tuple[float, float]:
    first, second = values[:2].tolist()
    return float(first), float(second)


def _whole_pair(values: Tensor) -> tuple[int, int]:
    first, second = values[:2].tolist()
    return int(first), int(second)
