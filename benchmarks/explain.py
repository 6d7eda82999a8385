"""How good and how cheap the explanations are, judged by ``Judge`` on the same digits, as tables.

    python benchmarks/explain.py --device cuda     # everything; the paper's regression is 90 million gradient rows
    python benchmarks/explain.py --only speed      # seconds a digit, and what they are spent on
    python benchmarks/explain.py --only quality --digits 4 --skip regression Greedy --judge quick     # a look on a CPU

Settings were chosen on digits 0-123; the tables are of digits 200 on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import holdfast as hf
from holdfast.analyses import significance
from holdfast.curve import SIZES
from tables import RESULTS, bare_speed, hardware, show, wait

Objective = type[hf.RobustnessRest] | type[hf.RobustnessRelevant]
OBJECTIVES: dict[str, tuple[str, Objective]] = {
    "rest": ("S̄r (higher is better)", hf.RobustnessRest),
    "relevant": ("Sr (lower is better)", hf.RobustnessRelevant),
}
ANCHOR, PAPER = "GreedyAS", "regression, as the paper's, 20 gradients"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections: dict[str, Callable[[argparse.Namespace], None]] = {"speed": speed, "quality": quality}
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--digits", type=int, default=50, help="how many embedded digits to judge explanations on")
    parser.add_argument("--first", type=int, default=200, help="the first of them; settings were chosen on 0-123")
    parser.add_argument("--objective", nargs="+", choices=["rest", "relevant"], default=["rest", "relevant"])
    parser.add_argument("--skip", nargs="*", default=[], help="explainers to leave out, by their first word")
    parser.add_argument("--judge", choices=["quick", "default", "thorough"], default="default")
    parser.add_argument(
        "--keep", type=Path, help="folder that keeps rankings, so that a run cut short goes on from them"
    )
    parser.add_argument("--json", type=Path, help="also write the tables here")
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware(options.device)}")
    for name in options.only:
        sections[name](options)
    if options.json:
        options.json.write_text(json.dumps(RESULTS, indent=1))


def ask(options: argparse.Namespace, digits: int) -> hf.Cases:
    model = hf.TorchModel(hf.data.mnist_cnn().module.to(options.device), bounds=(0, 1))
    return model.ask(hf.data.mnist().x[options.first :][:digits].to(options.device))


def explainers(kind: Objective) -> dict[str, hf.Explainer]:
    searched = kind(hf.MinNorm(steps=20))
    return {
        ANCHOR: hf.GreedyAS(searched),
        "GreedyAS.quick": hf.GreedyAS.quick(searched),
        "GreedyAS.thorough": hf.GreedyAS.thorough(searched),
        "GreedyAS, 5 % a step": hf.GreedyAS(searched, step=0.05),
        "GreedyAS, one class": hf.GreedyAS(searched, estimator=hf.BoundaryNormals(classes=1)),
        "OneStepBanzhaf": hf.OneStepBanzhaf(searched),
        "Greedy": hf.Greedy(searched),
        PAPER: replace(hf.GreedyAS.paper(), objective=searched),
        "Grad": hf.Grad(),
        "Random": hf.Random(),
    }


# ---------------------------------------------------------------------- sections


def quality(options: argparse.Namespace) -> None:
    cases = ask(options, options.digits)
    judge = getattr(hf.Judge, options.judge)()
    for title, kind in (OBJECTIVES[name] for name in options.objective):
        wanted = {
            name: explainer
            for name, explainer in explainers(kind).items()
            if name.split(",")[0] not in options.skip or name == ANCHOR
        }
        rankings, cost = {}, {}
        for name, explainer in wanted.items():
            started = time.perf_counter()
            rankings[name], cost[name] = ranked(cases, explainer, options)
            print(f"  {title}: {name} took {time.perf_counter() - started:.1f} s", flush=True)
        started = time.perf_counter()
        areas, censored = judged(cases, rankings, kind(judge))
        print(f"  judged in {time.perf_counter() - started:.1f} s", flush=True)
        tested = significance({title: areas}, ANCHOR, {title: kind.higher_is_better}).comparisons
        against = {comparison.other: comparison for comparison in tested}
        table = []
        for name, area in areas.items():
            row: dict[str, object] = {"explainer": name, "AUC": float(area.mean()), "median": float(area.median())}
            row |= {"gradient rows a digit": round(cost[name]), "censored": censored[name]}
            row |= dict.fromkeys(("default / this", "95 % interval", "paired t", "p"), "")
            if name != ANCHOR:
                this = against[name]
                row |= {"default / this": f"{this.ratio:.3f}", "paired t": f"{this.t:.1f}", "p": f"{this.p_t:.1g}"}
                row |= {"95 % interval": "{:.3f} to {:.3f}".format(*this.ratio_interval)}
            table.append(row)
        show(f"AUC Robustness-{title}, {len(cases)} digits from {options.first}, {judge}", table)


def ranked(cases: hf.Cases, explainer: hf.Explainer, options: argparse.Namespace) -> tuple[hf.Ranking, float]:
    """A ranking and its gradient rows a digit, made or taken from those kept."""
    made = f"{_sources()} {cases.x.device} {explainer!r} {options.first} {options.digits}"
    path = options.keep and options.keep / f"{hashlib.sha256(made.encode()).hexdigest()[:16]}.safetensors"
    if path and path.exists():
        kept = {name: value.to(cases.x.device) for name, value in load_file(path).items()}
        return hf.Ranking(kept["order"], kept["scores"], kept["count"], repr(explainer)), float(kept["cost"])
    before = cases.model.queries
    ranking = explainer(cases)
    wait(cases.x.is_cuda)
    cost = (cases.model.queries - before).gradient / len(cases)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {"order": ranking.order, "scores": ranking.scores, "count": ranking.count, "cost": torch.tensor(cost)}
        save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, path)
    return ranking, cost


def _sources() -> str:
    """A hash of the package: a ranking made by other code is another ranking."""
    files = sorted(Path(hf.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def judged(
    cases: hf.Cases, rankings: dict[str, hf.Ranking], criterion: hf.Criterion
) -> tuple[dict[str, Tensor], dict[str, int]]:
    """Every ranking's area a digit; one call for all of them, since a judge costs time and not hardware."""
    many = cases[torch.arange(len(cases), device=cases.x.device).repeat(len(rankings))]
    together = hf.Ranking(
        torch.cat([ranking.order for ranking in rankings.values()]),
        torch.cat([ranking.scores for ranking in rankings.values()]),
        torch.cat([ranking.count for ranking in rankings.values()]),
    )
    curve = hf.trace(many, together, criterion, SIZES)
    areas = dict(zip(rankings, curve.auc().cpu().double().chunk(len(rankings)), strict=True))
    counts = curve.censored.sum(1).chunk(len(rankings))
    return areas, {name: int(count.sum()) for name, count in zip(rankings, counts, strict=True)}


