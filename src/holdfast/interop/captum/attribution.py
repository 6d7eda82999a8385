"""An explainer as a Captum ``Attribution``."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import torch
from captum import attr as captum
from captum.log import log_usage
from torch import Tensor, nn

from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.explainers.explainer import Explainer, read_explainer
from holdfast.interop.captum.arguments import (
    read_baselines,
    read_features,
    read_forward,
    read_inputs,
    read_target,
    with_baselines,
    with_counts,
)
from holdfast.interop.captum.forward import Adapted, is_ordinary
from holdfast.interop.clipping import Clipping
from holdfast.models.model import Queries
from holdfast.models.torch import Bound, TorchModel
from holdfast.settings import Count, read_setting


class AsCaptum(captum.Attribution):  # type: ignore[misc]  # Captum is not typed here
    """A holdfast explainer as a Captum ``Attribution``: the scores of its ranking, in the shape of the inputs.

    Args:
        explainer: An instance, a class that needs no settings, or a name.
        model: A module or a ``TorchModel``.
        bounds: The box that inputs of a module live in. Inputs outside, such as those of a NoiseTunnel, are clipped;
            the first time gives a warning.
        class_axis: The axis of the classes in outputs with more than two axes.

    Raises:
        HoldfastError: An argument is malformed.
    """

    def __init__(
        self,
        explainer: Explainer | type[Explainer] | str,
        model: nn.Module | TorchModel,
        bounds: tuple[Bound, Bound] | None = None,
        *,
        class_axis: int = 1,
    ):
        self._explainer = read_explainer(explainer)
        if isinstance(model, TorchModel) and bounds is not None:
            raise HoldfastError("a TorchModel has its own bounds: leave bounds out.")
        self._model = model if isinstance(model, TorchModel) else TorchModel(model, bounds)
        self._class_axis: int = read_setting(class_axis, Count, "class_axis")
        self._clip = Clipping()
        self._ordinary: bool | None = None  # known when the module has first answered
        super().__init__(self._model.module)

    @log_usage()  # type: ignore[untyped-decorator]  # a NoiseTunnel requires it
    def attribute(
        self,
        inputs: Any,
        target: Any = None,
        additional_forward_args: Any = None,
        feature_mask: Any = None,
        baselines: Any = None,
        **further: Any,
    ) -> Tensor | tuple[Tensor, ...]:
        """Return the scores of the ranking.

        Args:
            inputs: Inputs ``[B, *shape]``, a tensor or an array, or a tuple of them for a module with several.
            target: The class to explain, in every form that Captum accepts. A tuple names the entry of an output with
                more axes. None: the prediction, or the score itself if there is only one. Of a single score, 1 names
                its negative.
            additional_forward_args: Further arguments of the module. A dense tensor whose first axis is as long as the
                batch has one row for each input, as in Captum, and then inputs are explained one at a time. All else
                is passed on as it is. A constant that happens to be as long needs a first axis of length one.
            feature_mask: Feature numbers from 0, in the shape of the inputs. None: every coordinate is a feature.
            baselines: The reference: a number, a tensor ``[1 or B, *shape]``, or a tuple of them for several inputs;
                for ``ExpectedGradients`` a distribution ``[N, *shape]``. None: that of the explainer.
            **further: ``n_steps`` of ``IntegratedGradients``, ``n_samples`` of ``KernelShap`` and
                ``ExpectedGradients``; ``internal_batch_size`` or ``perturbations_per_eval``, rows at once.

        Returns:
            Scores in the shape of the inputs.

        Raises:
            HoldfastError: An argument is malformed, or has no meaning for the explainer.
        """
        parts = read_inputs(inputs)
        explainer, batch = with_counts(self._explainer, further)
        rows = read_baselines(explainer, baselines, parts)
        features = read_features(feature_mask, parts)
        x = self._clip(self._joined(parts), self._model)
        label, positions = read_target(target, len(x), self._class_axis)
        arguments, own = read_forward(additional_forward_args, len(x))
        scores = torch.empty_like(x)
        for which in _groups(positions, any(own)):
            some = tuple(one[which[:1]] if each else one for one, each in zip(arguments, own, strict=True))
            model = self._adapted(parts, some, own, positions[int(which[0])], batch)
            here = with_baselines(explainer, rows, len(x), which)
            wanted = None if label is None else label[which.to(label.device)]
            index = which.to(x.device)
            scores[index] = self._scores(here, model, x[index], wanted, features.at(which), which, len(x))
        split = scores.split([part[0].numel() for part in parts], 1) if len(parts) > 1 else (scores,)
        result = tuple(
            score.reshape(part.shape).to(part if part.is_floating_point() else score, copy=True)
            for score, part in zip(split, parts, strict=True)
        )
        return result if isinstance(inputs, tuple) else result[0]

    def _joined(self, parts: tuple[Tensor, ...]) -> Tensor:
        """Return the inputs as one: several become flat rows."""
        model = self._model
        if len(parts) == 1:
            return parts[0].to(model.device, model.dtype)
        if any(edge is not None and edge.ndim for edge in (model.low, model.high)):
            raise HoldfastError("a module with several inputs needs bounds that are two numbers.")
        return torch.cat([part.flatten(1).to(model.device, model.dtype) for part in parts], 1)

    def _adapted(
        self,
        parts: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        repeated: tuple[bool, ...],
        position: tuple[int, ...],
        batch: int | None,
    ) -> TorchModel:
        """Return the model of joined inputs with these arguments: the model itself if it needs no change."""
        model = self._model
        model.check_ready()
        plain = len(parts) == 1 and not arguments and not position
        if plain and self._ordinary is None:
            self._ordinary = is_ordinary(model.module, parts[0][:1].to(model.device, model.module_dtype))
            model.queries += Queries(forward=1)
        if not plain or self._ordinary is False:
            shapes = [part.shape[1:] for part in parts] if len(parts) > 1 else None
            moved = tuple(one.to(model.device) if isinstance(one, Tensor) else one for one in arguments)
            model = model.with_module(Adapted(model.module, shapes, moved, repeated, position, self._class_axis))
        if batch is not None:
            model = model.with_module(model.module)
            model._chunk = batch
        return model

    def _scores(
        self,
        explainer: Explainer,
        model: TorchModel,
        x: Tensor,
        label: Tensor | None,
        features: Any,
        which: Tensor,
        total: int,
    ) -> Tensor:
        """Return the scores of some of the inputs, in their shape."""
        cases = model.ask(x, label=label, features=features)
        if label is None and isinstance(model.module, Adapted) and model.module.one_score:
            cases = replace(cases, label=torch.zeros_like(cases.label))  # the score, not its negative
        ranking = explainer(cases)
        self._model.queries = model.queries
        where = "" if len(which) == total else f"of input {', '.join(map(str, which.tolist()))}, as case 0 and on: "
        for note in ranking.notes:
            warnings.warn(f"{where}{note}", HoldfastWarning, stacklevel=4)
        return cases.features.spread(ranking.scores).expand_as(x)


def _groups(positions: list[tuple[int, ...]], one_by_one: bool) -> list[Tensor]:
    """Return the indices of the inputs that are explained together: they share further arguments and position."""
    if one_by_one:
        return [torch.tensor([case]) for case in range(len(positions))]
    groups: dict[tuple[int, ...], list[int]] = {}
    for case, position in enumerate(positions):
        groups.setdefault(position, []).append(case)
    return [torch.tensor(cases) for cases in groups.values()]
