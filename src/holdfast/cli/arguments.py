"""Words on the command line made into what they mean, or one sentence about what is wrong with them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from torch import Tensor

from holdfast.cases import Cases
from holdfast.errors import HoldfastError
from holdfast.experiment.names import EXPLAINERS, METHODS, OBJECTIVES
from holdfast.explainers.explainer import Explainer
from holdfast.explainers.gradients import ExpectedGradients, Grad
from holdfast.explainers.random import Random
from holdfast.ranking import check_size
from holdfast.reference import RandomWords
from holdfast.robustness import Judge, Robustness


def usable_device(device: str) -> torch.device:
    """The device, if a number can be put on it."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise HoldfastError(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return torch.device(device)


def class_name(text: str) -> int | str:
    """A class by its number, or by its name."""
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def norm(p: str) -> float:
    """p as a number; whether it is a norm the robustness methods say."""
    try:
        return float(p)
    except ValueError:
        raise HoldfastError(f"p must be 1, 2 or inf, got {p!r}.") from None


def method(name: str, p: float, seed: int) -> Robustness:
    """The robustness method of that name."""
    if name not in METHODS:
        raise HoldfastError(f"there is no method {name!r}: use one of {', '.join(METHODS)}.")
    made: Any = METHODS[name](p=p)
    seeded = any(field.name == "seed" for field in fields(made))
    method: Robustness = replace(made, seed=seed) if seeded else made
    return method


def subset(cases: Cases, text: str, seed: int) -> Tensor:
    """The features ``[1, d]`` that a word such as rest:20% lets move."""
    kind, _, share = text.partition(":")
    if text == "all":
        return torch.ones(1, cases.features.count, dtype=torch.bool, device=cases.x.device)
    try:
        part = float(share.removesuffix("%")) / 100
    except ValueError:
        part = math.nan
    if kind not in ("top", "rest", "random") or not 0 < part < 1 or not share.endswith("%"):
        raise HoldfastError(f"--subset must be all, top:20%, rest:20% or random:20%, got {text!r}.")
    explainer = Random(seed) if kind == "random" else Grad()
    chosen = explainer(cases).top([part])[:, 0]
    return ~chosen if kind == "rest" else chosen


def check_picture(path: Path, option: str = "--out") -> None:
    """Refuse a picture that could not be written, before anything is computed for it."""
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise HoldfastError(f"{option} {path} must end in a kind of picture: .{', .'.join(sorted(kinds))}.")
    _check_writable(path, "picture", option)


def check_page(path: Path, option: str = "--out") -> None:
    """Refuse a page that could not be written."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise HoldfastError(f"{option} {path} must end in .html: a text is shown as a page.")
    _check_writable(path, "page", option)


def _check_writable(path: Path, what: str, option: str) -> None:
    if path.is_dir() or not os.access(next(p for p in path.resolve().parents if p.exists()), os.W_OK):
        raise HoldfastError(f"cannot write the {what} {path}: choose another {option}.")


def size(text: str) -> float | int:
    """A share of the features from 20%, or a number of them."""
    try:
        size = float(text[:-1]) / 100 if text.endswith("%") else int(text)
    except ValueError:
        raise HoldfastError(f"--top must be a share such as 20% or a number of features, got {text!r}.") from None
    check_size(size, "--top")
    return size


@dataclass(frozen=True)
class Wanted:
    """What an explanation should be: a ``size`` of features, found by which norm, objective, reference and seed."""

    size: float | int
    p: float
    objective: str | None
    reference: str | None
    seed: int

    def explainers(self, names: Sequence[str], words: RandomWords | None = None) -> dict[str, Explainer]:
        """Explainers by name, ranking as many features as will be shown; random ``words`` stand in those of a text.

        What is wanted of some must mean something to one of them at least.
        """
        unknown = next((name for name in names if name not in EXPLAINERS), None)
        if unknown is not None:
            raise HoldfastError(f"there is no explainer {unknown!r}: use one of {', '.join(EXPLAINERS)}.")
        if self.objective not in (None, *OBJECTIVES):
            raise HoldfastError(f"--objective must be one of {', '.join(OBJECTIVES)}, got {self.objective!r}.")
        made: dict[str, Any] = {name: EXPLAINERS[name]() for name in names}
        known = {field.name for one in made.values() for field in fields(one)}
        if self.objective is not None and "objective" not in known:
            raise HoldfastError(f"there is no objective to choose for {', '.join(names)}: leave --objective out.")
        if self.reference is not None and "reference" not in known:
            raise HoldfastError(f"there is no reference to choose for {', '.join(names)}: leave --reference out.")
        return {name: self._set(one, words) for name, one in made.items()}

    def _set(self, made: Any, words: RandomWords | None) -> Explainer:
        """The explainer with all that is wanted and that it has a setting for."""
        known = {field.name for field in fields(made)}
        given: dict[str, Any] = {"budget": self.size, "seed": self.seed}
        if "robustness" in known:
            given["robustness"] = replace(made.robustness, p=self.p)
        if "objective" in known:
            given["objective"] = OBJECTIVES[self.objective or "rest"](replace(made.objective.robustness, p=self.p))
        if self.reference is not None:
            given["reference"] = _reference(self.reference, words)
        if words is not None and isinstance(made, ExpectedGradients):
            given["references"] = words
        found: Explainer = replace(made, **{key: value for key, value in given.items() if key in known})
        return found

    def judge(self, photograph: bool = False) -> Judge:
        """Who measures it: for a photograph smaller than quick, which would take as long as the explanation."""
        judge = Judge(self.p, 15, classes=3, starts=0) if photograph else Judge.quick(self.p)
        return replace(judge, seed=self.seed)


def _reference(text: str, words: RandomWords | None) -> float | str | Words:
    if text == "words" and words is not None:
        return words
    try:
        return float(text)
    except ValueError:
        if words is not None:
            raise HoldfastError(f"--reference of a text must be words or a number, got {text!r}.") from None
        return text
