"""Reports: pictures of what was found."""

from holdfast.report.pictures import draw_changes, draw_curves, draw_explanations

__all__ = ["draw_changes", "draw_curves", "draw_explanations"]
