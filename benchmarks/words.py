"""Greedy-AS on words: does it pay to try a few words of a turn, and how long must the search be that tries them?

python benchmarks/words.py                                # 20 sentences, about a quarter of an hour on two cores
python benchmarks/words.py --sentences 100 --device cuda
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

import holdfast as hf
from holdfast.analyses import bootstrap
from holdfast.data import topic_sentences, topics_bilstm
from tables import RESULTS, hardware, show, wait

_SIZES = (1, 2, 3, 4, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--first", type=int, default=40, help="settings were chosen on the first 25 and the last 20")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="also write the tables here")
    options = parser.parse_args()
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware(options.device)}")
    model = topics_bilstm(options.device)
    cases = model.ask(topic_sentences().in_turn().texts[options.first : options.first + options.sentences])
    for title, kind in (
        ("relevant words held", hf.RobustnessRest),
        ("only relevant words move", hf.RobustnessRelevant),
    ):
        compare(title, cases, kind)
    if options.json:
        options.json.write_text(json.dumps(RESULTS, indent=1))


def compare(title: str, cases: hf.Cases, kind: type[hf.RobustnessRest] | type[hf.RobustnessRelevant]) -> None:
    """Areas by a judge that looks towards five classes, as ratios to Grad's."""
    short, long = kind(hf.MinNorm(steps=20)), kind(hf.MinNorm(steps=75))
    explainers: dict[str, hf.Explainer] = {
        "Grad": hf.Grad(),
        "Greedy-AS, by its values alone": replace(hf.GreedyAS.words(short), shortlist=1),
        "Greedy-AS, four tried, 20 gradients": hf.GreedyAS.words(short),
        "Greedy-AS, four tried, 75 gradients (words)": hf.GreedyAS.words(long),
        "Greedy, all tried, 75 gradients": hf.Greedy(long, budget=5, step=1),
        "CFX, 75 gradients": hf.Counterfactual(hf.MinNorm(steps=75)),
    }
    judge, first = kind(hf.Judge(steps=20, classes=5, starts=2)), None
    rows: list[dict[str, object]] = []
    for name, explainer in explainers.items():
        before, started = cases.model.queries, time.perf_counter()
        ranking = explainer(cases)
        wait(cases.x.is_cuda)
        seconds, spent = time.perf_counter() - started, cases.model.queries - before
        area = hf.trace(cases, ranking, judge, _SIZES).auc().double().cpu()
        first = area if first is None else first
        gain = (area / first).log()
        low, high = bootstrap(gain)
        rows.append(
            {
                "explanation": name,
                "area": float(area.mean()),
                "ratio to Grad": float(gain.mean().exp()),
                "95 %": f"{torch.tensor(low).exp():.3f} to {torch.tensor(high).exp():.3f}",
                "rows a text": round(spent.forward / len(cases)),
                "s a text": seconds / len(cases),
            }
        )
    show(title, rows)


if __name__ == "__main__":
    main()
