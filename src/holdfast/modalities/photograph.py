"""Photographs: heat maps, outlines of the top features, and changes amplified until they are visible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np

from holdfast import figures
from holdfast.data import photos, read_photo
from holdfast.data.dataset import Examples
from holdfast.data.imagenet import PhotographData
from holdfast.data.network import Network, Place, shown_names
from holdfast.errors import HoldfastError
from holdfast.explanation import HELD, MOVED, SUBSETS, Explanation
from holdfast.figures import Plot, cut
from holdfast.modalities.modality import Modality, Subject, radius_facts
from holdfast.modalities.pixels import Pixels, in_view, jpeg
from holdfast.modalities.shown import Shown
from holdfast.modalities.source import Source
from holdfast.robustness import Judge

_LINE, _SHADE = np.array([1.0, 0.55, 0.1]), np.array([0.1, 0.1, 0.1])
_WORDS = 36  # letters above a picture
_VISIBLE = 0.4  # distance from grey at which large changes are shown


class PhotographModality(Modality):
    """Colour photographs. Features are patches by default."""

    name: ClassVar[str] = "photograph"
    default_features: ClassVar[str] = "patches:16"
    unit: ClassVar[str] = "1 is the change of one colour of one pixel from 0 to its full value"
    keeps_moves: ClassVar[bool] = False  # each takes as much space as two photographs
    marks: ClassVar[str] = "Relevant features keep their colours, with a line around them."
    legend: ClassVar[str] = (
        f"The top {{top}} of the features by every method, that of Robustness-S̄r where it has two. {marks} The class "
        "changes into the one named when only they change, or all others, by the length given. Small: the order of all "
        "features, bright first, and of {main} the two smallest changes, amplified."
    )

    def accepts(self, source: Source) -> bool:
        return source.photo is not None or (source.file is not None and source.model not in (None, "digits"))

    def read(self, source: Source) -> Subject:
        if sum(one is not None for one in (source.file, source.digit, source.photo, source.text)) != 1:
            raise HoldfastError("name one of: an image file, a photograph with --photo.")
        network = self._network(source.model or "imagenet")
        size, crop = network.prepared()
        if source.file is not None:
            x, name = read_photo(source.file, size, crop=crop)[None], str(source.file)
        else:
            assert source.photo is not None
            packaged = photos(size)
            if not 0 <= source.photo < len(packaged):
                raise HoldfastError(f"--photo must be between 0 and {len(packaged) - 1}, got {source.photo}.")
            x, name = packaged.x[source.photo : source.photo + 1], packaged.names[source.photo]
        model, _ = network.model(PhotographData(), Examples(x, (name,)), Place(Path(), source.device))
        return Subject(self, model, x.to(source.device), name, name, crop)

    @staticmethod
    def _network(name: str) -> Network:
        if name == "digits":
            raise HoldfastError("--photo is for --model imagenet: the digit network reads 28 x 28 grey pixels.")
        kind = name.partition(":")[0]
        if name != "imagenet" and kind not in PhotographData.networks:
            raise HoldfastError(
                f"--model must be digits, imagenet, {shown_names(PhotographData.networks[1:])}, got {name!r}."
            )
        return Network.parse(PhotographData.networks[0] if name == "imagenet" else name)

    def judge(self, p: float, seed: int) -> Judge:
        """Return a smaller judge than ``Judge.quick``, which would take as long as the explanation."""
        return Judge(p, 15, classes=3, starts=0, seed=seed)

    def figure(self, explanations: Sequence[Explanation], title: str) -> Plot:
        """Draw one row for each explanation: photograph, relevant features, heat map, and the two changes."""
        return panels_figure([_panels(explanation, title) for explanation in explanations])

    def shown(self, explanation: Explanation, title: str) -> Shown:
        x = in_view(explanation.x).numpy()
        details = [(jpeg(heated(x, explanation.heat.numpy())), "the order of all features")]
        for which in (MOVED, HELD) if explanation.moves is not None else ():
            if explanation.new_class[which] >= 0:
                assert explanation.moves is not None
                pixels, times = amplified(explanation.moves[which].numpy())
                details.append((jpeg(pixels), f"the smallest change, {SUBSETS[which]}, times {times:g}"))
        relevant = jpeg(outlined(x, explanation.relevant_mask.numpy()))
        return Shown(title, radius_facts(explanation), relevant, tuple(details))

    def input_image(self, explanation: Explanation) -> str:
        return jpeg(plain(in_view(explanation.x).numpy()))


def _panels(explanation: Explanation, title: str) -> list[Panel]:
    x = in_view(explanation.x).numpy()
    count = len(explanation.order)
    panels = [
        Panel(plain(x), explanation.prediction, title),
        Panel(
            outlined(x, explanation.relevant_mask.numpy()), explanation.question, f"top {explanation.size} of {count}"
        ),
        Panel(heated(x, explanation.heat.numpy()), "order of all features", "bright: first"),
    ]
    assert explanation.moves is not None
    for which, subset in enumerate(SUBSETS):
        pixels, times = amplified(explanation.moves[which].numpy())
        radius = explanation.radius_text(which)
        panels.append(Panel(pixels, explanation.change_text(which), f"{subset}: {radius} (x {times:g})"))
    return panels


def plain(x: Pixels) -> Pixels:
    """Return an input ``[3, H, W]`` as pixels ``[H, W, 3]`` from 0 to 1."""
    return np.moveaxis(np.asarray(x, dtype=np.float64), 0, -1).clip(0, 1)


def heated(x: Pixels, heat: Pixels) -> Pixels:
    """Draw a heat map over the photograph in grey.

    Args:
        x: The photograph ``[3, H, W]``.
        heat: ``[1 or 3, H, W]``, from 0 for the last feature to 1 for the first.

    Returns:
        Pixels ``[H, W, 3]``.
    """
    warm = _plane(heat, x.shape[1:])
    colour = mpl.colormaps["inferno"](warm)[..., :3]
    strength = 0.15 + 0.6 * warm[..., None]
    return np.asarray((1 - strength) * _grey(x) + strength * colour)


def outlined(x: Pixels, relevant: Pixels) -> Pixels:
    """Keep the colours of relevant features, show the rest in grey, and draw a line between them.

    Args:
        x: The photograph ``[3, H, W]``.
        relevant: The coordinates of the relevant features, bool ``[1 or 3, H, W]``.

    Returns:
        Pixels ``[H, W, 3]``.
    """
    inside = _plane(relevant, x.shape[1:]) > 0.5
    shown = np.where(inside[..., None], plain(x), 0.55 * _grey(x) + 0.35)
    edge = np.zeros_like(inside)
    for axis in (0, 1):
        steps = np.diff(inside, axis=axis)
        edge |= np.pad(steps, [(0, int(axis == a)) for a in (0, 1)]) | np.pad(
            steps, [(int(axis == a), 0) for a in (0, 1)]
        )
    if edge.mean() > 0.25:  # single pixels: lines around them would hide them
        return np.asarray(shown)
    return np.where((edge & inside)[..., None], _LINE, np.where((edge & ~inside)[..., None], _SHADE, shown))


def amplified(move: Pixels) -> tuple[Pixels, float]:
    """Amplify a change until it is visible.

    Args:
        move: The change ``[3, H, W]``.

    Returns:
        Pixels ``[H, W, 3]`` around middle grey, and the factor.
    """
    size = np.abs(move)
    large = float(np.quantile(size[size > 0], 0.98)) if bool((size > 0).any()) else 0.0
    if large == 0:
        return np.full((*move.shape[1:], 3), 0.5), 1.0
    factor = max(1.0, _round(_VISIBLE / large))
    return np.moveaxis(0.5 + factor * move, 0, -1).clip(0, 1), factor


def _round(number: float) -> float:
    """Round down to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return max(digit * power for digit in (1, 2, 5) if digit * power <= number * (1 + 1e-9))


