"""``holdfast demo``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.table import Table

from holdfast.cli.app import Device, Json, Seed, app
from holdfast.cli.app import out as console
from holdfast.cli.arguments import classifier
from holdfast.cli.show import progress_bar
from holdfast.criteria import Criterion, PerturbRelevant, PerturbRest
from holdfast.curve import Curve, trace
from holdfast.data import mnist
from holdfast.explainers import Explainer, Grad, GreedyAS, Random
from holdfast.ranking import Ranking
from holdfast.report import draw_curves, draw_explanations
from holdfast.robustness import Judge
from holdfast.version import __version__


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("holdfast-demo"),
    digits: Annotated[int, typer.Option(min=1, max=50, help="How many embedded digits.")] = 5,
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Explain embedded digits with Greedy-AS, the gradient and chance, and judge the three by robustness."""
    model = classifier(device)
    data = mnist()
    first = [int((data.y == y).nonzero()[i]) for i in range(5) for y in (7, 2, 1, 0, 4, 9, 5, 3, 6, 8)][:digits]
    cases = model.ask(data.x[first].to(model.device))
    judge, sizes = replace(Judge.quick(), seed=seed), (0.05, 0.15, 0.25, 0.35, 0.45)
    objectives: dict[str, Criterion] = {
        "Robustness-S̄r: relevant features held (higher is better)": PerturbRest(judge),
        "Robustness-Sr: only relevant features move (lower is better)": PerturbRelevant(judge),
    }
    started = model.queries
    panels: dict[str, dict[str, Curve]] = {}
    shown: dict[str, Ranking] = {}
    for title, objective in objectives.items():
        explainers: dict[str, Explainer] = {
            "Greedy-AS": replace(GreedyAS.quick(objective), seed=seed),
            "Grad": Grad(),
            "Random": Random(seed),
        }
        panels[title] = {}
        for name, explainer in explainers.items():
            with progress_bar(f"{name}: ranking pixels", as_json) as progress:
                ranking = explainer(cases, progress)
            with progress_bar(f"{name}: judging", as_json) as progress:
                panels[title][name] = trace(cases, ranking, objective, sizes, progress=progress)
            shown.setdefault(name, ranking)
    explained = {}
    for name, ranking in shown.items():
        relevant = ranking.top([0.2])
        with progress_bar(f"{name}: measuring the top 20 %", as_json) as progress:
            explained[name] = relevant[:, 0], judge(cases, torch.cat([relevant, ~relevant], 1), progress=progress)
    pictures = [out / "demo.png", out / "curves.png"]
    draw_explanations(cases, explained, pictures[0])
    draw_curves(panels, pictures[1])
    areas = {name: [float(panels[title][name].auc().mean()) for title in panels] for name in shown}
    counted = sum(int(curve.censored.sum()) for curves in panels.values() for curve in curves.values())
    spent = model.queries - started
    if as_json:
        judged = [{"explainer": name, "auc rest": rest, "auc relevant": only} for name, (rest, only) in areas.items()]
        answer: dict[str, Any] = {"version": __version__, "digits": first, "judge": repr(judge), "explainers": judged}
        answer |= {"censored": counted, "gradient rows": spent.gradient, "pictures": [str(path) for path in pictures]}
        typer.echo(json.dumps(answer, indent=1))
        return
    table = Table(title=f"{len(cases)} digits explained, and each explanation judged by how small a change turns them")
    table.add_column("explanation")
    for column in ("area, relevant held (higher is better)", "area, only relevant move (lower is better)"):
        table.add_column(column, justify="right")
    for name, (rest, only) in areas.items():
        table.add_row(name, f"{rest:.1f}", f"{only:.1f}")
    console.print(table)
    console.print(
        "Areas lie under the curves from 5 to 45 % of the pixels. Greedy-AS looks for the pixels that are best by the "
        "measure it is judged by, once for each measure; the picture shows the first kind.\n"
        f"Radii are upper bounds, re-measured on the network; {counted} points are censored (no change found) and "
        f"count as the largest move possible. {spent.gradient:,} gradient rows, {judge}.",
        highlight=False,
    )
    for path in pictures:
        console.print(f"picture: {path}", soft_wrap=True, highlight=False, markup=False)
