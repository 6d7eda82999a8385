"""Tables and plots of all analyses."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

import holdfast as hf
from analyses.small import small_cases
from holdfast import analyses
from holdfast.analyses.agreement import Marks, agreement
from holdfast.analyses.diagnostics import diagnostics
from holdfast.analyses.reference_values import reference_values
from holdfast.analyses.runtime import runtime
from holdfast.analyses.sanity import sanity
from holdfast.analyses.sensitivity import sensitivity


def test_rows_of_a_result_have_the_same_columns_and_no_nan() -> None:
    cases = small_cases()
    two = {"Grad": hf.Grad(), "Random": hf.Random()}
    rankings = {name: explainer(cases) for name, explainer in two.items()}
    areas = {"S̄r": {name: hf.trace(cases, ranking, hf.Insertion(0.0)).auc() for name, ranking in rankings.items()}}
    marks = Marks({str(case): {"x": frozenset({case})} for case in range(4)})
    results: list[analyses.Result] = [
        analyses.significance(areas, "Grad", {"S̄r": True}),
        analyses.significance({"S̄r": {name: area[:1] for name, area in areas["S̄r"].items()}}, "Grad", {"S̄r": True}),
        reference_values(cases, rankings, [0.0]),
        sanity(cases, two),
        sensitivity(cases, two, samples=2),
        agreement(rankings, list("0123"), marks),
        runtime(cases, two, repeats=1),
        diagnostics(
            cases, rankings["Grad"], sizes=(0.1, 0.3), judge=hf.MinNorm(), search=hf.MinNorm(steps=10), seeds=2
        ),
    ]
    kinds = [kind for kind in vars(analyses).values() if isinstance(kind, type) and issubclass(kind, analyses.Result)]
    assert {type(result) for result in results} == set(kinds) - {analyses.Result}
    for result in results:
        rows = result.table()
        assert len({tuple(row) for row in rows}) == 1
        assert not any(isinstance(value, float) and math.isnan(value) for row in rows for value in row.values())
        result.draw(Figure().add_subplot())
