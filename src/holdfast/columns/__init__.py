"""Columns of tables: names, units, kinds, ranges and scales; rows as points; changes read aloud."""

from holdfast.columns.changes import Change, sentence
from holdfast.columns.column import Category, Column
from holdfast.columns.columns import Columns

__all__ = ["Category", "Change", "Column", "Columns", "sentence"]
