"""Pictures of what was found."""

from holdfast.report.pictures import draw_changes

__all__ = ["draw_changes"]