def _grey(x: Pixels) -> Pixels:
    return np.repeat((plain(x) @ np.array([0.299, 0.587, 0.114]))[..., None], 3, axis=-1)


def _plane(values: Pixels, shape: tuple[int, ...]) -> Pixels:
    return np.broadcast_to(np.asarray(values, dtype=np.float64).max(0), shape)


# ---------------------------------------------------------------------- figures


@dataclass(frozen=True)
class Panel:
    """One picture of a figure.

    Attributes:
        pixels: The picture ``[H, W, 3]``.
        above: Text above it.
        below: Text below it.
    """

    pixels: Pixels
    above: str = ""
    below: str = ""


def panels_figure(rows: Sequence[Sequence[Panel]], legend: str = "") -> Plot:
    """Draw rows of pictures.

    Args:
        rows: The pictures, row by row. Rows may differ in length.
        legend: Text below all rows.

    Raises:
        HoldfastError: There are no pictures.
    """
    if not rows or not all(rows):
        raise HoldfastError("there are no pictures to draw.")
    wide = max(map(len, rows))
    foot = 0.62 if legend else 0.36
    size = (1.9 * wide + 0.1, 2.3 * len(rows) + 0.05 + foot - 0.36)
    figure = Plot(*size, layout=None)
    grid: Any = figure.subplots(len(rows), wide, squeeze=False)
    for line, panels in zip(grid, rows, strict=True):
        for axis in line[len(panels) :]:
            axis.set_axis_off()
        for axis, panel in zip(line, panels, strict=False):
            axis.imshow(panel.pixels, interpolation="antialiased")
            above, below = cut(figures.plain(panel.above), _WORDS), cut(figures.plain(panel.below), _WORDS + 6)
            axis.set_title(above, fontsize=8 if len(above) < 26 else 6.5, fontweight="bold", pad=3)
            axis.set_xlabel(below, fontsize=7 if len(below) < 32 else 6, labelpad=3)
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_color("#9ca3af")
    figure.text(0.5, 0.08 / size[1], legend, ha="center", fontsize=8)
    figure.subplots_adjust(
        left=0.01, right=0.99, top=1 - 0.25 / size[1], bottom=foot / size[1], hspace=0.34, wspace=0.06
    )
    return figure