def speed(options: argparse.Namespace) -> None:
    gpu = options.device.startswith("cuda")
    bare = bare_speed(ask(options, 1))
    asked = [(1, 0.2, "quick"), (1, 0.45, "default"), *([(100, 0.45, "quick"), (100, 0.45, "default")] if gpu else [])]
    table = []
    for digits, budget, preset in asked:
        cases = ask(options, digits)
        for title, kind in (OBJECTIVES[name] for name in options.objective):
            explainer = replace(getattr(hf.GreedyAS, preset)(kind(hf.MinNorm(steps=20))), budget=budget)
            replace(explainer, budget=0.05)(cases)  # warm
            times = []
            for _ in range(3):
                before, started = cases.model.queries, time.perf_counter()
                explainer(cases)
                wait(gpu)
                times.append(time.perf_counter() - started)
            wall, spent = sorted(times)[1], (cases.model.queries - before).gradient
            table.append(
                {
                    "preset": preset,
                    "objective": title,
                    "digits": digits,
                    "budget": f"{budget:.0%}",
                    "s a digit": wall / digits,
                    "gradient rows a digit": round(spent / digits),
                    "inside forward + gradient": spent / bare / wall,
                }
            )
    show(f"seconds a digit, median of three ({bare:,.0f} bare rows/s)", table)


if __name__ == "__main__":
    main()
