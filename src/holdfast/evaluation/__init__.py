"""Explanations of the same cases side by side: curves and areas by several criteria, and paired tests."""

from holdfast.evaluation.compare import compare as compare
from holdfast.evaluation.evaluation import Evaluation as Evaluation
