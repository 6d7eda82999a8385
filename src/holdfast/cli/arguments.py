"""Parse arguments of the command line, with one-sentence errors."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.criteria.robustness import RobustnessRelevant, RobustnessRest
from holdfast.data import read_photo
from holdfast.errors import HoldfastError, first_line, unknown_name
from holdfast.explainers.explainer import Explainer
from holdfast.explainers.gradients import ExpectedGradients, Grad
from holdfast.explainers.random import Random
from holdfast.modalities.modality import Modality, Subject
from holdfast.modalities.pixels import grey_image
from holdfast.modalities.source import RowSource
from holdfast.ranking import check_size
from holdfast.reference import RandomWords
from holdfast.robustness import Robustness

_OBJECTIVES: dict[str, type[RobustnessRest] | type[RobustnessRelevant]] = {
    one.name: one for one in (RobustnessRest, RobustnessRelevant)
}


def usable_device(device: str) -> torch.device:
    """Return the device, after a test that it can hold a tensor."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise HoldfastError(f"device {device!r} cannot be used here: {first_line(error)}") from error
    return torch.device(device)


def norm(p: str) -> float:
    """Parse p as a number. Robustness methods check that they support this norm."""
    try:
        return float(p)
    except ValueError:
        raise HoldfastError(f"p must be 1, 2 or inf, got {p!r}.") from None


def method(name: str, p: float, seed: int) -> Robustness:
    """Return a robustness method.

    Args:
        name: Its name, or the name of a preset.
        p: The norm of changes.
        seed: Seed of the search, for methods that have one.

    Raises:
        HoldfastError: There is no such method, or it does not support this norm.
    """
    made: Any = Robustness.registry.maker(name)(p=p)
    seeded = any(field.name == "seed" for field in fields(made))
    result: Robustness = replace(made, seed=seed) if seeded else made
    return result


def subset(cases: Cases, text: str, seed: int) -> Tensor:
    """Parse the features that may move.

    Args:
        cases: One case.
        text: ``all``, ``top:20%``, ``rest:20%`` or ``random:20%``; for tables also names of columns.
        seed: Seed of a random subset.

    Returns:
        Bool ``[1, d]``.

    Raises:
        HoldfastError: The text is malformed.
    """
    kind, _, share = text.partition(":")
    names = cases.features.names
    if names is not None and not share and text != "all":
        return _named(text, list(names[0]), cases)
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


def _named(text: str, known: list[str], cases: Cases) -> Tensor:
    """Return the features of some names, separated by commas."""
    chosen = torch.zeros(1, cases.features.count, dtype=torch.bool, device=cases.x.device)
    for name in listed(text):
        if name not in known:
            raise unknown_name("column that may move", name, known)
        chosen[0, known.index(name)] = True
    return chosen


def listed(text: str | None) -> tuple[str, ...]:
    """Return names that are separated by commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def row_source(
    table: Path | None,
    row: int | None,
    columns: Path | None,
    changed: tuple[str | None, str | None, str | None],
    classes: str | None,
    label_column: str | None,
) -> RowSource | None:
    """Return the row of a table that the options name; None if they name none.

    Args:
        table: The .csv file.
        row: The number of the row.
        columns: The file that says what the columns are.
        changed: Columns that are fixed, that rise and that fall, separated by commas.
        classes: Names of the classes, separated by commas.
        label_column: The column with the class.
    """
    fixed, rising, falling = map(listed, changed)
    source = RowSource(table, row, columns, fixed, rising, falling, listed(classes), label_column)
    return source if source.named else None


def masked(subject: Subject, cases: Cases, path: Path, resize: bool) -> Tensor:
    """Return the features that contain a pixel marked in a mask.

    Args:
        subject: The input. A mask of a photograph is cropped like it.
        cases: The input as one case.
        path: The mask, an image file. Marked pixels are not black, or bright in a mask of a photograph.
        resize: Whether to scale a mask of another size.

    Returns:
        Bool ``[1, d]``.

    Raises:
        HoldfastError: The mask cannot be read, or has another size.
    """
    height, width = cases.x.shape[2:]
    if subject.x.shape[1] == 3:
        marked = read_photo(path, height, crop=subject.crop).amax(0) > 0.5
    else:
        marked = grey_image(path, (width, height), resize) > 0
    return cases.features.pool(marked.to(cases.x)[None, None].expand_as(cases.x)) > 0


def output(path: Path | None, modality: Modality, option: str = "--out") -> Path:
    """Return the file to write an explanation to, and check it before anything is computed.

    Args:
        path: The file from the command line; None: a default name.
        modality: The modality that draws the explanation.
        option: The option to name in errors.

    Raises:
        HoldfastError: The file has a wrong suffix or cannot be written.
    """
    path = path or Path("explanation" + (modality.suffixes[0] if modality.suffixes else ".png"))
    if modality.suffixes:
        if path.suffix.lower() not in modality.suffixes:
            raise HoldfastError(f"{option} {path} must end in {modality.suffixes[0]}: a text is shown as a page.")
        _check_writable(path, option)
    else:
        check_picture(path, option)
    return path


def check_picture(path: Path, option: str = "--out") -> None:
    """Check that a picture can be written.

    Args:
        path: The picture.
        option: The option to name in errors.

    Raises:
        HoldfastError: The file has a wrong suffix or cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import

    kinds = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise HoldfastError(f"{option} {path} must end in a kind of picture: .{', .'.join(sorted(kinds))}.")
    _check_writable(path, option)


