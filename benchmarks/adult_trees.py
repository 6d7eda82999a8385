"""Train the trees for Adult that the package contains, without the embedded rows: python adult_trees.py ADULT.csv

Without a file: only measure the trees of the package on the embedded rows, and the time of their exact radii.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch

import holdfast as hf
from embed_adult import FOLDER, ROWS, SEED
from holdfast.files import write_text

FILE = FOLDER / "adult-trees.json"
SETTINGS: dict[str, Any] = {"n_estimators": 60, "max_depth": 4, "learning_rate": 0.25, "random_state": 0, "n_jobs": 1}
STATISTICS = ("base_weights", "loss_changes", "sum_hessian")  # of the training: no score depends on them


def main(path: Path) -> None:
    """Train on the rows that are not embedded, and write the trees without statistics of their training."""
    import xgboost

    table, embedded = hf.data.adult(path), hf.data.adult()
    chosen = sorted(random.Random(SEED).sample(range(len(table)), ROWS))  # as in embed_adult.py
    if not torch.equal(table.x[chosen], embedded.x):
        raise hf.HoldfastError(f"{path} is not the file that the embedded rows were chosen from.")
    rest = torch.ones(len(table), dtype=torch.bool)
    rest[chosen] = False
    x = (table.x * table.columns.scales).numpy()  # columns.matrix of the rows
    fitted = xgboost.XGBClassifier(**SETTINGS).fit(x[rest.numpy()], table.y[rest].numpy())
    write_text(FILE, stripped(json.loads(fitted.get_booster().save_raw("json"))))
    print(f"trained on {int(rest.sum()):,} rows, xgboost {xgboost.__version__}: {FILE.stat().st_size:,} bytes")


def stripped(record: Any) -> str:
    """Return the text of a model without its statistics; XGBoost expects that each has as many numbers as nodes."""
    for tree in record["learner"]["gradient_booster"]["model"]["trees"]:
        for name in STATISTICS:
            tree[name] = [0.0] * len(tree[name])
    return json.dumps(record, separators=(",", ":")) + "\n"


def measure(rows: int = 50) -> None:
    """Print how often the trees are right on the embedded rows, and how long their exact radii take."""
    table, model = hf.data.adult(), hf.data.adult_trees()
    scores = model(table.x)
    right = (scores.argmax(1) == table.y).double().mean()
    found = [(scores.argmax(1)[table.y == one] == one).double().mean() for one in (0, 1)]
    always = (table.y == 0).double().mean()
    print(f"accuracy {right:.2%}; of <=50K {found[0]:.1%}, of >50K {found[1]:.1%}; always <=50K: {always:.2%}")
    took, proven = [], 0
    for row in range(rows):
        cases = model.ask(table.x[row : row + 1], features=table.columns.features())
        begin = time.perf_counter()
        radii = hf.ExactTrees()(cases, torch.ones(1, 1, cases.features.count, dtype=torch.bool))
        took.append(time.perf_counter() - begin)
        proven += int(radii.proven.sum())
    took.sort()
    print(f"{proven} of {rows} radii proven; seconds: median {took[rows // 2]:.2f}, largest {took[-1]:.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    measure()
