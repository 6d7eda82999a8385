"""Rows of tables for readers: what the smallest changes do to each column, and the sentence that says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from holdfast.cases import ANY, AskableModel
from holdfast.columns import Cell, Change, Columns, cells_of, count_text, readable
from holdfast.explanation import HELD, MOVED, Explanation

_HANDED_OVER = " was used."  # the end of a note of a method that needs gradients, which trees do not have


def described(explanation: Explanation, columns: Columns, model: AskableModel | None = None) -> Explanation:
    """Add the columns of the row, what replaces their values, and the sentence that says what would have to change.

    Args:
        explanation: The explanation of one row, with its witnesses.
        columns: The columns of the table.
        model: The model that decided, which is asked about rounded numbers. None: numbers are not rounded.
    """
    assert explanation.witness is not None
    x, row = explanation.x, columns.decode(explanation.x[None])[0]
    changes = [change for witness in explanation.witness for change in columns.changes(x, witness)]
    feature = {name: number for number, name in enumerate(columns.moving)}
    return replace(
        explanation,
        cells=cells_of(columns, row, [columns.moving[number] for number in explanation.order], changes),
        replacements={feature[change.name]: change.after_text for change in changes},
        notes=tuple(note for note in explanation.notes if not note.endswith(_HANDED_OVER)),
        extra=(("in words", sentence(explanation, columns, model)),),
    )


def sentence(explanation: Explanation, columns: Columns, model: AskableModel | None) -> str:
    """Say what would have to change in the relevant columns, and what the others can do while these are held.

    Args:
        explanation: The explanation of one row, with its witnesses.
        columns: The columns of the table.
        model: The model that decided, which is asked about rounded numbers; None: they stay as they are.
    """
    assert explanation.witness is not None
    before, new = explanation.classes[explanation.label], explanation.new_class[MOVED]
    relevant = [columns.moving[number] for number in explanation.relevant]
    if new < 0:
        return f"{before}; {_without_witness(explanation, relevant)}{_rest(explanation, relevant, columns)}"
    changes = changed(columns, model, explanation.x, explanation.witness[MOVED], new)
    whole = {change.name for change in changes} == set(relevant) and _is_unreachable(explanation, HELD)
    told = columns.sentence(changes, before, explanation.classes[new], whole)
    return told if whole else told + _rest(explanation, relevant, columns)


def changed(columns: Columns, model: AskableModel | None, x: Tensor, witness: Tensor, new: int) -> list[Change]:
    """Return the changes between a row and a witness in round numbers that lead to the same class.

    Args:
        columns: The columns of the table.
        model: The model that decided; None: the numbers of the witness as they are.
        x: The row ``[n]``.
        witness: The witness ``[n]``.
        new: The class of the witness.
    """
    if model is None:
        return columns.changes(x, witness)

    def leads_there(points: Tensor) -> Tensor:
        scores = model(points.to(model.device, model.dtype), exact=True)
        others = scores.index_fill(1, torch.tensor([new], device=scores.device), -math.inf)
        return (scores[:, new] > others.amax(1)).cpu()  # a tie is no change

    ends_there = bool(leads_there(witness[None])[0])
    return columns.changes(x, witness, leads_there if ends_there else None)


def names_text(names: Sequence[str]) -> str:
    """Return names of columns for a sentence: "a, b and c"."""
    shown = [readable(name) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def plain_cells(explanation: Explanation) -> tuple[Cell, ...]:
    """Return the features of an explanation as cells with scaled numbers, where the columns are not known."""
    features, moves = explanation.features, explanation.moves
    values, total = features.pool(explanation.x[None])[0], None
    if moves is not None:
        total = features.pool(moves.to(explanation.x).sum(0, keepdim=True))[0]  # a feature moves in one of the two
    cells = []
    for place, number in enumerate(explanation.order):
        name, value = features.name(number), f"{float(values[number]):.4g}"
        move = 0.0 if total is None else float(total[number])
        after = (value, f"{float(values[number]) + move:.4g}", move, f"{move:+.2g}") if move else ()
        cells.append(Cell(name, place + 1, None, value, *after))
    return tuple(cells)


def _without_witness(explanation: Explanation, relevant: Sequence[str]) -> str:
    alone = f"{names_text(relevant)} alone, within {_their(relevant)},"
    if explanation.proven[MOVED]:
        return f"no change of {alone} {_effect(explanation)}."
    return f"no change of {alone} was found that {_effect(explanation)}."


def _rest(explanation: Explanation, relevant: Sequence[str], columns: Columns) -> str:
    """Say what the other columns can do while the relevant ones are held."""
    count = len(columns.moving) - len(relevant)
    if not count:
        return ""
    others = "the other column" if count == 1 else f"the other {count_text(count)} columns"
    held = f" If {names_text(relevant)} {'stays as it is' if len(relevant) == 1 else 'stay as they are'},"
    ranges = "within its range" if count == 1 else "within their ranges"
    if _is_unreachable(explanation, HELD):
        return f"{held} no change of {others} {ranges} {_effect(explanation)}."
    radius, lower = explanation.radius[HELD], explanation.lower[HELD]
    if math.isinf(radius):
        more = f"; it would be longer than {lower:.3g} scales" if lower > 0 else ""
        return f"{held} no change of {others} was found that {_effect(explanation)}{more}, which is no proof."
    if explanation.proven[HELD]:
        length = f"{radius:.3g}"
    else:
        length = f"{lower:.3g} to {radius:.3g}" if lower > 0 else f"at most {radius:.3g}"
    return f"{held} {others} must change by a length of {length} scales."


def _is_unreachable(explanation: Explanation, which: int) -> bool:
    return math.isinf(explanation.radius[which]) and explanation.proven[which]


def _effect(explanation: Explanation) -> str:
    if explanation.target != ANY:
        return f"makes it {explanation.classes[explanation.target]}"
    if len(explanation.classes) == 2:
        return f"makes it {explanation.classes[1 - explanation.label]}"
    return "changes the class"


def _their(names: Sequence[str]) -> str:
    return "its range" if len(names) == 1 else "their ranges"
