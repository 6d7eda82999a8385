"""The explanation of one input: its relevant features, and the smallest changes that change the decision."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from holdfast.baselines import Baselines
from holdfast.cases import ANY
from holdfast.columns import Cell
from holdfast.errors import HoldfastError
from holdfast.features import Features
from holdfast.files import write_text
from holdfast.models.model import Queries
from holdfast.prose import visible
from holdfast.ranked_feature import RankedFeature
from holdfast.settings import shown_value
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.figures import Plot

MOVED, HELD = 0, 1
SUBSETS = ("only these move", "these are held")
"""The two sets of features that may move: the relevant ones, or all others."""


class Display(Protocol):
    """How explanations of one kind of inputs are shown. Modalities are displays."""

    def figure(self, explanations: Sequence[Explanation], title: str) -> Plot:
        """Draw explanations of the same input."""

    def page(self, explanations: Sequence[Explanation], title: str) -> str:
        """Return an HTML page about explanations of the same input. It loads nothing."""

    def fragment(self, explanation: Explanation) -> str:
        """Return an explanation as HTML for a notebook."""

    def plain(self, explanation: Explanation) -> dict[str, Any]:
        """Return further facts about an explanation as plain data, by name."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """A ranking of the features of one input, the relevant ones, and the smallest changes that change the decision.

    Pairs are for ``SUBSETS``: only the relevant features move, or they are fixed and all others move.

    Attributes:
        method: The name of the explainer.
        x: The input ``[*shape]``.
        features: The features of the input, with their names.
        classes: Names of the classes.
        label: The class that is explained.
        target: The other class of a targeted explanation ("why not this class?"); ``ANY`` for none.
        order: Numbers of the features, most relevant first, without padding.
        size: The number of relevant features, the first of ``order``.
        radius: The length of the smallest change found; ``inf`` if none was found.
        new_class: The class after the change; -1 if none was found.
        moves: The changes, ``[2, *shape]``; None if they were not stored.
        probability: The probability of the label at ``x``.
        new_probability: The probabilities of the new classes after the changes; NaN if there is none.
        bound: Which side of the true radius the radii lie on.
        proven: Whether it is proven that no smaller change exists.
        lower: Proven lower bounds on the radii; 0 where nothing is known.
        uncertain: The share of features whose rank is uncertain; None if unknown.
        cost: Rows put through the model for the ranking.
        judging: Rows put through the model for the radii.
        notes: Remarks on how to interpret the ranking and the radii.
        explainer: The settings of the explainer.
        judge: The settings of the robustness method.
        key: The key of its ranking in a store; empty if it is not stored.
        text: The text, if the input is one.
        spans: The start and end of each word in the text, by feature.
        replacements: Real words or values that the smallest change leads to, by feature.
        witness: The inputs after the changes, ``[2, *shape]``, if the model has a domain: in a row of a table, adding a
            move may round a number. None otherwise.
        cells: The columns, if the input is a row of a table.
        extra: Further facts for this kind of input: pairs of a name and a value.
        p: The norm of the radii.
        baselines: Radii to compare with; None if they were not measured.
        title: The input, for headings.
        display: How it is shown; None: it cannot be drawn.
    """

    method: str
    x: Tensor
    features: Features
    classes: tuple[str, ...]
    label: int
    target: int
    order: tuple[int, ...]
    size: int
    radius: tuple[float, float]
    new_class: tuple[int, int]
    moves: Tensor | None
    probability: float
    new_probability: tuple[float, float]
    bound: str = "upper"
    proven: tuple[bool, bool] = (False, False)
    lower: tuple[float, float] = (0.0, 0.0)
    uncertain: float | None = None
    cost: Queries = field(default_factory=Queries)
    judging: Queries = field(default_factory=Queries)
    notes: tuple[str, ...] = ()
    explainer: str = ""
    judge: str = ""
    key: str = ""
    text: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    replacements: Mapping[int, str] = field(default_factory=dict)
    witness: Tensor | None = None
    cells: tuple[Cell, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    p: float = 2.0
    baselines: Baselines | None = None
    title: str = ""
    display: Display | None = None

    def __repr__(self) -> str:
        names = [one.name for one in self.top(min(5, self.size))]
        more = ", …" if self.size > len(names) else ""
        lines = (
            f"Explanation: {self.prediction}, {self.question}",
            f"  {self.size} of {len(self.order)} {self.features.kind} by {self.method or 'a ranking'}: "
            f"{', '.join(names)}{more}",
            f"  {self.sentence}",
        )
        return visible("\n".join(lines))

    # ------------------------------------------------------------------ reading

    def top(self, count: int | None = None) -> list[RankedFeature]:
        """Return the first features by relevance, with their names, values and what the smallest change makes of them.

        Args:
            count: How many; None: the relevant ones.
        """
        cells = {cell.rank: cell for cell in self.cells}
        if count is not None and (isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0):
            raise HoldfastError(f"top takes a number of features, got {shown_value(count)}.")
        lines = []
        for place, number in enumerate(self.order[: self.size if count is None else count]):
            cell = cells.get(place + 1)
            known = () if cell is None else (cell.text, cell.after_text)
            name = self.features.name(number) if cell is None else cell.title
            known = known or ("", self.replacements.get(number, ""))
            lines.append(RankedFeature(place + 1, number, name, place < self.size, *known))
        return lines

    @property
    def sentence(self) -> str:
        """The radius while the relevant features are held, beside the baselines."""
        kind, count = self.features.kind, len(self.order)
        size = self.size
        if size >= count:
            return f"All {count} {kind} are relevant, so none is left to move."
        exact = self.bound == "exact" and self.proven[HELD]
        found = "" if exact or self.bound == "lower" else " found"
        radius = self.radius[HELD]
        most, are = (f"{size} most", "are") if size > 1 else ("most", "is")
        held = f"While the {most} relevant of {count} {kind} {are} held,"
        effect = "changes the prediction" if self.target == ANY else f"makes it {self.classes[self.target]}"
        if math.isinf(radius):
            said = f"{held} no change of the others {effect}, which is proven"
            if not self.proven[HELD]:
                said = f"{held} no change of the others was found that {effect}"
        else:
            long = f"{'at least ' if self.bound == 'lower' else ''}{radius:.3g}"
            said = f"{held} the smallest change{found} of the others that {effect} has length {long} (L{self.p:g})"
        if self.baselines is None:
            return f"{said}."
        named = "the smallest has length" if math.isinf(radius) else "it is"
        return f"{said}; {self.baselines.held_text(size, named)}."

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data that JSON can hold. Tensors are left out."""
        beside = self.baselines
        return {
            "method": self.method,
            "explainer": self.explainer,
            "question": self.question,
            "prediction": self.classes[self.label],
            "probability": self.probability,
            "target": None if self.target == ANY else self.classes[self.target],
            "order": list(self.order),
            "relevant": [
                {"feature": feature, "name": self.features.name(feature), "replacement": self.replacements.get(feature)}
                for feature in self.relevant
            ],
            **({} if self.display is None else self.display.plain(self)),
            "radius": {s: _finite(self.radius[k]) for k, s in enumerate(SUBSETS)},
            "proven": dict(zip(SUBSETS, self.proven, strict=True)),
            "at least": {s: _finite(self.lower[k]) for k, s in enumerate(SUBSETS)},
            "new class": {
                s: None if self.new_class[k] < 0 else self.classes[self.new_class[k]] for k, s in enumerate(SUBSETS)
            },
            "random features": None
            if beside is None
            else {s: _finite(beside.random[k]) for k, s in enumerate(SUBSETS)},
            "all features": None if beside is None else _finite(beside.everything),
            "sentence": self.sentence,
            "norm": f"L{self.p:g}",
            "bound": self.bound,
            "uncertain": self.uncertain,
            "rows to explain": {"forward": self.cost.forward, "gradient": self.cost.gradient},
            "rows to judge": {"forward": self.judging.forward, "gradient": self.judging.gradient},
            "judge": self.judge,
            **dict(self.extra),
            "notes": list(self.notes),
        }

    def to_frame(self) -> Any:
        """Return all features by relevance as a data frame of pandas, one row for each.

        Raises:
            HoldfastError: pandas is not installed.
        """
        try:
            import pandas as pd  # not a dependency
        except ImportError as error:
            raise HoldfastError("a data frame needs pandas: pip install pandas, or use top().") from error
        frame = pd.DataFrame([one._asdict() for one in self.top(len(self.order))])
        return frame.set_index("rank")

    # ------------------------------------------------------------------ showing

    def plot(self) -> Plot:
        """Draw the input, its relevant features and the two smallest changes.

        Raises:
            HoldfastError: The explanation was not made by ``hf.explain``.
        """
        return self._shown().figure([self], self.title)

    def save(self, path: str | Path) -> None:
        """Write the explanation to a file.

        Args:
            path: ``.html``: a page that loads nothing; ``.json``: plain data; otherwise a picture.

        Raises:
            HoldfastError: The file cannot be written, or its suffix is not known.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise HoldfastError(f"an explanation is saved to a path, such as 'why.html', got {type(path).__name__}.")
        path = Path(path)
        if path.suffix.lower() == ".json":
            answer = {"version": __version__, "input": self.title, **self.to_dict()}
            write_text(path, json.dumps(answer, indent=1))
        elif path.suffix.lower() in (".html", ".htm"):
            write_text(path, self._shown().page([self], self.title))
        else:
            self.plot().save(path)

    def _repr_html_(self) -> str | None:
        return None if self.display is None else self.display.fragment(self)

    def _shown(self) -> Display:
        if self.display is None:
            raise HoldfastError("this explanation cannot be drawn, because it was not made by hf.explain.")
        return self.display

    @property
    def relevant(self) -> tuple[int, ...]:
        """The relevant features, most relevant first."""
        return self.order[: self.size]

    @property
    def relevant_mask(self) -> Tensor:
        """Bool, broadcastable to ``x``: the coordinates of the relevant features."""
        chosen = torch.zeros(1, self.features.count, dtype=torch.bool)
        chosen[0, list(self.relevant)] = True
        return self.features.expand(chosen)[0]

    @property
    def heat(self) -> Tensor:
        """The rank of each coordinate's feature, from 1 (first) to 0 (last), broadcastable to ``x``."""
        heat = torch.zeros(1, self.features.count)
        heat[0, list(self.order)] = torch.linspace(1, 0, len(self.order))
        return torch.where(self.features.ids >= 0, self.features.spread(heat), 0)[0]

    @property
    def feature_changes(self) -> Tensor | None:
        """The smallest change of the relevant features, summed over each feature, ``[d]``; None without ``moves``."""
        return None if self.moves is None else self.features.pool(self.moves[MOVED][None])[0]

    @property
    def question(self) -> str:
        """The question that is answered, such as "why 7 and not 9?"."""
        return question(self.classes, self.label, self.target)

    @property
    def prediction(self) -> str:
        """The explained class and its probability."""
        return f"{self.classes[self.label]} ({self.probability:.0%})"

    def radius_text(self, which: int) -> str:
        """Return a radius as text; ``which`` is an index of ``SUBSETS``."""
        if math.isinf(self.radius[which]):
            return "unreachable (proven)" if self.proven[which] else "censored"
        return f"at least {self.radius[which]:.4g}" if self.bound == "lower" else f"{self.radius[which]:.4g}"

    def bound_text(self, which: int) -> str:
        """Return what is known of a finite radius: ``"exact"``, or on which side the true one lies."""
        if self.bound != "exact":
            return f"{self.bound} bound"
        if self.proven[which]:
            return "exact"
        return f"upper bound, at least {self.lower[which]:.4g}" if self.lower[which] > 0 else "upper bound"

    def change_text(self, which: int) -> str:
        """Return the effect of a smallest change as text; ``which`` is an index of ``SUBSETS``."""
        if self.new_class[which] < 0:
            return "no smaller change exists" if self.proven[which] else "no change found"
        return f"changes to {self.classes[self.new_class[which]]} ({self.new_probability[which]:.0%})"


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def question(classes: Sequence[str], label: int, target: int) -> str:
    """Return the question that an explanation answers, such as "why 7 and not 9?".

    Args:
        classes: Names of the classes.
        label: The class that is explained.
        target: The other class; ``ANY`` for none.
    """
    return f"why {classes[label]}" + (f" and not {classes[target]}?" if target != ANY else "?")
