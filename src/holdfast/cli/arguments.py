"""Words on the command line made into what they mean, or one sentence about what is wrong with them."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from torch import Tensor

from holdfast.cases import Cases
from holdfast.errors import HoldfastError
from holdfast.experiment.names import EXPLAINERS, METHODS, OBJECTIVES
from holdfast.explainers import Explainer, Grad, Random
from holdfast.ranking import check_size
from holdfast.reference import Words
from holdfast.robustness import Judge, MinNorm, Robustness


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

    def explainer(self, name: str, words: Words | None = None) -> Explainer:
        """The explainer of that name, ranking as many features as will be shown; ``words`` stand in those of a text."""
        if name not in EXPLAINERS:
            raise HoldfastError(f"there is no explainer {name!r}: use one of {', '.join(EXPLAINERS)}.")
        if self.objective not in (None, *OBJECTIVES):
            raise HoldfastError(f"--objective must be one of {', '.join(OBJECTIVES)}, got {self.objective!r}.")
        made: Any = EXPLAINERS[name]()
        known = {field.name for field in fields(made)}
        if self.objective is not None and "objective" not in known:
            raise HoldfastError(f"{name} optimises nothing: leave --objective out.")
        search = MinNorm(self.p, steps=20)
        given: dict[str, Any] = {"robustness": search, "budget": self.size, "seed": self.seed}
        given["objective"] = OBJECTIVES[self.objective or "rest"](search)
        if self.reference is not None:
            if "reference" not in known:
                raise HoldfastError(f"{name} takes no reference: leave --reference out.")
            given["reference"] = _reference(self.reference, words)
        if words is not None and name == "expected-gradients":
            given["references"] = words
        found: Explainer = replace(made, **{key: value for key, value in given.items() if key in known})
        return found

    def judge(self, photograph: bool = False) -> Judge:
        """Who measures it: for a photograph smaller than quick, which would take as long as the explanation."""
        judge = Judge(self.p, 15, classes=3, starts=0) if photograph else Judge.quick(self.p)
        return replace(judge, seed=self.seed)


def _reference(text: str, words: Words | None) -> float | str | Words:
    if text == "words" and words is not None:
        return words
    try:
        return float(text)
    except ValueError:
        return text
