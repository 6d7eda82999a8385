"""The shortest move into a polyhedron, inside mask and box, with multipliers that prove a lower bound.

The polyhedron is ``rows @ move >= goals``. Any multipliers that are not negative add its half spaces up to one, and no
move into the polyhedron is shorter than the shortest one into that half space: this is the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from holdfast.robustness.norms import Norm

Array = NDArray[np.float64]

_STEPS = 60  # Newton steps; most programs take fewer than ten
_HALVINGS = 30
_PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_RIDGE = 1e-13  # relative; keeps Newton's equations solvable where no coordinate can move further


class Found(NamedTuple):
    """A move, and the multiplier of each half space.

    Attributes:
        move: ``[n]``.
        multipliers: ``[m]``, not negative.
        settled: Whether the move lies in the polyhedron, up to rounding, and is the shortest one.
    """

    move: Array
    multipliers: Array
    settled: bool


@dataclass(frozen=True, eq=False)
class Box:
    """The interval that each coordinate may move in.

    Attributes:
        low: ``[n]``, at most 0.
        high: ``[n]``, at least 0.
    """

    low: Array
    high: Array

    def clip(self, move: Array) -> Array:
        """Return the nearest point of the box."""
        inside: Array = np.minimum(np.maximum(move, self.low), self.high)
        return inside


def half_space_length(norm: Norm, slope: Array, goal: Array, box: Box) -> Array:
    """Return the length of the shortest move with ``slope @ move >= goal``, for each of several half spaces.

    Args:
        norm: The norm.
        slope: ``[m, n]``.
        goal: ``[m]``.
        box: The box.

    Returns:
        Lengths ``[m]``, a little too small by rounding at most; ``inf`` where the half space is out of reach.
    """
    slopes, goals, low, high = (torch.from_numpy(part) for part in (slope, goal.clip(0), box.low, box.high))
    move = norm.nearest(-slopes, goals, low.expand_as(slopes), high.expand_as(slopes), exact=True)
    most = torch.where(slopes > 0, slopes * high, slopes * low).sum(1)
    length: Array = torch.where(most < goals * (1 - 1e-9), math.inf, norm.length(move)).numpy()
    return length


def shortest(norm: Norm, rows: Array, goals: Array, box: Box, start: Array, enough: float, close: float) -> Found:
    """Return the shortest move into a polyhedron.

    Args:
        norm: The norm.
        rows: ``[m, n]``.
        goals: ``[m]``.
        box: The box, which is finite in L1 and Linf.
        start: Multipliers ``[m]`` to begin from.
        enough: Stop once the shortest move is known to be longer.
        close: By how much a half space may be missed.

    Returns:
        The move and its multipliers.
    """
    if norm.p == 2:
        return _by_newton(rows, goals, box, start, enough, close)
    return _by_linear_program(norm.p, rows, goals, box)


def bound(norm: Norm, rows: Array, goals: Array, box: Box, multipliers: Array) -> float:
    """Return the lower bound on the length of a move into a polyhedron that these multipliers prove."""
    if norm.p == 2:
        slope = multipliers @ rows
        move = box.clip(slope)
        return math.sqrt(max(0.0, 2 * float(multipliers @ goals - slope @ move) + float(move @ move)))
    slope = (multipliers @ rows)[None]
    return float(half_space_length(norm, slope, np.array([multipliers @ goals]), box)[0])


def _by_newton(rows: Array, goals: Array, box: Box, start: Array, enough: float, close: float) -> Found:
    """Maximise the dual of the L2 program: concave, piecewise quadratic, one variable for each half space.

    The move of multipliers m is ``clip(rows.T @ m)``. On a piece, the coordinates inside the box are known, and the
    best multipliers are a small program without box; between pieces, a line search makes sure that the dual grows.
    """
    most = math.inf if math.isinf(enough) else enough * enough / 2
    multipliers = start
    move, value, gradient = _dual(rows, goals, box, multipliers)
    for _ in range(_STEPS):
        if value > most:
            return Found(move, multipliers, False)
        if float(np.where(multipliers > 0, np.abs(gradient), gradient).max()) <= close:
            return Found(move, multipliers, True)
        inside = rows * ((move > box.low) & (move < box.high))
        curve = inside @ inside.T
        curve.flat[:: len(curve) + 1] += _RIDGE * float((rows * rows).sum())
        step = _best_on_piece(curve, gradient + curve @ multipliers) - multipliers
        slope, length = float(gradient @ step), 1.0
        for _ in range(_HALVINGS):
            new = (multipliers + length * step).clip(0)
            move_there, value_there, gradient_there = _dual(rows, goals, box, new)
            rounding = 1e-14 * float(new @ np.abs(goals))
            if value_there >= value + 1e-4 * length * slope - rounding:
                break
            length /= 2
        else:
            break  # rounding: no further progress
        multipliers, move, value, gradient = new, move_there, value_there, gradient_there
    return Found(move, multipliers, float(gradient.max()) <= close)


def _dual(rows: Array, goals: Array, box: Box, multipliers: Array) -> tuple[Array, float, Array]:
    """Return the move of these multipliers, the value of the dual, and its gradient: what each half space lacks."""
    move = box.clip(multipliers @ rows)
    lacking = goals - rows @ move
    return move, float(multipliers @ lacking) + float(move @ move) / 2, lacking


def _best_on_piece(curve: Array, aim: Array) -> Array:
    """Return the multipliers >= 0 that maximise ``aim @ m - m @ curve @ m / 2``."""
    from scipy.optimize import nnls  # imported where it is used: it takes longer than the rest of the package

    if len(aim) == 1:
        alone: Array = (aim / curve[0]).clip(0)
        return alone
    try:
        free: Array = np.asarray(np.linalg.solve(curve, aim), dtype=np.float64)
        if (free >= 0).all():
            return free
        factor = np.linalg.cholesky(curve)
        solution: Array = nnls(factor.T, np.linalg.solve(factor, aim))[0]
    except (np.linalg.LinAlgError, RuntimeError):  # rounding: the steepest direction is good enough
        scaled: Array = (aim / curve.diagonal()).clip(0)
        return scaled
    return solution


def _by_linear_program(p: float, rows: Array, goals: Array, box: Box) -> Found:
    """Solve in L1 (rises and falls of each coordinate) or Linf (moves, and the largest of them)."""
    from scipy import sparse
    from scipy.optimize import linprog

    m, n = rows.shape
    if p == 1:
        cost, matrix, aims = np.ones(2 * n), np.hstack([-rows, rows]), -goals
        limits = np.column_stack([np.zeros(2 * n), np.concatenate([box.high, -box.low])])
    else:
        cost, one = np.append(np.zeros(n), 1.0), np.ones((n, 1))
        eye = sparse.eye(n)
        largest = sparse.vstack([sparse.hstack([eye, -one]), sparse.hstack([-eye, -one])])
        matrix = sparse.vstack([np.hstack([-rows, np.zeros((m, 1))]), largest]).tocsr()
        aims = np.concatenate([-goals, np.zeros(2 * n)])
        limits = np.column_stack([np.append(box.low, 0), np.append(box.high, np.inf)])
    solved = linprog(cost, matrix, aims, bounds=limits, method="highs", options=_PRECISE)
    if solved.status == 2:
        return Found(np.zeros(n), refutation(rows, goals, box), False)
    if solved.status != 0:
        return Found(np.zeros(n), np.zeros(m), False)
    move = solved.x[:n] - solved.x[n:] if p == 1 else solved.x[:n]
    return Found(box.clip(move), np.maximum(-solved.ineqlin.marginals[:m], 0), True)


def refutation(rows: Array, goals: Array, box: Box) -> Array:
    """Return multipliers that show that a polyhedron is out of reach: of the move that comes nearest to it."""
    from scipy.optimize import linprog

    m, n = rows.shape
    limits = [*zip(box.low, box.high, strict=True), (0, None)]
    solved = linprog(
        np.append(np.zeros(n), 1), np.hstack([-rows, -np.ones((m, 1))]), -goals, bounds=limits, options=_PRECISE
    )
    return np.zeros(m) if solved.status != 0 else np.maximum(-solved.ineqlin.marginals, 0)
