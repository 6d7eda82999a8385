"""Columns of tables: names, units, kinds, ranges and scales; rows as points; changes read aloud."""

from holdfast.columns.cells import Cell, cells_of, readable
from holdfast.columns.changes import Change, count_text, sentence
from holdfast.columns.column import Category, Column
from holdfast.columns.columns import Columns

__all__ = ["Category", "Cell", "Change", "Column", "Columns", "cells_of", "count_text", "readable", "sentence"]
