"""Pictures, tables and pages of what was measured."""

from holdfast.report.page import write_page
from holdfast.report.pictures import draw_changes, draw_explanations
from holdfast.report.tables import every_table

__all__ = ["draw_changes", "draw_explanations", "every_table", "write_page"]
