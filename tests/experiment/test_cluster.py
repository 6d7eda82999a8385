"""A real Ray cluster, started by the test: two workers, one of them killed in the middle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import holdfast as hf
from holdfast.experiment import Store, plan_of, run
from holdfast.experiment.cluster import Cluster
from holdfast.experiment.export import rows
from holdfast.experiment.results import Results
from studies import Dies, small_study, toy_study

ray: Any = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and files of its own to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning:ray"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # What workers inherit: where the tests' own explainers are, and as many threads as the tests have.
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
        patch.setenv("OMP_NUM_THREADS", "1")
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


def test_results_are_those_of_the_local_engine(cluster: None, tmp_path: Path, small_results: Path) -> None:
    engine = Cluster(num_gpus=0.0)
    assert engine.slots == 2
    with Store.open(tmp_path / "results.db") as store:
        summary = run(small_study(), store, engine)
    assert (summary.missing, summary.failed) == (0, {})
    assert list(rows(Results(tmp_path / "results.db"))) == list(rows(Results(small_results)))
    assert ray.is_initialized(), "a cluster that was there before is left there"


def test_what_a_killed_worker_had_in_hand_is_done_again(cluster: None, tmp_path: Path) -> None:
    marker = tmp_path / "died"
    study = toy_study({"Grad": hf.Grad(), "Dies": Dies(str(marker)), "LOO": hf.LeaveOneOut()})
    with Store.open(tmp_path / "results.db") as store:
        summary = run(study, store, Cluster())
    assert marker.exists()
    assert (summary.missing, summary.failed) == (0, {})
    results = Results(tmp_path / "results.db")
    for measure in results.measures():
        dead, alive = results.curve("Dies", measure), results.curve("Grad", measure)
        assert dead is not None
        assert alive is not None
        assert torch.equal(dead.values, alive.values)


def test_complaints_come_back_as_they_are(cluster: None, tmp_path: Path) -> None:
    study = toy_study({"Grad": hf.Grad(), "KernelShap": hf.KernelShap(samples=2)})
    with Store.open(tmp_path / "results.db") as store:
        summary = run(study, store, Cluster())
    assert summary.failed
    assert all("samples" in reason for reason in summary.failed.values())
    assert Results(tmp_path / "results.db").methods() == ["Grad"]


def test_the_model_travels_once(cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put, kinds = ray.put, []

    def counted(value: Any) -> Any:
        kinds.append(type(value).__name__)
        return put(value)

    monkeypatch.setattr(ray, "put", counted)
    study = toy_study({"Grad": hf.Grad(), "LOO": hf.LeaveOneOut()})
    with Store.open(tmp_path / "results.db") as store:
        run(study, store, Cluster())
    assert kinds.count("TorchModel") == 1
    assert len(kinds) == 1 + len(plan_of(study).blocks)


def test_tasks_ask_for_the_gpus_they_use(cluster: None) -> None:
    with pytest.raises(hf.HoldfastError, match="the Ray cluster has no GPU"):
        Cluster(num_gpus=1.0)


def test_an_address_where_nothing_is() -> None:
    if ray.is_initialized():
        ray.shutdown()
    started = time.monotonic()
    with pytest.raises(hf.HoldfastError, match=r"cannot reach the Ray cluster 127\.0\.0\.1:1: .*refused"):
        Cluster("127.0.0.1:1")
    assert time.monotonic() - started < 60
