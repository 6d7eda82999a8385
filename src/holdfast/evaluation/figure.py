"""The figure of an evaluation: one panel for each criterion, one curve for each method."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from holdfast.criteria.criterion import Criterion
from holdfast.curve import Curve, draw_curves
from holdfast.figures import Plot, cut, house, plain
from holdfast.palette import SOFT, Style

_WIDTH, _HEIGHT = 4.6, 3.2  # inches of a panel
_LINE = 64  # letters of a verdict in one line
_LINES = 3


def draw(
    curves: Mapping[str, Mapping[str, Curve]],
    criteria: Mapping[str, Criterion],
    styles: Mapping[str, Style],
    verdicts: Mapping[str, str],
) -> Plot:
    """Draw the mean curves of all methods.

    Args:
        curves: By criterion, then by method.
        criteria: The criteria by name.
        styles: The style of each method.
        verdicts: A sentence for each criterion, above its panel.
    """
    across = min(2, len(curves))
    down = -(-len(curves) // across)
    plot = Plot(_WIDTH * across + (1.2 if across == 1 else 0), _HEIGHT * down + 0.4)
    with house():
        axes = plot.panels(down, across)
        for ax, (name, by_method) in zip(axes, curves.items(), strict=False):
            draw_curves(ax, by_method, styles)
            better = "higher is better" if criteria[name].higher_is_better else "lower is better"
            ax.set_title(f"{cut(plain(name))}: {better}", pad=12 * (1 + len(_wrapped(verdicts[name]))))
            ax.annotate(
                "\n".join(map(plain, _wrapped(verdicts[name]))),
                (0, 1),
                xytext=(0, 6),
                xycoords="axes fraction",
                textcoords="offset points",
                color=SOFT,
                fontsize=8,
                va="bottom",
            )
        for ax in axes[len(curves) :]:
            ax.set_axis_off()
        handles, labels = axes[0].get_legend_handles_labels()
        columns = max(1, min(4, len(labels), int(18 * plot.get_figwidth() / (max(map(len, labels)) + 8))))
        plot.legend(handles, [cut(label) for label in labels], loc="outside lower center", ncols=columns)
    return plot


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(" ".join(sentence.split()), _LINE, max_lines=_LINES, placeholder=" …")
