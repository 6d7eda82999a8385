"""What the machinery of experiments costs: the local engine over a bare loop, and Ray with two workers over it.

    python benchmarks/engines.py [--digits 12] [--only local ray]

Every unit is CPU-bound (a Greedy-AS ranking, a judged curve) and every engine has one thread a worker. Ratios are of
one run on one machine; Ray's workers are up before the clock starts, and what that takes is printed beside.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded, and for Ray's workers

import torch  # see above

import holdfast as hf  # see above
from holdfast.experiment import Engine, Local, Measure, Method, Store, Study, run  # see above
from tables import hardware, show  # see above

EXPLAINER = hf.GreedyAS.quick()
CRITERION = hf.RobustnessRest(hf.Judge.quick())
SIZES = (0.05, 0.25, 0.45)


def study(digits: int, first: int = 200) -> Study:
    """One ranking and one curve a block of one digit: nothing that could be computed together."""
    cases = hf.data.mnist_cnn().ask(hf.data.mnist().x[first : first + digits])
    method, measure = Method("Greedy-AS", {"both": EXPLAINER}), Measure("S̄r", CRITERION)
    return Study("engines", cases, (method,), (measure,), "Greedy-AS", sizes=SIZES, block=1)


def bare(digits: int) -> float:
    """The same work without jobs, keys and a store."""
    cases = study(digits).cases
    started = time.perf_counter()
    for place in range(digits):
        hf.trace(cases[place], EXPLAINER(cases[place]), CRITERION, SIZES)
    return time.perf_counter() - started


def engined(made: Study, engine: Engine) -> float:
    """By a run into a fresh store."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "results.db") as store:
        started = time.perf_counter()
        summary = run(made, store, engine)
        assert not summary.missing
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", type=int, default=12)
    parser.add_argument("--only", nargs="+", choices=("local", "ray"), default=("local", "ray"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(f"holdfast {hf.__version__}, torch {torch.__version__}, {hardware('cpu')}", flush=True)
    bare(1)  # warm
    loop, local = bare(asked.digits), engined(study(asked.digits), Local())
    show(
        "local over the bare loop",
        [{"digits": asked.digits, "s, loop": loop, "s, local": local, "ratio": local / loop}],
    )
    if "ray" in asked.only:
        from holdfast.experiment.cluster import Cluster  # Ray is an extra

        started = time.perf_counter()
        import ray  # heavy to load

        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        engined(study(2, first=100), Cluster())  # each worker loads torch once
        up = time.perf_counter() - started
        two = engined(study(asked.digits), Cluster())
        ray.shutdown()
        row: dict[str, object] = {
            "s, local": local,
            "s, ray": two,
            "over half of local": two / (local / 2),
            "s to be up": up,
        }
        show("Ray with two workers over half of local", [row])


if __name__ == "__main__":
    main()
