"""The front door: explain one input of any kind by any model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any, Literal, get_args

import torch

from holdfast.as_model import as_model, reads_texts
from holdfast.cases import AskableModel, Cases
from holdfast.columns import Columns
from holdfast.errors import HoldfastError, unknown_name
from holdfast.explainers.explainer import Explainer
from holdfast.explainers.greedy import Greedy, GreedyAS
from holdfast.explaining import explain_cases, judge_ranking
from holdfast.explanation import Explanation
from holdfast.features import Features
from holdfast.inputs import SMALL, read_given, subject_of
from holdfast.modalities.modality import Subject
from holdfast.models.frame import Bound
from holdfast.models.model import Access, Model
from holdfast.progress import progress_bar
from holdfast.ranking import Ranking, check_size
from holdfast.robustness import Judge, Robustness
from holdfast.text import TextModel

Effort = Literal["quick", "default", "thorough"]
"""How long an explanation may take."""


def explain(
    model: Any,
    x: Any,
    target: Any = None,
    method: Any = None,
    features: Any = None,
    *,
    label: Any = None,
    names: Sequence[str] | None = None,
    bounds: tuple[Bound, Bound] | None = None,
    normalize: tuple[Bound, Bound] | None = None,
    classes: Sequence[str] = (),
    columns: Any = None,
    top: float | int | None = None,
    p: float = 2,
    effort: Effort = "quick",
    judge: Robustness | None = None,
    seed: int = 0,
    progress: bool | Callable[[int, int], None] = False,
) -> Explanation:
    """Explain why a model decides as it does about one input: its relevant features, and how hard they are to replace.

    >>> import holdfast as hf
    >>> digits = hf.data.mnist()
    >>> why = hf.explain(hf.data.mnist_cnn(), digits.x[0])
    >>> why.prediction, why.question
    ('7 (100%)', 'why 7?')
    >>> len(why.relevant), why.top(1)[0].rank
    (157, 1)

    Afterwards: ``why.plot()``, ``why.top(20)``, ``why.to_frame()``, ``why.save("why.html")``.

    Args:
        model: A torch module, a classifier of scikit-learn, XGBoost, LightGBM or CatBoost, a transformers classifier
            with its tokenizer, a function of rows, or a model of holdfast. ``hf.as_model`` says how each is read.
        x: One input: a tensor or an array of the shape that the model reads, with or without a first axis of length 1;
            a picture of PIL or the path of an image file; a text; or a row of a table as a Series, a frame of one row,
            a dict or an array.
        target: The class asked about, for "why not this class?", by number or name. None: any other class is a change.
        method: An explainer, its name such as ``"greedy-as"``, a ``Ranking``, or scores of anybody's attribution
            method in the shape of the features or of ``x``. None: Greedy-AS; Greedy for tables, trees and neighbours.
        features: What moves together: ``Features``, ids, or for images ``"pixels"``, ``"patches:16"`` or
            ``"superpixels:50"``. None: pixels of small images, patches of others, words, columns.
        label: The class to explain. None: the prediction.
        names: Names of the features, one for each.
        bounds: The box that inputs live in. None: 0 to 1 for pictures and for images with values from 0 to 1;
            otherwise none.
        normalize: ``(mean, std)`` for each channel, applied to inputs before a torch module.
        classes: Names of the classes.
        columns: The table that the row is from, or its ``Columns``: ranges, scales, and what never changes.
        top: The size of the relevant set: a share (float) or a number of features (int). None: a fifth of images, five
            words, three columns.
        p: The norm of changes: 1, 2 or infinity.
        effort: ``"quick"``, ``"default"`` or ``"thorough"``: the presets of the explainer and of the judge.
        judge: The robustness method that measures the radii. None: the judge of this effort.
        seed: Seed of all random draws.
        progress: Show a progress bar on stderr, or a function that is called with (done, total).

    Returns:
        The explanation.

    Raises:
        HoldfastError: An argument is malformed, or the model does not take the input.
    """
    _check(effort, top, progress)
    table = None if columns is None else columns if isinstance(columns, Columns) else Columns.read(columns)
    given = read_given(x, table, reads_texts(model))
    taken = isinstance(model, (Model, TextModel))
    box = bounds if taken or bounds is not None or reads_texts(model) else given.bounds
    known = as_model(model, box, normalize=normalize, classes=classes, columns=None if taken else table)
    if taken and table is not None:
        _check_columns(known, table)
    subject = subject_of(known, given, table)
    picked = (given.note,) if given.note and box is given.bounds else ()
    cases = _ask(subject, target, features, label, names)
    size = _size(subject, cases, top)
    measure = _judge(subject, p, effort, seed) if judge is None else judge
    with _bar(progress, f"ranking {cases.features.kind}") as ranking_bar:
        if _is_explainer(method):
            explainer = _explainer(method, subject, cases, size, p, effort, seed)
            name = method if isinstance(method, str) else _name(explainer)
            found = explain_cases(cases, name, explainer, measure, size, ranking_bar, seed=seed)[0]
        else:
            order = method if isinstance(method, Ranking) else Ranking.by_score(cases, _one(method, cases), "scores")
            found = judge_ranking(cases, order.method, order, measure, size, ranking_bar, seed=seed)[0]
    found = subject.modality.explained(subject, cases, found)
    return replace(found, notes=(*picked, *found.notes), title=subject.title, display=subject.modality)


def _check(effort: Any, top: Any, progress: Any) -> None:
    if effort not in get_args(Effort):
        raise unknown_name("effort", str(effort), get_args(Effort))
    if top is not None:
        check_size(top, "top")
    if not (isinstance(progress, bool) or callable(progress)):
        raise HoldfastError(f"progress must be True, False or a function, got {type(progress).__name__}.")


def _check_columns(model: AskableModel | TextModel, columns: Columns) -> None:
    """Refuse a model that was made without these columns: its points would be other numbers."""
    if not isinstance(model, Model) or model.domain is None or tuple(model.columns) != columns.names:
        raise HoldfastError(
            "the model was made without these columns: pass the classifier itself, or make the model with columns=."
        )


def _ask(subject: Subject, target: Any, features: Any, label: Any, names: Sequence[str] | None) -> Cases:
    """Return the input as one case, with the names of its features."""
    if features is None or isinstance(features, str):
        features = _features(subject, features)
    cases = subject.model.ask(subject.x, label=label, target=target, features=features)
    if names is None:
        return cases
    if isinstance(names, str):
        raise HoldfastError("names must be one text for each feature, got one text.")
    return subject.model.ask(
        subject.x, cases.label, target, replace(cases.features, names=(tuple(str(name) for name in names),))
    )


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


def _size(subject: Subject, cases: Cases, top: float | int | None) -> float | int:
    """Return the size of the relevant set, which is never larger than there are features."""
    if top is None:
        default = subject.modality.top
        return min(default, cases.features.count) if isinstance(default, int) else default
    if isinstance(top, int) and top > cases.features.count:
        raise HoldfastError(f"top must be at most the {cases.features.count} features there are, got {top}.")
    return top


def _judge(subject: Subject, p: float, effort: Effort, seed: int) -> Robustness:
    if effort == "quick":
        return subject.modality.judge(p, seed)
    return replace(Judge.default(p) if effort == "default" else Judge.thorough(p), seed=seed)


def _is_explainer(method: Any) -> bool:
    given = isinstance(method, (str, Explainer)) or method is None
    return given or (isinstance(method, type) and issubclass(method, Explainer))


def _explainer(
    method: Any, subject: Subject, cases: Cases, size: float | int, p: float, effort: Effort, seed: int
) -> Explainer:
    """Return the explainer: as it is given, or with the settings of this question."""
    if isinstance(method, Explainer):
        return method
    if method is not None:
        made: Any = Explainer.registry.instance(method, Explainer)  # type: ignore[type-abstract]
    elif subject.modality.explainer == "greedy" or cases.model.access < Access.GRADIENTS:
        made = Greedy()
    elif subject.sentences is not None:
        made = Explainer.registry.make(subject.modality.explainer)
    else:
        made = {"quick": GreedyAS.quick, "default": GreedyAS.default, "thorough": GreedyAS.thorough}[effort]()
    known = {field.name for field in fields(made)}
    budget = 1.0 if subject.modality.ranks_all else size
    settings: dict[str, Any] = {"budget": budget, "seed": seed}
    if "robustness" in known:
        settings["robustness"] = replace(made.robustness, p=p)
    objective: Any = getattr(made, "objective", None)
    if getattr(objective, "robustness", None) is not None:
        settings["objective"] = replace(objective, robustness=replace(objective.robustness, p=p))
    result: Explainer = replace(made, **{key: value for key, value in settings.items() if key in known})
    return result


def _name(explainer: Explainer) -> str:
    """Return the name of an explainer; of settings that a preset has, apart from those of the question, its name."""
    for preset in explainer.presets:
        made: Any = getattr(type(explainer), preset)()
        changes = {one: getattr(explainer, one) for one in ("budget", "seed", "objective") if hasattr(made, one)}
        if replace(made, **changes) == explainer:
            return f"{explainer.name}-{preset}"
    return explainer.name


def _one(scores: Any, cases: Cases) -> Any:
    """Return scores with a first axis, which those of one input may lack."""
    given = scores if hasattr(scores, "shape") else torch.as_tensor(scores)
    shape = tuple(given.shape)
    alone = shape in ((cases.features.count,), tuple(cases.x.shape[1:]), tuple(cases.x.shape[2:]))
    return given[None] if (alone and shape[:1] != (1,)) or len(shape) == 1 else given


def _bar(progress: bool | Callable[[int, int], None], title: str) -> Any:
    return nullcontext(progress) if callable(progress) else progress_bar(title, quiet=not progress)