def _check_writable(path: Path, option: str) -> None:
    if path.is_dir() or not os.access(next(p for p in path.resolve().parents if p.exists()), os.W_OK):
        raise HoldfastError(f"cannot write {path}: choose another {option}.")


def size(text: str) -> float | int:
    """Parse a share of the features, such as ``20%``, or a number of features."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else int(text)
    except ValueError:
        raise HoldfastError(f"--top must be a share such as 20% or a number of features, got {text!r}.") from None
    check_size(value, "--top")
    return value


@dataclass(frozen=True)
class Wanted:
    """Options of an explanation.

    Attributes:
        size: The size of the relevant set: a share (float) or a number (int).
        p: The norm of changes.
        objective: The criterion that Greedy methods optimise; None: the default.
        reference: The value that replaces removed features; None: the default.
        seed: Seed of all random draws.
        budget: How many features an explainer with a budget chooses; None: the relevant ones.
    """

    size: float | int
    p: float
    objective: str | None
    reference: str | None
    seed: int
    budget: float | int | None = None

    def check(self, names: Sequence[str]) -> None:
        """Check the options against the explainers.

        Args:
            names: Names of explainers.

        Raises:
            HoldfastError: A name is unknown, or an option applies to none of the explainers.
        """
        if self.objective not in (None, *_OBJECTIVES):
            raise HoldfastError(f"--objective must be one of {', '.join(_OBJECTIVES)}, got {self.objective!r}.")
        made: list[Any] = [Explainer.registry.make(name) for name in names]
        known = {field.name for one in made for field in fields(one)}
        for option in ("objective", "reference"):
            if getattr(self, option) is not None and option not in known:
                raise HoldfastError(f"{', '.join(names)} has no {option} to choose: leave --{option} out.")

    def explainers(self, names: Sequence[str], words: RandomWords | None = None) -> dict[str, Explainer]:
        """Return explainers by name, with those of the options that they support.

        Args:
            names: Names of explainers that ``check`` accepts.
            words: Random words of the model, if the input is a text.

        Raises:
            HoldfastError: The reference is malformed.
        """
        return {name: self._with_settings(Explainer.registry.make(name), words) for name in names}

    def _with_settings(self, made: Any, words: RandomWords | None) -> Explainer:
        known = {field.name for field in fields(made)}
        settings: dict[str, Any] = {"budget": self.size if self.budget is None else self.budget, "seed": self.seed}
        if "robustness" in known:
            settings["robustness"] = replace(made.robustness, p=self.p)
        search = getattr(getattr(made, "objective", None), "robustness", None)
        if search is not None:  # an explainer may optimise another criterion
            settings["objective"] = _OBJECTIVES[self.objective or RobustnessRest.name](replace(search, p=self.p))
        if self.reference is not None:
            settings["reference"] = _reference(self.reference, words)
        if words is not None and isinstance(made, ExpectedGradients):
            settings["references"] = words
        result: Explainer = replace(made, **{key: value for key, value in settings.items() if key in known})
        return result


def _reference(text: str, words: RandomWords | None) -> float | str | RandomWords:
    if text == "words" and words is not None:
        return words
    try:
        return float(text)
    except ValueError:
        if words is not None:
            raise HoldfastError(f"--reference of a text must be words or a number, got {text!r}.") from None
        return text
