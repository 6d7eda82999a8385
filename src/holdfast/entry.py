"""The front door: explain one input of any kind by any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from holdfast.cases import Cases
from holdfast.chunks import Progress
from holdfast.errors import HoldfastError, unknown_name
from holdfast.explainers.explainer import Explainer
from holdfast.explainers.greedy import Greedy, GreedyAS
from holdfast.explaining import explain_cases, judge_ranking
from holdfast.explanation import Explanation
from holdfast.features import Features
from holdfast.inputs import SMALL, read_subject
from holdfast.modalities.modality import Subject
from holdfast.models.frame import Bound
from holdfast.models.model import Access
from holdfast.progress import reported
from holdfast.ranking import Ranking, check_size
from holdfast.robustness import Exact, Judge, Robustness
from holdfast.tensors import read_tensor

Effort = Literal["quick", "default", "thorough"]
"""How long an explanation may take."""


def explain(
    model: Any,
    x: Any,
    target: Any = None,
    method: Any = None,
    features: Any = None,
    *,
    names: Sequence[str] | None = None,
    bounds: tuple[Bound, Bound] | None = None,
    classes: Sequence[str] = (),
    columns: Any = None,
    top: float | int | None = None,
    p: float = 2,
    effort: Effort = "quick",
    seed: int = 0,
    progress: bool | Progress = False,
) -> Explanation:
    """Explain why a model decides as it does about one input.

    >>> import holdfast as hf
    >>> why = hf.explain(hf.data.mnist_cnn(), hf.data.mnist().x[0])
    >>> why.prediction, why.question, why.size
    ('7 (100%)', 'why 7?', 157)

    Afterwards: ``why.plot()``, ``why.top(20)``, ``why.to_frame()``, ``why.save("why.html")``.

    Args:
        model: A model of any library: ``hf.as_model`` says which, and how each is read.
        x: One input: a tensor or an array, with or without a first axis of length 1; a picture of PIL or an image file;
            a text; or a row of a table as a Series, a frame of one row, a dict or an array.
        target: The class asked about, for "why not this class?", by number or name. None: any other class.
        method: An explainer or its name; or a ``Ranking`` or scores of any attribution method, in the shape of the
            features or of ``x``. None: Greedy-AS; Greedy for tables and for models without gradients.
        features: What moves together: ``Features``, ids, or for images text such as ``"patches:16"``. None: pixels of
            small images, patches of others, words, columns.
        names: Names of the features, one for each.
        bounds: The box that inputs live in. None: 0 to 1 for pictures and for images whose values lie there.
        classes: Names of the classes.
        columns: The table that the row is from, or its ``Columns``: ranges, scales, and what never changes.
        top: The size of the relevant set: a share (float) or a number (int). None: a fifth, five words, three columns.
        p: The norm of changes: 1, 2 or infinity.
        effort: Presets of the explainer and of the judge: ``"quick"``, ``"default"`` or ``"thorough"``.
        seed: Seed of all random draws.
        progress: Show a progress bar on stderr; or a function that is called with (done, total).

    Returns:
        The explanation.

    Raises:
        HoldfastError: An argument is malformed, or the model does not take the input.
    """
    question = _Question(target, method, features, names, top, p, effort, seed, progress)
    return question.answer(read_subject(model, x, bounds, classes, columns))


@dataclass(frozen=True)
class _Question:
    """What is asked about one input, as ``explain`` takes it."""

    target: Any
    method: Any
    features: Any
    names: Sequence[str] | None
    top: float | int | None
    p: float
    effort: Effort
    seed: int
    progress: bool | Progress

    def __post_init__(self) -> None:
        if self.effort not in get_args(Effort):
            raise unknown_name("effort", str(self.effort), get_args(Effort))
        if isinstance(self.top, np.integer | np.floating):
            object.__setattr__(self, "top", self.top.item())
        if self.top is not None:
            check_size(self.top, "top")
        if self.names is not None and (isinstance(self.names, str) or not hasattr(self.names, "__iter__")):
            kind = "one text" if isinstance(self.names, str) else type(self.names).__name__
            raise HoldfastError(f"names must be one text for each feature, got {kind}.")

    def answer(self, subject: Subject) -> Explanation:
        """Explain the input."""
        cases = self._ask(subject)
        size = self._size(subject, cases)
        judge = self._judge(subject)
        with reported(self.progress, f"ranking {cases.features.kind}") as bar:
            if _is_explainer(self.method):
                explainer = self._explainer(subject, cases, size)
                name = self.method if isinstance(self.method, str) else _name(explainer)
                made = explain_cases(cases, name, explainer, judge, size, bar, seed=self.seed)[0]
            else:
                ranking = self._ranking(cases)
                made = judge_ranking(cases, ranking.method, ranking, judge, size, bar, seed=self.seed)[0]
        made = subject.modality.explained(subject, cases, made)
        return replace(made, notes=(*subject.notes, *made.notes), title=subject.title, display=subject.modality)

    def _ask(self, subject: Subject) -> Cases:
        """Return the input as one case, with the names of its features."""
        features = self.features
        if features is None or isinstance(features, str):
            features = _features(subject, features)
        target = _named(self.target, subject.model.classes)
        cases = subject.model.ask(subject.x, target=target, features=features)
        if self.names is None:
            return cases
        if subject.columns is not None:
            raise HoldfastError("columns have names already: leave names out.")
        flat: Any = tuple(map(str, self.names))  # as many as there are features
        return subject.model.ask(subject.x, target=target, features=replace(cases.features, names=flat))

    def _size(self, subject: Subject, cases: Cases) -> float | int:
        """Return the size of the relevant set, which is never larger than there are features."""
        count = cases.features.count
        if self.top is None:
            default = subject.modality.top
            return min(default, count) if isinstance(default, int) else default
        if isinstance(self.top, int) and self.top > count:
            raise HoldfastError(f"top must be at most the {count} features there are, got {self.top}.")
        return self.top

    def _judge(self, subject: Subject) -> Robustness:
        if self.effort == "quick":
            return subject.modality.judge(self.p, self.seed)
        return replace(Judge.default(self.p) if self.effort == "default" else Judge.thorough(self.p), seed=self.seed)

    def _explainer(self, subject: Subject, cases: Cases, size: float | int) -> Explainer:
        """Return the explainer: as it is given, or with the settings of this question."""
        if isinstance(self.method, Explainer):
            return self.method
        made: Any = self._default(subject, cases)
        if self.method is not None:
            made = Explainer.registry.instance(self.method, Explainer)  # type: ignore[type-abstract]
        # A whole order by searches from decisions takes minutes.
        exact = isinstance(Judge(self.p).adapted(cases.model), Exact)
        whole = subject.modality.ranks_all and (self.effort != "quick" or cases.model.smooth or exact)
        settings: dict[str, Any] = {"budget": 1.0 if whole else size, "seed": self.seed}
        known = {field.name for field in fields(made)}
        if "robustness" in known:
            settings["robustness"] = replace(made.robustness, p=self.p)
        objective: Any = getattr(made, "objective", None)
        if getattr(objective, "robustness", None) is not None:
            settings["objective"] = replace(objective, robustness=replace(objective.robustness, p=self.p))
        result: Explainer = replace(made, **{key: value for key, value in settings.items() if key in known})
        return result

    def _default(self, subject: Subject, cases: Cases) -> Explainer:
        """Return the explainer that suits the model, of this effort."""
        if subject.modality.explainer == "greedy" or cases.model.access < Access.GRADIENTS:
            return Greedy()
        if subject.sentences is not None:
            return Explainer.registry.make(subject.modality.explainer)
        return {"quick": GreedyAS.quick, "default": GreedyAS.default, "thorough": GreedyAS.thorough}[self.effort]()

    def _ranking(self, cases: Cases) -> Ranking:
        """Return the ranking that is given, or that of the scores."""
        if isinstance(self.method, Ranking):
            return self.method
        given = self.method if hasattr(self.method, "shape") else read_tensor(self.method, "scores")
        # Scores of one input may lack the first axis.
        shapes = ((cases.features.count,), tuple(cases.x.shape[1:]), tuple(cases.x.shape[2:]))
        alone = tuple(given.shape) in shapes and (given.ndim == 1 or len(given) != 1)
        return Ranking.by_score(cases, given[None] if alone or given.ndim == 1 else given, "scores")


def _features(subject: Subject, features: str | None) -> Features | None:
    """Return what moves together; None: each coordinate by itself."""
    image = subject.x.ndim == 4 and subject.x.shape[1] in (1, 3)
    if features is None and image and subject.x[0, 0].numel() > SMALL:
        features = "patches:16"
    if subject.columns is None and subject.sentences is None and not image:
        if features is not None:
            raise HoldfastError(f"features of inputs that are no images must be Features or ids, got {features!r}.")
        names, count = subject.model.columns, subject.x[0].numel()
        return Features.columns(count, names=list(names)) if len(names) == count and subject.x.ndim == 2 else None
    return subject.modality.features(features, subject.x, subject.sentences, subject.columns)


def _named(target: Any, classes: Sequence[str]) -> Any:
    """Return a target; a whole number is a name where classes are called by other whole numbers than their places."""
    called = any(name != str(place) for place, name in enumerate(classes))
    return str(target) if isinstance(target, (int, np.integer)) and called and str(target) in classes else target


def _is_explainer(method: Any) -> bool:
    given = isinstance(method, (str, Explainer)) or method is None
    return given or (isinstance(method, type) and issubclass(method, Explainer))


def _name(explainer: Explainer) -> str:
    """Return the name of an explainer; of settings that a preset has, apart from those of the question, its name."""
    for preset in explainer.presets:
        made: Any = getattr(type(explainer), preset)()
        changes = {one: getattr(explainer, one) for one in ("budget", "seed", "objective") if hasattr(made, one)}
        if replace(made, **changes) == explainer:
            return f"{explainer.name}-{preset}"
    return explainer.name
