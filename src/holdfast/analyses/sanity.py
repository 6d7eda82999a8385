"""Sanity check: do explanations change when layers of the network are re-initialised? (Adebayo et al. 2018)"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import holdfast.published as published
from holdfast.analyses.analysis import Analysis, Computed, Draw, Stored, Subject
from holdfast.analyses.result import Result, Row, estimate, lines
from holdfast.cases import ANY, Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError
from holdfast.explainers.explainer import Explainer
from holdfast.models.torch import TorchModel, layers_of
from holdfast.palette import INK
from holdfast.prose import counted
from holdfast.ranking import Ranking
from holdfast.settings import Count
from holdfast.table import Cell, Table


@dataclass(frozen=True, eq=False)
class Sanity(Result):
    """Rank correlation of explanations before and after layers are re-initialised.

    Near 0, the explanation depends on the weights that the network learnt, as it should. Near 1, it does not.

    Attributes:
        explainers: Names of the explainers.
        stages: Names of the stages. Each re-initialises layers from the last one back to the named one.
        correlation: ``[explainers, stages, B]``; NaN where an explanation has no order to compare, or where there is
            nothing to explain in the re-initialised network.
        notes: Why values are missing.
    """

    explainers: tuple[str, ...]
    stages: tuple[str, ...]
    correlation: Tensor
    notes: tuple[str, ...] = ()

    def table(self) -> list[Row]:
        known = ~self.correlation.isnan()
        count = known.sum(2)
        mean = self.correlation.nan_to_num(0).sum(2) / count
        spread = ((self.correlation - mean[..., None]).nan_to_num(0).square().sum(2) / (count - 1).clamp_min(1)).sqrt()
        return [
            {
                "explainer": explainer,
                "re-initialised": stage,
                "rank correlation": float(mean[e, s]) if count[e, s] else None,
                "standard error": float(spread[e, s] / count[e, s] ** 0.5) if count[e, s] > 1 else None,
                "cases": int(count[e, s]),
                "excluded": int((~known[e, s]).sum()),
            }
            for e, explainer in enumerate(self.explainers)
            for s, stage in enumerate(self.stages)
        ]

    def draw(self, ax: Any) -> None:
        lines(ax, self.explainers, self.stages, self.correlation.nanmean(2).tolist())
        ax.axhline(0, color=INK, linewidth=0.8)
        ax.set_ylabel("rank correlation with the trained network")
        ax.set_xlabel("re-initialised down to")
        ax.legend(fontsize="small")


def sanity(
    cases: Cases,
    explainers: Mapping[str, Explainer],
    *,
    cascade: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Sanity:
    """Explain the same inputs again after layers are re-initialised.

    The label is the prediction of the re-initialised network, because robustness is not defined for a class that is
    not predicted. If a target becomes the prediction, targets are dropped for all cases.

    Args:
        cases: B cases to explain.
        explainers: Explainers by name.
        cascade: Re-initialise more and more layers, from the last one back. Otherwise only the last one.
        seed: Seed of the new weights.
        progress: Called with (done, total) explanations.

    Returns:
        The rank correlations.

    Raises:
        HoldfastError: There is no explainer, or the model has no layers that can be re-initialised.
    """
    if not explainers:
        raise HoldfastError("name at least one explainer.")
    trained = layers_of(cases.model)
    layers = trainable_layers(cases)
    before = {name: explainer(cases) for name, explainer in explainers.items()}
    stages = layers if cascade else layers[:1]
    correlations: list[Tensor] = []
    notes: list[str] = []
    total = len(stages) * len(explainers)
    for number in range(1, len(stages) + 1):
        model = trained.with_module(reinitialised(trained.module, layers[:number], seed))
        label = model(cases.x, exact=True).argmax(1)
        aimed = cases.target != ANY
        keeps = bool((aimed & (cases.target != label)).all())
        if bool(aimed.any()) and not keeps:
            notes.append(f"{stages[number - 1]} re-initialised: targets were dropped, since one became the prediction.")
        again = model.ask(cases.x, label, cases.target if keeps else None, cases.features)
        for name, explainer in explainers.items():
            try:
                correlations.append(spearman(before[name], explainer(again)).cpu())
            except HoldfastError as error:  # not a wrong call: it succeeded on the trained network
                correlations.append(torch.full((len(cases),), torch.nan, dtype=torch.double))
                notes.append(f"{name}, {stages[number - 1]} re-initialised: {error}")
            if progress is not None:
                progress(len(correlations), total)
    shape = (len(stages), len(explainers), len(cases))
    trained_only = untouched(trained.module, stages)
    if cascade and trained_only:
        names = f"{', '.join(trained_only[:5])}{' …' if len(trained_only) > 5 else ''}"
        notes.append(f"{names} stayed as trained: no layer resets them.")
    correlation = torch.stack(correlations).reshape(shape).transpose(0, 1)
    return Sanity(tuple(explainers), tuple(stages), correlation, tuple(notes))


def trainable_layers(cases: Cases) -> list[str]:
    """Return the names of the layers that can be re-initialised, in the reverse order of a forward pass.

    The order is observed on one input, because the order in which a network lists its layers may differ. A layer
    whose weights are used without calling it follows the one listed before it. Unused layers are left out.

    Args:
        cases: Cases of a ``TorchModel``. Only the first input is used.

    Raises:
        HoldfastError: No layer can be re-initialised.
    """
    model = layers_of(cases.model)
    module = model.module
    used = _used(module, cases.x[:1].to(model.module_dtype))
    names = {
        layer: name
        for name, layer in module.named_modules()
        if hasattr(layer, "reset_parameters") and used.intersection(layer.parameters(recurse=False))
    }
    if not names:
        raise HoldfastError("the network has no layer that can be re-initialised (none with reset_parameters).")
    passed: dict[nn.Module, int] = {}

    def note(layer: nn.Module, *_: Any) -> None:
        passed[layer] = next(numbers)

    numbers = itertools.count(1)
    hooks = [layer.register_forward_hook(note) for layer in names]
    try:
        cases.model(cases.x[:1], exact=True)
    finally:
        for hook in hooks:
            hook.remove()
    place, places = 0, {}
    for layer, name in names.items():
        place = passed.get(layer, place)
        places[name] = place
    return sorted(places, key=lambda name: places[name])[::-1]


def _used(module: nn.Module, x: Tensor) -> set[Tensor]:
    """Return the parameters that the scores of an input depend on."""
    own = {name: weight for name, weight in module.named_parameters() if weight.is_floating_point()}
    if not own:
        return set()
    stand_in = {name: weight.detach().clone().requires_grad_(True) for name, weight in own.items()}
    with torch.enable_grad():
        scores = torch.func.functional_call(module, stand_in, (x,))
        slopes = torch.autograd.grad(scores.sum(), list(stand_in.values()), allow_unused=True)
    return {weight for weight, slope in zip(own.values(), slopes, strict=True) if slope is not None}


def untouched(module: nn.Module, layers: list[str]) -> list[str]:
    """Return the names of the parameters that belong to none of these layers."""
    own = {id(weight) for name in layers for weight in module.get_submodule(name).parameters(recurse=False)}
    return [name for name, weight in module.named_parameters() if id(weight) not in own]


def reinitialised(module: nn.Module, layers: list[str], seed: int = 0) -> nn.Module:
    """Return a copy of a module with some layers re-initialised.

    Args:
        module: The network.
        layers: Names of submodules that have ``reset_parameters``.
        seed: Seed of the new weights.

    Returns:
        A copy. The module and the global random state do not change.
    """
    fresh = copy.deepcopy(module)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        for name in layers:
            fresh.get_submodule(name).reset_parameters()  # type: ignore[operator]  # checked by trainable_layers
    return fresh


def spearman(one: Ranking, other: Ranking) -> Tensor:
    """Return Spearman's rank correlation of the scores of two rankings. Equal scores share their mean rank.

    Args:
        one: A ranking of B cases.
        other: Another ranking of the same features.

    Returns:
        Correlations ``[B]``; NaN where one of the rankings is uninformative or all its scores are equal.

    Raises:
        HoldfastError: The rankings are of different features.
    """
    present = [ranking.order.argsort(1) < ranking.count[:, None] for ranking in (one, other)]
    if one.order.shape != other.order.shape or not torch.equal(*present):
        raise HoldfastError("the two rankings are not of the same features.")
    ranks = [_mean_ranks(ranking.scores.double().masked_fill(~present[0], -torch.inf)) for ranking in (one, other)]
    mask = present[0].double()
    centred = [(rank - (rank * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)) * mask for rank in ranks]
    size = centred[0].norm(dim=1) * centred[1].norm(dim=1)
    informative = (size > 0) & ~one.uninformative & ~other.uninformative
    return torch.where(informative, (centred[0] * centred[1]).sum(1) / size, torch.nan)


def _mean_ranks(scores: Tensor) -> Tensor:
    rising = scores.sort(1).values
    below, upto = (torch.searchsorted(rising, scores, right=right) for right in (False, True))
    return (below + upto - 1) / 2


def _layer_count(cases: Cases) -> int:
    """Estimate how many layers can be re-initialised. Without a forward pass, unused layers count too."""
    layers = cases.model.module.modules() if isinstance(cases.model, TorchModel) else ()
    return sum(hasattr(layer, "reset_parameters") and any(True for _ in layer.parameters(False)) for layer in layers)


@dataclass(frozen=True)
class SanityAnalysis(Analysis):
    """Explanations after layers are re-initialised, compared with those before.

    Attributes:
        methods: Names of the methods; None: all of the tables.
        examples: The number of examples to use, from the first on.
        cascade: Re-initialise more and more layers, not only the last one.
        seed: Seed of the new weights.
    """

    methods: tuple[str, ...] | None = None
    examples: Count = 100
    cascade: bool = False
    seed: int = 0
    name: ClassVar[str] = "sanity"
    title: ClassVar[str] = "Sanity: do explanations change with the network?"
    subject: ClassVar[Subject] = Subject.EXPLAINERS

    def compute(self, cases: Cases, subject: Explainer | Ranking, progress: Progress | None) -> Computed:
        assert isinstance(subject, Explainer)
        result = sanity(cases, {"method": subject}, cascade=self.cascade, seed=self.seed, progress=progress)
        return Computed({"correlation": result.correlation[0].numpy()}, result.notes)

    def rows(self, cases: Cases, explainer: Explainer) -> int | None:
        each = explainer.rows(cases.features.count)
        stages = _layer_count(cases) if self.cascade else 1
        return None if each is None else each * (1 + stages) * len(cases)

    @classmethod
    def read(cls, stored: Stored) -> Sanity | None:
        blocks = stored.arrays(cls.name)
        if not blocks:
            return None
        values = [torch.cat([torch.from_numpy(one["correlation"]) for one in of], 1) for of in blocks.values()]
        count = values[0].shape[0]
        stages = tuple("the last layer" if n == 0 else f"the last {n + 1} layers" for n in range(count))
        return Sanity(tuple(blocks), stages, torch.stack(values), tuple(stored.notes_of(cls.name)))

    @classmethod
    def tables(cls, result: Sanity, stored: Stored) -> list[Table]:
        paper = published.sanity(stored.published)
        rows = []
        for e, name in enumerate(result.explainers):
            row: list[Cell] = [name]
            for s in range(len(result.stages)):
                row.append(estimate(result.correlation[e, s]))
                row += [paper.get(name)] if paper and s == 0 else []
            rows.append(tuple(row))
        columns = ("method", result.stages[0], *(["paper"] if paper else []), *result.stages[1:])
        note = (
            "Rank correlation of an explanation with that of the network after layers were re-initialised, from the "
            f"last one back, on {counted(result.correlation.shape[2], 'example')}. Near 0: the explanation "
            "depends on what the network learnt, as it should."
        )
        return [Table("sanity", "Sanity", columns, tuple(rows), note)]

    @classmethod
    def figures(cls, result: Sanity) -> dict[str, Draw]:
        return {"Rank correlation after re-initialisation": result.draw}
