"""Small images, such as digits: every pixel is drawn, coloured by the direction of the smallest change."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from holdfast.cases import Cases
from holdfast.data import mnist, mnist_cnn
from holdfast.errors import HoldfastError
from holdfast.explanation import HELD, MOVED, Explanation
from holdfast.figures import Plot, cut, plain
from holdfast.modalities.modality import Modality, Subject, radius_facts
from holdfast.modalities.pixels import Pixels, colours, grey_image, in_view, png
from holdfast.modalities.shown import Shown
from holdfast.modalities.source import Source
from holdfast.palette import LOWERED, RAISED, UNMOVED
from holdfast.robustness import Radii

_HELD = "#e5e7eb"
_TITLE = 36  # letters above a panel
_KEPT = 0.08  # share of the picture in the colour of a marked feature: more would hide the colour's lightness


class ImageModality(Modality):
    """Images with few pixels, such as digits. Every pixel is drawn."""

    name: ClassVar[str] = "image"
    marks: ClassVar[str] = (
        "Blue: pertinent positives, lit, and lowered by the smallest change inside them. Orange: pertinent negatives, "
        "dark, and raised by it. Yellow: not moved. In grey these are dark, medium and light."
    )
    legend: ClassVar[str] = (
        f"The top {{top}} of the features by every method, that of Robustness-S̄r where it has two. {marks} The small "
        "pictures are the input after the smallest change of these features, and of all others. The numbers are its "
        "length and the class that it leads to."
    )
    unit: ClassVar[str] = "1 is the change of one pixel from black to white"

    def accepts(self, source: Source) -> bool:
        return source.digit is not None or (
            source.photo is None and source.text is None and source.rows is None and source.model in (None, "digits")
        )

    def read(self, source: Source) -> Subject:
        named = sum(one is not None for one in (source.file, source.digit, source.photo, source.text))
        if named != 1:
            images = "an image file, an embedded digit with --digit, a photograph with --photo"
            rows = "a text with --text, a row of a table with --row"
            raise HoldfastError(f"name {'only ' if named else ''}one of: {images}, {rows}.")
        if source.model not in (None, "digits"):
            raise HoldfastError("--digit is for the digit network: leave --model out.")
        network = mnist_cnn().on(source.device)
        if source.digit is None:
            assert source.file is not None
            x = grey_image(source.file, (28, 28), source.resize)[None, None]
            return Subject(self, network, x.to(source.device), str(source.file), str(source.file))
        digits = mnist()
        if not 0 <= source.digit < len(digits):
            raise HoldfastError(f"--digit must be between 0 and {len(digits) - 1}, got {source.digit}.")
        x = digits.x[source.digit : source.digit + 1].to(source.device)
        return Subject(self, network, x, source.digit, f"test digit #{source.digit}")

    def facts(self, explanation: Explanation) -> list[tuple[str, str]]:
        lowered, raised = pertinent(explanation)
        return [
            ("pertinent positive", f"{len(lowered)}: {_words(explanation)[1]}"),
            ("pertinent negative", f"{len(raised)}: {_words(explanation)[0]}"),
        ]

    def plain(self, explanation: Explanation) -> dict[str, list[int]]:
        lowered, raised = pertinent(explanation)
        return {"pertinent positive": lowered, "pertinent negative": raised}

    def figure(self, explanations: Sequence[Explanation], title: str) -> Plot:
        """Draw one row for each explanation: input, relevant features, and the input after each of the two changes."""
        columns = ["input", "relevant features", "only these move", "these are held"]
        figure, grid = _grid(len(explanations), columns)
        for row, explanation in enumerate(explanations):
            (x, moves), marked = _in_view(explanation), explanation.relevant_mask
            _panel(grid[row, 0], colours(x), explanation.classes[explanation.label])
            _panel(grid[row, 1], mark(colours(x), moves[MOVED], marked), explanation.method)
            for which, free in ((MOVED, marked), (HELD, ~marked)):
                new = explanation.new_class[which]
                named = (
                    "none found" if new < 0 else f"{explanation.classes[new]}, radius {explanation.radius[which]:.3g}"
                )
                _panel(grid[row, 2 + which], blend(colours(x + moves[which]), moves[which], free), named)
        legend = "relevant features   orange: {}   blue: {}   yellow: not moved".format(*_words(explanations[0]))
        _finish(figure, len(explanations), legend)
        return figure

    def shown(self, explanation: Explanation, title: str) -> Shown:
        (x, moves), marked = _in_view(explanation), explanation.relevant_mask
        relevant = png(mark(colours(x), moves[MOVED], marked))
        details = tuple(
            (
                png(blend(colours(x + moves[which]), moves[which], free)),
                f"after the smallest change, {name}",
            )
            for which, free, name in ((MOVED, marked, "only these move"), (HELD, ~marked, "these are held"))
        )
        return Shown(title, radius_facts(explanation), relevant, details)

    def input_image(self, explanation: Explanation) -> str:
        return png(colours(in_view(explanation.x)))


def _words(explanation: Explanation) -> tuple[str, str]:
    """Return what a smallest change does to pixels that it raises and lowers: turn on and off those of grey images."""
    x = explanation.x
    if len(x) == 1 and float(x.min()) >= 0 and float(x.max()) <= 1:
        return "dark, would be turned on", "lit, would be turned off"
    return "would be raised", "would be lowered"


def pertinent(explanation: Explanation) -> tuple[list[int], list[int]]:
    """Return the relevant features that the smallest change lowers (pertinent positives), and those that it raises."""
    change = explanation.feature_changes
    if change is None:
        return [], []
    lowered = [feature for feature in explanation.relevant if float(change[feature]) < 0]
    return lowered, [feature for feature in explanation.relevant if float(change[feature]) > 0]


def draw_changes(cases: Cases, radii: Radii, subsets: Tensor, titles: Sequence[str], path: Path) -> None:
    """Draw one row for each case: the input, then for each subset the input after the smallest change inside it.

    Args:
        cases: Images ``[B, 1 or 3, H, W]``.
        radii: The smallest changes of the K subsets, ``[B, K]``.
        subsets: The features that may move, bool ``[B, K, d]``.
        titles: One title for each subset.
        path: The picture to write.

    Raises:
        HoldfastError: The inputs are not images, or the picture cannot be written.
    """
    if cases.x.ndim != 4 or cases.x.shape[1] not in (1, 3):
        raise HoldfastError(f"pictures need images [B, 1 or 3, H, W], got {tuple(cases.x.shape)}.")
    figure, grid = _grid(len(cases), ["input", *titles])
    for case in range(len(cases)):
        x = cases.x[case].cpu()
        _panel(grid[case, 0], colours(x), cases.model.class_name(int(cases.label[case])))
        for k in range(len(titles)):
            number = torch.tensor([case], device=subsets.device)
            free = cases.features.expand(subsets[case, k][None], number)[0].cpu()
            new, witness = int(radii.new_class[case, k]), radii.witness[case, k].cpu()
            named = f"{cases.model.class_name(new)}, radius {float(radii.radius[case, k]):.3g}"
            _panel(grid[case, k + 1], blend(colours(witness), witness - x, free), named if new >= 0 else "none found")
    _finish(figure, len(cases), "orange: raised by the smallest change   blue: lowered   grey: held")
    figure.save(path)


def _in_view(explanation: Explanation) -> tuple[Tensor, Tensor]:
    """Return the image and both changes, scaled so that the values of the image can be shown."""
    assert explanation.moves is not None, "small images keep them"
    x, moves = explanation.x.float(), explanation.moves.float()
    return in_view(x), in_view(x + moves, x) - in_view(x)


# ---------------------------------------------------------------------- figures


def _grid(rows: int, titles: Sequence[str]) -> tuple[Plot, Any]:
    """Return a figure with one row of panels for each input, and titles above the columns."""
    figure = Plot(1.75 * len(titles), 2.05 * rows + 0.5, layout=None)
    grid: Any = figure.subplots(rows, len(titles), squeeze=False)
    for column, title in enumerate(titles):
        grid[0, column].annotate(
            title, (0.5, 1.22), xycoords="axes fraction", ha="center", fontsize=8.5, fontweight="bold"
        )
    return figure, grid


def _finish(figure: Plot, rows: int, legend: str) -> None:
    height = 2.05 * rows + 0.5
    lines = textwrap.wrap(legend, int(15 * figure.get_figwidth()))  # about 15 letters fit in an inch
    figure.text(0.5, 0.1 / height, "\n".join(lines), ha="center", fontsize=8)
    bottom = (0.21 + 0.15 * len(lines)) / height
    figure.subplots_adjust(left=0.02, right=0.98, top=1 - 0.62 / height, bottom=bottom, hspace=0.28, wspace=0.08)


def _panel(axis: Any, picture: Pixels, title: str) -> None:
    axis.imshow(picture, interpolation="nearest")
    axis.set_title(cut(plain(title), _TITLE), fontsize=8.5 if len(title) < 24 else 6.5, pad=3)
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_color("#9ca3af")


def blend(base: Pixels, change: Tensor, free: Tensor) -> Pixels:
    """Colour a change in proportion to its size, and show fixed pixels in a lighter tone.

    Args:
        base: The picture ``[H, W, 3]``.
        change: The change of the input, ``[C, H, W]``.
        free: The coordinates that may move, bool, broadcastable to ``change``.

    Returns:
        Pixels ``[H, W, 3]``.
    """
    total = change.detach().float().cpu().sum(0)
    strength = (total.abs() / total.abs().max().clamp_min(1e-12)).sqrt().numpy()[..., None] * 0.85
    colour = np.where(total.numpy()[..., None] > 0, _rgb(RAISED), _rgb(LOWERED))
    fixed = ~free.expand(change.shape).any(0).cpu().numpy()[..., None]
    veiled = np.where(fixed, 0.72 * base + 0.28 * _rgb(_HELD), base)
    return np.asarray(veiled * (1 - strength) + colour * strength)


def mark(base: Pixels, change: Tensor, marked: Tensor) -> Pixels:
    """Colour the marked features by the direction of the change, over a faded picture.

    Args:
        base: The picture ``[H, W, 3]``.
        change: The change of the input, ``[C, H, W]``.
        marked: The coordinates to colour, bool, broadcastable to ``change``.

    Returns:
        Pixels ``[H, W, 3]``.
    """
    total = change.detach().float().cpu().sum(0).numpy()[..., None]
    colour = np.where(total > 0, _rgb(RAISED), np.where(total < 0, _rgb(LOWERED), _rgb(UNMOVED)))
    shown = marked.expand(change.shape).any(0).cpu().numpy()[..., None]
    return np.asarray(np.where(shown, _KEPT * base + (1 - _KEPT) * colour, 0.55 * base + 0.08))


def _rgb(colour: str) -> Pixels:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
